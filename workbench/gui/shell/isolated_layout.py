"""A widget whose contents may change size without a new layout of the window.

Qt lays out every ancestor up to the window, and paints most of it, when the text of one label changes: an edit of a
plan changes twenty.
"""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget


class IsolatedPages(QWidget):
    """Shows one of its ``pages``, which fills it; has no layout, so that no new text in it reaches the layouts around.

    Those still ask for the sizes that the pages need when they are laid out themselves.
    """

    def __init__(self, *pages: QWidget) -> None:
        super().__init__()
        self._isolated: list[QWidget] = []
        self.show_pages(*pages)

    def show_pages(self, *pages: QWidget) -> None:
        """Hold these pages, the first one in front."""
        self._isolated = list(pages)
        for page in pages:
            page.setParent(self)
            page.setGeometry(self.rect())
        self.turn_to(0)

    def turn_to(self, place: int) -> None:
        """Show a page by its place."""
        for at, page in enumerate(self._isolated):
            page.setVisible(at == place)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fill the room with the pages."""
        super().resizeEvent(event)
        for page in self._isolated:
            page.setGeometry(self.rect())

    def sizeHint(self) -> QSize:
        """Return what the largest page would like."""
        return _largest(page.sizeHint() for page in self._isolated)

    def minimumSizeHint(self) -> QSize:
        """Return what the largest page needs."""
        return _largest(page.minimumSizeHint() for page in self._isolated)


def _largest(sizes: Iterable[QSize]) -> QSize:
    result = QSize(0, 0)
    for size in sizes:
        result = result.expandedTo(size)
    return result

"""Help: the guide in a window of its own, and About with versions and devices."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QImage, QTextCursor, QTextDocument
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QDialogButtonBox,
    QLabel,
    QLineEdit,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

from workbench.gui.shell import dialogs
from workbench.version import versions

GUIDE_SIZE = (860, 700)
MARGIN = 70
"""Pixels of the guide's width that frame and scroll bar take."""
ASKING = "Devices: asking the engine…"


class Pages(QTextBrowser):
    """A text with pictures that are never wider than it is."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Return a picture of the guide's folder, made as narrow as the text; anything else is Qt's matter."""
        place = QUrl(name)
        if kind != QTextDocument.ResourceType.ImageResource.value or place.scheme():
            return super().loadResource(kind, name)
        picture = QImage(str(self._folder / place.path()))
        width = GUIDE_SIZE[0] - MARGIN
        if picture.width() > width:
            picture = picture.scaledToWidth(width, Qt.TransformationMode.SmoothTransformation)
        return picture


class Guide(QDialog):
    """The user guide, with a field that finds words; pictures and pages elsewhere open in their own programs."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("guide")
        self.setWindowTitle("User guide")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(*GUIDE_SIZE)
        folder = Path(str(files("workbench_resources"))) / "guide"
        self._folder = folder
        self.text = Pages(folder)
        self.text.setAccessibleName("User guide")
        self.text.setOpenLinks(False)
        self.text.anchorClicked.connect(self._follow)
        self.text.document().setMarkdown((folder / "guide.md").read_text(encoding="utf-8"))
        self.field = QLineEdit(placeholderText="Find in the guide (Enter for the next place)")
        self.field.setAccessibleName("Find in the guide")
        self.field.setClearButtonEnabled(True)
        self.field.returnPressed.connect(self.find_next)
        layout = QVBoxLayout(self)
        layout.addWidget(self.field)
        layout.addWidget(self.text, 1)
        dialogs.framed(self)
        self.text.moveCursor(QTextCursor.MoveOperation.Start)
        self.field.setFocus()

    def find_next(self) -> None:
        """Go to the next place of what was typed, from the top after the last."""
        words = self.field.text()
        if words and not self.text.find(words):
            self.text.moveCursor(QTextCursor.MoveOperation.Start)
            self.text.find(words)

    def _follow(self, link: QUrl) -> None:
        if link.scheme() in ("http", "https"):
            QDesktopServices.openUrl(link)
        elif link.path():
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._folder / link.path())))
        else:
            self.text.scrollToAnchor(link.fragment())


class About(QDialog):
    """Versions at once, devices as soon as the engine has named them; everything can be copied."""

    def __init__(self, parent: QWidget, session_line: str = "") -> None:
        super().__init__(parent)
        self.setObjectName("about")
        self.setWindowTitle("About")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._lines, self._session = versions(), session_line
        title = QLabel("Quantization Workbench")
        title.setProperty("role", "title")
        self.text = QLabel()
        self.text.setAccessibleName("Versions and devices")
        self.text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.copy_button = buttons.addButton("Co&py", QDialogButtonBox.ButtonRole.ActionRole)
        self.copy_button.clicked.connect(lambda: QApplication.clipboard().setText(self.text.text()))
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        for widget in (title, self.text, buttons):
            layout.addWidget(widget)
        self.show_devices((ASKING,))
        dialogs.framed(self)

    def show_devices(self, lines: tuple[str, ...]) -> None:
        """Show what the engine computes on."""
        session = ("", self._session) if self._session else ()
        self.text.setText("\n".join((*self._lines, "", *lines, *session)))
        self.adjustSize()

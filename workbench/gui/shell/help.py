"""Help: the user guide, About with versions and devices, a report of a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QImage, QTextCursor, QTextDocument
from PySide6.QtWidgets import QCheckBox, QDialogButtonBox, QLineEdit, QPlainTextEdit, QTextBrowser, QWidget

from workbench.gui.shell.copying import put
from workbench.gui.shell.dialogs import SELECTABLE, Popup
from workbench.gui.shell.widgets import fill_dialog, label, named
from workbench.gui.shell.words import tr
from workbench.insight.problem_report import problem_report
from workbench.version import versions

GUIDE_SIZE = (860, 700)
MARGIN = 70
"""Pixels of the guide's width for its frame and scroll bar."""
ASKING = "Devices: asking the engine…"


class Pages(QTextBrowser):
    """A text whose pictures are never wider than the text."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Return a picture of the guide's folder, scaled down to the text; Qt loads anything else."""
        place = QUrl(name)
        if kind != QTextDocument.ResourceType.ImageResource.value or place.scheme():
            return super().loadResource(kind, name)
        picture = QImage(str(self._folder / place.path()))
        width = GUIDE_SIZE[0] - MARGIN
        if picture.width() > width:
            picture = picture.scaledToWidth(width, Qt.TransformationMode.SmoothTransformation)
        return picture


def headings() -> list[str]:
    """Return the headings of the guide."""
    text = (Path(str(files("workbench_resources"))) / "guide" / "guide.md").read_text(encoding="utf-8")
    return [line.lstrip("# ") for line in text.splitlines() if line.startswith("#")]


class Guide(Popup):
    """The user guide with a search field; links to files and web pages open in their own programs."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, "guide", "User guide")
        self.resize(*GUIDE_SIZE)
        self._folder = Path(str(files("workbench_resources"))) / "guide"
        self.text = named(Pages(self._folder), "User guide")
        self.text.setOpenLinks(False)
        self.text.anchorClicked.connect(self._follow)
        self.text.document().setMarkdown((self._folder / "guide.md").read_text(encoding="utf-8"))
        placeholder = "Find in the guide (Enter for the next match)"
        self.field = named(QLineEdit(placeholderText=tr(placeholder)), "Find in the guide")
        self.field.setClearButtonEnabled(True)
        self.field.returnPressed.connect(self.find_next)
        fill_dialog(self, self.field, self.text, stretch=self.text)
        self.text.moveCursor(QTextCursor.MoveOperation.Start)
        self.field.setFocus()

    def find_next(self) -> None:
        """Go to the next match of the search text; after the last one, to the first."""
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


class About(Popup):
    """Versions at once, devices when the engine has listed them; a button copies everything."""

    def __init__(self, parent: QWidget, session_line: str = "") -> None:
        super().__init__(parent, "about", "About")
        self._lines, self._session = versions(), session_line
        self.text = label(name="Versions and devices")
        self.text.setTextInteractionFlags(SELECTABLE)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.copy_button = buttons.addButton(tr("Co&py"), QDialogButtonBox.ButtonRole.ActionRole)
        self.copy_button.clicked.connect(lambda: put(self.text.text()))
        buttons.rejected.connect(self.reject)
        fill_dialog(self, label("Quantization Workbench", "title"), self.text, buttons)
        self.show_devices((ASKING,))

    def show_devices(self, lines: tuple[str, ...]) -> None:
        """Show the devices of the engine."""
        session = ("", self._session) if self._session else ()
        self.text.setText("\n".join((*self._lines, "", *lines, *session)))
        self.adjustSize()


class ProblemReport(Popup):
    """Everything that a report of a problem holds, to be read before ``save(parts)`` writes it."""

    def __init__(
        self, parent: QWidget, lines: Sequence[str], names: Sequence[str], save: Callable[[Mapping[str, str]], None]
    ) -> None:
        super().__init__(parent, "problem", "Report a problem")
        self.resize(*GUIDE_SIZE)
        self._lines, self._names = lines, names
        self.parts: Mapping[str, str] = {}
        self.text = named(QPlainTextEdit(readOnly=True), "The whole report")
        self.text.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in every language
        self.with_names = QCheckBox(tr("With the &names of my files"))
        self.with_names.setToolTip(tr("Names help to find the cause, but may identify you"))
        self.with_names.toggled.connect(self._show)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.save_button = buttons.addButton(tr("&Save the Archive…"), QDialogButtonBox.ButtonRole.ActionRole)
        self.save_button.clicked.connect(lambda: save(self.parts))
        buttons.rejected.connect(self.reject)
        note = label("This is all that the archive will hold. Nothing is sent: you send the file yourself.", wrap=True)
        fill_dialog(self, note, self.text, self.with_names, buttons, stretch=self.text)
        self._show()

    def _show(self) -> None:
        self.parts = problem_report(self._lines, self._names, with_names=self.with_names.isChecked())
        self.text.setPlainText("\n".join(f"{name}\n{'=' * len(name)}\n{text}" for name, text in self.parts.items()))

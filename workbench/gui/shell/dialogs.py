"""Dialogs: ``dialog.open()`` and a future, because a nested event loop would stop asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFileDialog, QFrame, QMessageBox, QWidget

from workbench.gui.shell.copying import put
from workbench.gui.shell.file_dialog import file_dialog
from workbench.gui.shell.foreign import as_line, as_tip
from workbench.gui.shell.forms import Form
from workbench.gui.shell.step_keys import BUTTONS
from workbench.gui.shell.widgets import button, fill_dialog, label, page, row
from workbench.gui.shell.words import tr

Button = QMessageBox.StandardButton
WIDE = "QLabel#qt_msgbox_informativelabel { min-width: 380px; }"
"""Prevents messages that are as narrow as their titles."""
SELECTABLE = Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard


class Frame(QFrame):
    """A line around its parent, for displays whose window manager draws none; it lets the mouse through."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("dialog-frame")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        parent.installEventFilter(self)
        self._fit(parent)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Show) and isinstance(watched, QWidget):
            self._fit(watched)
        return False

    def _fit(self, parent: QWidget) -> None:
        self.setGeometry(parent.rect())
        self.raise_()


class Popup(QDialog):
    """A framed dialog that is deleted when it is closed."""

    def __init__(self, parent: QWidget, name: str, title: str) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setWindowTitle(tr(title))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        Frame(self)


async def finished(dialog: QDialog) -> int:
    """Open ``dialog``, wait until it is closed and return its result code; it is deleted afterwards."""
    future: asyncio.Future[int] = asyncio.get_event_loop().create_future()

    def end(code: int) -> None:
        if not future.done():
            future.set_result(code)

    dialog.finished.connect(end)
    Frame(dialog)
    dialog.open()
    try:
        return await future
    finally:
        dialog.close()
        dialog.deleteLater()


def show_error(parent: QWidget, title: str, text: str, details: str = "") -> QMessageBox:
    """Show an error without blocking the window, in place of an earlier one of the same title.

    Its text can be selected, a button copies its ``details``.
    """
    for earlier in parent.findChildren(QMessageBox, "error"):
        if earlier.property("title") == title:
            earlier.close()
    box = _message(QMessageBox.Icon.Warning, Button.Close, parent, "error", title, text)
    box.setProperty("title", title)  # a message box has none of its own on macOS
    box.setTextInteractionFlags(SELECTABLE)
    if details:
        box.setDetailedText(details)
        copy = box.addButton(tr("Co&py the Details"), QMessageBox.ButtonRole.ActionRole)
        copy.setObjectName("copy")
        copy.clicked.disconnect()  # a button of a message box closes it otherwise
        copy.clicked.connect(lambda: put(f"{title}\n{text}\n\n{details}"))
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setModal(False)
    Frame(box)
    box.show()
    return box


async def ask(parent: QWidget, title: str, text: str, buttons: Sequence[tuple[str, str]], default: str) -> str:
    """Ask with buttons ``(id, label)`` and return an id; closing the dialog means the last button."""
    box = _message(QMessageBox.Icon.Question, Button.NoButton, parent, "question", title, text)
    last = buttons[-1][0]
    for identity, words in buttons:
        role = QMessageBox.ButtonRole.RejectRole if identity == last else QMessageBox.ButtonRole.AcceptRole
        button = box.addButton(tr(words), role)
        button.setObjectName(identity)
        if identity == default:
            box.setDefaultButton(button)
        if identity == last:
            box.setEscapeButton(button)
    chosen: list[str] = []
    box.buttonClicked.connect(lambda button: chosen.append(button.objectName()))
    await finished(box)
    return chosen[0] if chosen else last


def _message(icon: QMessageBox.Icon, buttons: Button, parent: QWidget, name: str, title: str, text: str) -> QMessageBox:
    title, text = tr(title), tr(text)
    box = QMessageBox(icon, as_line(title), as_tip(title), buttons, parent)
    box.setStyleSheet(WIDE)
    box.setObjectName(name)
    box.setInformativeText(as_tip(text))
    return box


async def ask_trust(parent: QWidget, file: str) -> bool:
    """Ask whether the user's own Python file may be run."""
    text = tr(
        "Opening this model runs the Python file\n\n{}\n\n"
        "with all your permissions. Run it only if you wrote it or have read it."
    ).format(file)
    buttons = (("trust", "&Run the File"), ("cancel", "&Cancel"))
    return await ask(parent, "Run this Python file?", text, buttons, "cancel") == "trust"


async def ask_unsaved(parent: QWidget, name: str) -> str:
    """Ask what to do with unsaved work: ``save``, ``discard`` or ``cancel``."""
    buttons = (("save", "&Save"), ("discard", "&Discard"), ("cancel", "&Cancel"))
    title = tr("Save the changes to {}?").format(name)
    return await ask(parent, title, "Otherwise, unsaved changes are lost.", buttons, "save")


async def ask_replace(parent: QWidget, name: str) -> str:
    """Ask what to do if another program has changed the file: ``replace``, ``save_as`` or ``cancel``."""
    buttons = (("replace", "&Replace"), ("save_as", "Save &As…"), ("cancel", "&Cancel"))
    text = tr(
        "Another window or program has changed {} since it was opened here. Saving overwrites those changes; under "
        "another name, both are kept."
    ).format(name)
    return await ask(parent, tr("Replace {}?").format(name), text, buttons, "save_as")


async def ask_path(
    parent: QWidget, title: str, *, mode: QFileDialog.FileMode, filters: str = "", save: bool = False, start: str = "",
    suffix: str = "", folder: str = "",
) -> str | None:  # fmt: skip
    """Let the user choose a file or folder, in ``folder`` at first; None if they cancel."""
    dialog = file_dialog(parent, title, mode, folder)
    dialog.setObjectName("path")
    if save:
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    if suffix:
        dialog.setDefaultSuffix(suffix)
    if filters:
        dialog.setNameFilters([tr(name) for name in filters.split(";;")])
        dialog.filterSelected.connect(lambda chosen: _use_suffix(dialog, chosen))
    if start:
        dialog.setDirectory(start) if mode == QFileDialog.FileMode.Directory else dialog.selectFile(start)
    code = await finished(dialog)
    chosen = dialog.selectedFiles()
    return chosen[0] if code == QDialog.DialogCode.Accepted and chosen else None


async def ask_save_path(parent: QWidget, title: str, filters: str, start: str, suffix: str) -> Path | None:
    """Let the user choose a file to write; None if they cancel."""
    chosen = await ask_path(
        parent, title, mode=QFileDialog.FileMode.AnyFile, filters=filters, save=True, start=start, suffix=suffix
    )
    return None if chosen is None else Path(chosen)


def _use_suffix(dialog: QFileDialog, chosen: str) -> None:
    """Add the suffix of the chosen filter to names without one."""
    suffix = chosen.partition("(*.")[2].partition(")")[0]
    if suffix.isalnum():
        dialog.setDefaultSuffix(suffix)


class FormDialog(QDialog):
    """A dialog around a form: an explanation, the form, ``Start`` and ``Cancel``.

    ``lacking(options)`` says what must be done before, and by which step: ``trigger(action)`` starts that.
    """

    def __init__(
        self, parent: QWidget, title: str, explanation: str, form: Form, start: str,
        lacking: Callable[[Any], tuple[str, str]] = lambda value: ("", ""), trigger: Callable[[str], object] = str,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._form, self._lacking = form, lacking
        self.setObjectName("form")
        self.setWindowTitle(tr(title))
        buttons = QDialogButtonBox()
        buttons.addButton(tr("&Cancel"), QDialogButtonBox.ButtonRole.RejectRole)
        self.start_button = buttons.addButton(tr(start), QDialogButtonBox.ButtonRole.AcceptRole)
        self.start_button.setProperty("role", "primary")
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        self.reason = label(role="error", name="What must be done first", wrap=True)
        self.first = button("", self.reject, role="primary", name="What must be done first")
        self.first.clicked.connect(lambda: trigger(BUTTONS[lacking(form.value())[1]][0]))
        form.add(page(row(self.reason, self.first, stretch=self.reason), top=0))
        form.changed.connect(self._allow)
        self._allow()
        layout = fill_dialog(self, label(title, "heading"), label(explanation, "muted", wrap=True), form, buttons)
        layout.setSpacing(10)
        self.start_button.setDefault(True)
        self.setMinimumWidth(600)
        form.grown.connect(lambda: QTimer.singleShot(0, self, self._grow))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fit()

    def _grow(self) -> None:
        self.adjustSize()
        self._fit()

    def _fit(self) -> None:
        """Be as high as all parts need at this width: Qt counts a wrapped text as one line."""
        layout = self.layout()
        if layout is not None:
            needed = layout.totalMinimumHeightForWidth(max(self.width(), self.minimumWidth()))
            self.setMinimumHeight(min(needed, self.screen().availableSize().height()))

    def _allow(self) -> None:
        reason, step = self._lacking(self._form.value())
        self.start_button.setDisabled(bool(reason))
        self.reason.setText(tr(reason))
        self.first.setText(tr(BUTTONS[step][1]) if step in BUTTONS else "")
        self.reason.setVisible(bool(reason))
        self.first.setVisible(step in BUTTONS)

    def accept(self) -> None:
        """Start, unless a field is not valid."""
        if not self._form.refuse():
            super().accept()

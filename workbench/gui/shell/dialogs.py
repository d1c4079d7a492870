"""Dialogs: ``dialog.open()`` and a future, because a nested event loop would stop asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFrame,
    QLabel,
    QMessageBox,
    QVBoxLayout,
    QWidget,
)

from workbench.gui.shell.forms import Form

Button = QMessageBox.StandardButton
WIDE = "QLabel#qt_msgbox_informativelabel { min-width: 380px; }"
"""Without it a message is as narrow as its title."""


class Frame(QFrame):
    """A line around its parent, for displays whose window manager draws none; it lets the mouse through."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("dialog-frame")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        parent.installEventFilter(self)
        self._fit(parent)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the parent's size."""
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Show) and isinstance(watched, QWidget):
            self._fit(watched)
        return False

    def _fit(self, parent: QWidget) -> None:
        self.setGeometry(parent.rect())
        self.raise_()


def framed(dialog: QWidget) -> None:
    """Draw a line around ``dialog``."""
    Frame(dialog)


async def finished(dialog: QDialog) -> int:
    """Open ``dialog``, wait until it is closed and return its result code; it is deleted afterwards."""
    future: asyncio.Future[int] = asyncio.get_event_loop().create_future()

    def end(code: int) -> None:
        if not future.done():
            future.set_result(code)

    dialog.finished.connect(end)
    framed(dialog)
    dialog.open()
    try:
        return await future
    finally:
        dialog.close()
        dialog.deleteLater()


def show_error(parent: QWidget, title: str, text: str, details: str = "") -> QMessageBox:
    """Show an error that does not block anything; its text can be selected, its ``details`` are copied by a button."""
    box = QMessageBox(QMessageBox.Icon.Warning, title, title, Button.Close, parent)
    box.setStyleSheet(WIDE)
    box.setObjectName("error")
    box.setInformativeText(text)
    box.setTextInteractionFlags(
        Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
    )
    if details:
        box.setDetailedText(details)
        copy = box.addButton("Co&py the Details", QMessageBox.ButtonRole.ActionRole)
        copy.setObjectName("copy")
        copy.clicked.disconnect()  # a button of a message box closes it otherwise
        copy.clicked.connect(lambda: QApplication.clipboard().setText(f"{title}\n{text}\n\n{details}"))
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setModal(False)
    framed(box)
    box.show()
    return box


async def ask(parent: QWidget, title: str, text: str, buttons: Sequence[tuple[str, str]], default: str) -> str:
    """Ask with buttons ``(id, label)``; returns the id, that of the last button if the dialog is closed."""
    box = QMessageBox(QMessageBox.Icon.Question, title, title, Button.NoButton, parent)
    box.setStyleSheet(WIDE)
    box.setObjectName("question")
    box.setInformativeText(text)
    made = {}
    for identity, label in buttons:
        last = identity == buttons[-1][0]
        role = QMessageBox.ButtonRole.RejectRole if last else QMessageBox.ButtonRole.AcceptRole
        made[identity] = box.addButton(label, role)
        made[identity].setObjectName(identity)
    box.setDefaultButton(made[default])
    box.setEscapeButton(made[buttons[-1][0]])
    chosen: list[str] = []
    box.buttonClicked.connect(lambda button: chosen.append(button.objectName()))
    await finished(box)
    return chosen[0] if chosen else buttons[-1][0]


async def ask_trust(parent: QWidget, file: str) -> bool:
    """Ask whether the user's own Python file may be run."""
    text = (
        f"Opening this model runs the Python file\n\n{file}\n\n"
        "with all your rights. Run it only if you wrote it or have read it."
    )
    answer = await ask(
        parent, "Run this Python file?", text, (("trust", "&Run the file"), ("cancel", "&Cancel")), "cancel"
    )
    return answer == "trust"


async def ask_unsaved(parent: QWidget, name: str) -> str:
    """Ask what to do with unsaved work: ``save``, ``discard`` or ``cancel``."""
    buttons = (("save", "&Save"), ("discard", "&Discard"), ("cancel", "&Cancel"))
    return await ask(parent, f"Save the changes to {name}?", "Otherwise, unsaved changes are lost.", buttons, "save")


async def ask_replace(parent: QWidget, name: str) -> str:
    """Ask what to do if another program has written the file meanwhile: ``replace``, ``save_as`` or ``cancel``."""
    buttons = (("replace", "&Replace"), ("save_as", "Save &As…"), ("cancel", "&Cancel"))
    text = f"Another window or program has written {name} since it was opened here. Saving overwrites that."
    return await ask(parent, f"Replace {name}?", text, buttons, "save_as")


async def ask_path(
    parent: QWidget,
    title: str,
    *,
    mode: QFileDialog.FileMode,
    filters: str = "",
    save: bool = False,
    start: str = "",
    suffix: str = "",
) -> str | None:
    """Let the user choose a file or folder; None if they cancel."""
    dialog = QFileDialog(parent, title)
    dialog.setObjectName("path")
    dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
    dialog.setFileMode(mode)
    if save:
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    if suffix:
        dialog.setDefaultSuffix(suffix)
    if filters:
        dialog.setNameFilter(filters) if ";;" not in filters else dialog.setNameFilters(filters.split(";;"))
        dialog.filterSelected.connect(lambda chosen: _take_suffix(dialog, chosen))
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


def _take_suffix(dialog: QFileDialog, chosen: str) -> None:
    """Give a name without a suffix that of the filter that was chosen."""
    suffix = chosen.partition("(*.")[2].partition(")")[0]
    if suffix.isalnum():
        dialog.setDefaultSuffix(suffix)


class FormDialog(QDialog):
    """A dialog around a form: an explanation, the form, ``Start`` and ``Cancel``."""

    def __init__(self, parent: QWidget, title: str, explanation: str, form: Form, start: str) -> None:
        super().__init__(parent)
        self._form = form
        self.setObjectName("form")
        self.setWindowTitle(title)
        heading, label = QLabel(title), QLabel(explanation)
        heading.setProperty("role", "heading")
        label.setProperty("role", "muted")
        label.setWordWrap(True)
        buttons = QDialogButtonBox()
        buttons.addButton("&Cancel", QDialogButtonBox.ButtonRole.RejectRole)
        self.start_button = buttons.addButton(start, QDialogButtonBox.ButtonRole.AcceptRole)
        self.start_button.setProperty("role", "primary")
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.setSpacing(10)
        for widget in (heading, label, form, buttons):
            layout.addWidget(widget)
        self.start_button.setDefault(True)
        self.setMinimumWidth(460)
        form.grown.connect(lambda: QTimer.singleShot(0, self, self.adjustSize))

    def accept(self) -> None:
        """Start, unless a field holds a text that cannot be used."""
        if not self._form.refuse():
            super().accept()

"""Qt's own dialog for files and folders, with sizes, kinds and dates that can be read."""

from __future__ import annotations

import os
import re
from typing import Any

from PySide6.QtCore import QIdentityProxyModel, QModelIndex, QPersistentModelIndex, QRegularExpression, QSize, Qt
from PySide6.QtWidgets import QAbstractItemView, QComboBox, QFileDialog, QHeaderView, QLineEdit, QTreeView, QWidget

from workbench.gui.shell.foreign import Readable
from workbench.gui.shell.words import tr
from workbench.readable import readable

SIZE = QSize(760, 460)
"""Pixels in which the names of a model's files and the columns beside them fit."""

KINDS_OF_FILES = ("fileTypeLabel", "fileTypeCombo")
"""Qt's line of kinds of files, which says nothing where a folder is chosen."""


FILES = QRegularExpression("listView|treeView|sidebar")
"""Qt's lists of the files in a folder, and of places."""


class Places(QIdentityProxyModel):
    """The folders of a path, named as they may be shown."""

    def data(self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        value = super().data(index, role)
        return readable(value) if role == Qt.ItemDataRole.DisplayRole and isinstance(value, str) else value


class FileDialog(QFileDialog):
    """Gives what is saved the ending of the chosen kind where its name has none of those that are offered."""

    def accept(self) -> None:
        """Take the name: ``notes.md`` would hold a page, and Open would not list ``model-4.5``."""
        endings = tuple(re.findall(r"\*(\.\w+)", " ".join(self.nameFilters())))
        name, line = self.selectedFiles()[0], self.findChild(QLineEdit, "fileNameEdit")
        saves = self.acceptMode() == QFileDialog.AcceptMode.AcceptSave and endings and not os.path.isdir(name)
        if saves and line and not name.lower().endswith(endings):
            line.setText(f"{name}.{self.defaultSuffix()}")
        super().accept()


def file_dialog(parent: QWidget, title: str, mode: QFileDialog.FileMode, folder: str = "") -> QFileDialog:
    """Return a dialog that begins in ``folder``; the desktop's own would run a nested event loop."""
    dialog = FileDialog(parent, tr(title), folder)
    dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
    dialog.setFileMode(mode)
    if mode == QFileDialog.FileMode.Directory:
        for name in KINDS_OF_FILES:
            part = dialog.findChild(QWidget, name)
            if part is not None:
                part.hide()
    dialog.resize(SIZE)
    views = [*dialog.findChildren(QAbstractItemView, FILES)]
    if (path := dialog.findChild(QComboBox, "lookInCombo")) is not None:
        own, places = path.model(), Places(dialog)
        own.setParent(dialog)  # a list deletes a model of its own that another takes the place of
        places.setSourceModel(own)
        path.setModel(places)
        path.setCurrentIndex(0)
    if (line := dialog.findChild(QLineEdit, "fileNameEdit")) is not None:
        line.textChanged.connect(lambda name: _show(line, name))
        views += [popup for popup in [line.completer().popup()] if popup is not None]
    for names in views:
        names.setItemDelegate(Readable(names))
    for view in dialog.findChildren(QTreeView):
        header = view.header()
        for column in range(header.count()):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)
        if header.count():
            header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
    return dialog


def _show(line: QLineEdit, name: str) -> None:
    """Show a name as it may be shown; the file that has it stays selected."""
    if (shown := readable(name)) != name:
        line.blockSignals(True)
        line.setText(shown)
        line.blockSignals(False)

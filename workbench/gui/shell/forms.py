"""A dataclass's fields as a form: an option never needs a hand-made widget.

A field's ``metadata`` may say: ``label``, ``tip``, ``minimum``, ``maximum``, ``unit``, ``choices`` (values, or
``(value, label)``), ``path`` (``file``, ``folder`` or ``save``), ``none`` (what the lowest value stands for when the
field may be None), ``many`` (choose several of ``choices``).
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from dataclasses import Field, fields, replace
from typing import Any, TypeVar

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QComboBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QToolButton,
    QWidget,
)

from workbench.gui.shell.number_field import NumberField

T = TypeVar("T")
Maker = tuple[QWidget, Callable[[], Any]]


class Form(QWidget):
    """Edits a copy of ``options`` (a frozen dataclass); ``value()`` returns what the form says.

    ``choices`` gives the choices of fields that are known only when the form is made.
    """

    changed = Signal()

    def __init__(self, options: Any, choices: typing.Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self._choices = choices or {}
        self._options = options
        self._readers: dict[str, Callable[[], Any]] = {}
        self.widgets: dict[str, QWidget] = {}
        layout = QFormLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.ExpandingFieldsGrow)
        hints = typing.get_type_hints(type(options))
        taken = {"c"}  # the dialog's Cancel
        for item in fields(options):
            label = item.metadata.get("label", item.name.replace("_", " ").capitalize())
            widget, reader = self._make(item, hints[item.name], getattr(options, item.name))
            widget.setAccessibleName(label)
            widget.setToolTip(item.metadata.get("tip", ""))
            widget.setObjectName(item.name)
            self._readers[item.name] = reader
            self.widgets[item.name] = widget
            layout.addRow(with_key(label, taken), widget)
            if isinstance(widget, NumberField):
                layout.addRow(self._problem_line(widget, label))

    def refuse(self) -> bool:
        """Whether a field holds a text that cannot be used; the keyboard goes to it, and it says why."""
        wrong = [widget for widget in self.widgets.values() if isinstance(widget, NumberField) and widget.problem]
        if wrong:
            wrong[0].setFocus()
            wrong[0].selectAll()
        return bool(wrong)

    def value(self) -> Any:
        """Return the options as edited."""
        return replace(self._options, **{name: reader() for name, reader in self._readers.items()})

    def _make(self, item: Field[Any], hint: Any, value: Any) -> Maker:
        meta = item.metadata
        optional = isinstance(hint, types.UnionType) and type(None) in typing.get_args(hint)
        kind = next(arg for arg in typing.get_args(hint) if arg is not type(None)) if optional else hint
        if "choices" in meta:
            offered = self._choices.get(item.name, meta["choices"])
            return self._many(offered, value) if meta.get("many") else self._choice(offered, value)
        if kind is bool:
            return self._check(value)
        if kind in (int, float):
            return self._number(kind, optional, meta, value)
        if "path" in meta:
            return self._path(meta["path"], value)
        return self._text(value)

    def _check(self, value: bool) -> Maker:
        box = QCheckBox()
        box.setChecked(value)
        box.toggled.connect(self.changed)
        return box, box.isChecked

    def _number(self, kind: type, optional: bool, meta: typing.Mapping[str, Any], value: Any) -> Maker:
        low = meta.get("minimum", 0)
        whole = {"decimals": 0} if kind is int else {"step": meta.get("step", 0.25)}
        field = NumberField(
            low, meta.get("maximum", 1_000_000_000), low if value is None else value, unit=meta.get("unit", ""),
            special=meta.get("none", "all") if optional else "", **whole,
        )  # fmt: skip
        field.changed.connect(self.changed)
        return field, lambda: None if optional and field.number == low else field.number

    def _problem_line(self, field: NumberField, name: str) -> QLabel:
        """Return the line below a number field that says what is wrong with its text."""
        line = QLabel()
        line.setAccessibleName(f"What is wrong with {name}")
        line.setProperty("role", "error")
        line.setWordWrap(True)
        line.hide()
        field.problem_changed.connect(line.setText)
        field.problem_changed.connect(lambda problem: line.setVisible(bool(problem)))
        return line

    def _choice(self, choices: Any, value: Any) -> Maker:
        box = QComboBox()
        for choice in choices:
            held, label = choice if isinstance(choice, tuple) else (choice, str(choice))
            box.addItem(label, held)
        box.setCurrentIndex(max(box.findData(value), 0))
        box.currentIndexChanged.connect(lambda _: self.changed.emit())
        return box, box.currentData

    def _many(self, choices: Any, value: Any) -> Maker:
        box = QListWidget()
        box.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        for choice in choices:
            item = QListWidgetItem(str(choice), box)
            item.setFlags(Qt.ItemFlag.ItemIsUserCheckable | Qt.ItemFlag.ItemIsEnabled)
            item.setCheckState(Qt.CheckState.Checked if choice in value else Qt.CheckState.Unchecked)
        box.setMinimumHeight(150)
        box.itemChanged.connect(lambda _: self.changed.emit())

        def read() -> tuple[str, ...]:
            items = (box.item(row) for row in range(box.count()))
            return tuple(item.text() for item in items if item.checkState() == Qt.CheckState.Checked)

        return box, read

    def _text(self, value: Any) -> Maker:
        line = QLineEdit("" if value is None else str(value))
        line.textChanged.connect(lambda _: self.changed.emit())
        return line, line.text

    def _path(self, kind: str, value: Any) -> Maker:
        holder, line, button = QWidget(), QLineEdit(str(value or "")), QToolButton()
        button.setText("…")
        layout = QHBoxLayout(holder)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(line, 1)
        layout.addWidget(button)
        line.setAccessibleName("Path")
        button.setAccessibleName("Choose a path")
        button.setToolTip("Choose a path")
        button.clicked.connect(lambda: self._choose(kind, line))
        line.textChanged.connect(lambda _: self.changed.emit())
        holder.setFocusProxy(line)
        return holder, line.text

    def _choose(self, kind: str, line: QLineEdit) -> None:
        dialog = QFileDialog(self, "Choose a path", line.text())
        dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        mode = QFileDialog.FileMode
        dialog.setFileMode({"folder": mode.Directory, "file": mode.ExistingFile}.get(kind, mode.AnyFile))
        if kind == "save":
            dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.fileSelected.connect(line.setText)
        dialog.open()


def with_key(label: str, taken: set[str]) -> str:
    """Return ``label`` with its first letter that is not ``taken`` as its mnemonic, which is taken from then on."""
    for place, letter in enumerate(label.lower()):
        if letter.isalpha() and letter not in taken:
            taken.add(letter)
            return f"{label[:place]}&{label[place:]}"
    return label

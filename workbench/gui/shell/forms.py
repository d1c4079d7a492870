"""A step's options as a form: the type of an option decides its widget."""

from __future__ import annotations

import os
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

from PySide6.QtCore import QMimeData, QSignalBlocker, QSysInfo, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QFileDialog,
    QFormLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QMenu,
    QToolButton,
    QWidget,
)

from workbench.errors import WorkbenchError
from workbench.gui.shell.file_dialog import file_dialog
from workbench.gui.shell.foreign import isolated
from workbench.gui.shell.number_field import NumberField
from workbench.gui.shell.widgets import Combo, button, label, named, open_menu, page, row
from workbench.gui.shell.words import tr
from workbench.models.data.reading import Reading
from workbench.models.summary import ModelSummary
from workbench.steps.options import Choice, OptionField, OptionInfo, option_fields

MANY_HEIGHT = 150
"""Pixels of a list of check boxes."""

CONTENTS_LENGTH = 16
"""Characters to which a list shrinks before its form becomes wider than the screen."""

OTHER_KEYS = "&Cancel", "Choose &None", "Choose &All"
"""Buttons of forms, whose mnemonics no label gets."""

HIGHEST = 1_000_000_000
CHECKED = Qt.CheckState.Checked


class Entry(typing.NamedTuple):
    """An option in a form: its widget, and functions that return its value and its problem."""

    widget: QWidget
    read: Callable[[], object]
    problem: Callable[[], str] = str


class Form(QWidget):
    """Edits a copy of ``options`` (a frozen dataclass); ``value()`` returns the edited options.

    ``choices`` gives the choices of options that depend on the document, ``missing(value)`` what its values lack
    there, as :attr:`Step.missing` does; ``folder`` is where paths are looked for, ``bundled`` names data that came
    with the workbench and suit the document.  ``model``: options that mean nothing for it are not offered.
    """

    changed = Signal()
    grown = Signal()
    """A line about a problem appeared or disappeared."""

    def __init__(
        self, options: typing.Any, choices: Mapping[str, Sequence[Choice]] | None = None,
        missing: Callable[[typing.Any], Mapping[str, str]] | None = None, folder: str = "",
        bundled: Sequence[str] = (), model: ModelSummary | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._choices, self._missing, self._folder = choices or {}, missing or (lambda value: {}), folder
        self._bundled = bundled
        self._needed = self._missing(options)
        self._options = options
        self._entries: dict[str, Entry] = {}
        self._problems: dict[str, QLabel] = {}
        self._layout = QFormLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.ExpandingFieldsGrow)
        keys = {text.partition("&")[2][:1].lower() for text in map(tr, OTHER_KEYS)}
        for item in option_fields(type(options)):
            if item.info.form and (model is None or item.info.suits(model)):
                self._add(item, getattr(options, item.name), keys)
        self._before = self.value()
        self.changed.connect(self._follow)

    def showEvent(self, event: QShowEvent) -> None:
        """Give all fields of numbers the width of the widest, in the window's style."""
        super().showEvent(event)
        fields = [entry.widget for entry in self._entries.values() if isinstance(entry.widget, NumberField)]
        widest = max((field.sizeHint().width() for field in fields), default=0)
        for field in fields:
            field.setMinimumWidth(widest)

    @property
    def widgets(self) -> dict[str, QWidget]:
        """The widget of each option."""
        return {name: entry.widget for name, entry in self._entries.items()}

    def value(self) -> typing.Any:
        """Return the options as edited."""
        return replace(self._options, **{name: entry.read() for name, entry in self._entries.items()})

    def add(self, line: QWidget) -> None:
        """Show a line below the fields."""
        self._layout.addRow(line)

    def problems(self) -> dict[str, str]:
        """Return what is wrong with the options that are not valid."""
        lacking = {name: tr("Needed: {}").format(tr(what)) for name, what in self._missing(self.value()).items()}
        found = {name: entry.problem() or lacking.get(name, "") for name, entry in self._entries.items()}
        return {name: problem for name, problem in found.items() if problem}

    def refuse(self) -> bool:
        """Whether a field is not valid; the first such field gets the keyboard and shows its problem."""
        for name, problem in self.problems().items():
            self._show_problem(name, problem)
            self._entries[name].widget.setFocus()
            return True
        return False

    # ---------------------------------------------------------------- inside

    def _follow(self) -> None:
        """Let texts follow other options, as a file's ending follows its kind."""
        before, self._before = self._before, self.value()
        for item in option_fields(type(self._options)):
            if item.info.follow is not None:
                line = self._entries[item.name].widget.findChild(QLineEdit)
                assert line is not None, "a text follows"
                line.setText(item.info.follow(before, self._before))

    def _add(self, item: OptionField, value: typing.Any, keys: set[str]) -> None:
        entry = self._entry(item, value)
        help_text = tr(item.info.help)
        named(entry.widget, item.info.label, f"{help_text[:1].upper()}{help_text[1:]}")
        entry.widget.setObjectName(item.name)
        self._entries[item.name] = entry
        title = label(with_key(tr(item.info.label), keys), buddy=entry.widget.focusProxy() or entry.widget)
        self._layout.addRow(title, entry.widget)
        problem = label(role="error", name=tr("What is wrong with {}").format(tr(item.info.label)), wrap=True)
        self._problems[item.name] = problem
        problem.hide()
        self._layout.addRow(problem)
        if isinstance(entry.widget, NumberField):
            entry.widget.problem_changed.connect(lambda text: self._show_problem(item.name, text))
        else:
            self.changed.connect(lambda: self._show_problem(item.name, ""))

    def _show_problem(self, name: str, problem: str) -> None:
        line = self._problems[name]
        line.setText(problem)
        if line.isHidden() == bool(problem):
            line.setVisible(bool(problem))
            self.grown.emit()

    def _entry(self, item: OptionField, value: typing.Any) -> Entry:
        choices = self._choices.get(item.name) or (item.info.choices() if item.info.choices else ())
        if choices:
            return self._many(item, choices, value) if item.several else self._choice(choices, value)
        if item.kind is bool:
            return self._check(value)
        if item.kind in (int, float):
            return self._number(item, value)
        return self._text(item, ", ".join(value) if item.several else "" if value is None else str(value))

    def _check(self, value: bool) -> Entry:
        box = QCheckBox()
        box.setChecked(value)
        box.toggled.connect(self.changed)
        return Entry(box, box.isChecked)

    def _number(self, item: OptionField, value: float | None) -> Entry:
        info = item.info
        whole = {"decimals": 0} if item.kind is int else {"step": info.increment}
        field = NumberField(
            0 if info.minimum is None else info.minimum, HIGHEST if info.maximum is None else info.maximum, value,
            unit=tr(info.unit), empty=tr(info.empty or "all") if item.optional else "", **whole,
        )  # fmt: skip
        field.changed.connect(self.changed)
        return Entry(field, lambda: field.number, lambda: field.problem)

    def _choice(self, choices: Sequence[Choice], value: typing.Any) -> Entry:
        box = Combo()
        for choice in choices:
            box.addItem(tr(choice.label), choice.value)
        box.setCurrentIndex(max(box.findData(value), 0))
        box.setMinimumContentsLength(CONTENTS_LENGTH)
        box.currentIndexChanged.connect(lambda _: self.changed.emit())
        return Entry(box, box.currentData)

    def _many(self, item: OptionField, choices: Sequence[Choice], value: typing.Any) -> Entry:
        listed = {choice.value for choice in choices}
        choices = (*choices, *(Choice(each, each) for each in value if each not in listed))
        box, count = _ticks(item.info.label, choices, value), label(role="muted")

        def read() -> tuple[str, ...]:
            lines = (box.item(place) for place in range(box.count()))
            checked = {line.data(Qt.ItemDataRole.UserRole) for line in lines if line.checkState() == CHECKED}
            return tuple(choice.value for choice in choices if choice.value in checked)

        def changed() -> None:
            count.setText(tr("{:,} of {:,} chosen").format(len(read()), len(choices)))
            every.setText(tr("Choose &None" if read() else "Choose &All"))
            self.changed.emit()

        def choose() -> None:
            state = Qt.CheckState.Unchecked if read() else CHECKED
            with QSignalBlocker(box):
                for place in range(box.count()):
                    box.item(place).setCheckState(state)
            box.viewport().update()
            changed()

        every = button("", choose)
        every.setAutoDefault(False)
        box.itemChanged.connect(lambda _: changed())
        changed()
        both = page(box, row(count, None, every), top=0, gap=2)
        both.setFocusProxy(box)
        return Entry(both, read)

    def _text(self, item: OptionField, value: str) -> Entry:
        line = PathField(value) if item.info.path else QLineEdit(value)
        needed = self._needed.get(item.name)
        line.setPlaceholderText(tr("Needed: {}").format(tr(needed)) if needed else tr(item.info.empty))
        line.textChanged.connect(lambda _: self.changed.emit())
        widget: QWidget = line
        if item.info.path:
            button = self._browser(item.info, named(line, "Path"))
            widget = QWidget()
            widget.setLayout(row(named(line, "Path"), button, stretch=line))
            widget.setFocusProxy(line)

        def read() -> object:
            if item.several:
                return tuple(part.strip() for part in line.text().split(",") if part.strip())
            return line.text() or (None if item.optional else "")

        return Entry(widget, read, lambda: _text_problem(item, line.text()))

    def _browser(self, info: OptionInfo, line: QLineEdit) -> QToolButton:
        """Return the button that lets the user choose a path; data are a file or a folder."""
        button = named(QToolButton(), "Choose a path", "Choose a path")
        button.setText("…")
        if info.path == "data":
            menu = QMenu(button)
            menu.addAction(isolated(tr("&File…")), lambda: self._browse(info.label, "file", line))
            menu.addAction(isolated(tr("F&older…")), lambda: self._browse(info.label, "folder", line))
            for name in self._bundled:
                menu.addAction(tr("&Bundled Text: {}").format(name), partial(line.setText, name))
            open_menu(button, menu)
        else:
            button.clicked.connect(lambda: self._browse(info.label, info.path, line))
        return button

    def _browse(self, title: str, kind: str, line: QLineEdit) -> None:
        there = Path(os.path.expanduser(line.text()))
        folder = str(there.parent) if line.text() and os.path.isdir(there.parent) else self._folder
        mode = QFileDialog.FileMode
        mode_of = {"folder": mode.Directory, "file": mode.ExistingFile}
        dialog = file_dialog(self, title, mode_of.get(kind, mode.AnyFile), folder)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        if kind == "save":
            dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.fileSelected.connect(line.setText)
        dialog.open()


def _ticks(name: str, choices: Sequence[Choice], chosen: Sequence[str]) -> QListWidget:
    """Return a list to tick, with what is chosen first."""
    box = named(QListWidget(), name)
    box.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
    for choice in sorted(choices, key=lambda choice: choice.value not in chosen):
        line = QListWidgetItem(tr(choice.label), box)
        line.setData(Qt.ItemDataRole.UserRole, choice.value)
        line.setFlags(Qt.ItemFlag.ItemIsUserCheckable | Qt.ItemFlag.ItemIsEnabled)
        line.setCheckState(CHECKED if choice.value in chosen else Qt.CheckState.Unchecked)
    box.setMinimumHeight(MANY_HEIGHT)
    box.setSpacing(1)
    return box


def _text_problem(item: OptionField, text: str) -> str:
    """Return what is wrong with a text; empty if nothing is."""
    if not text.strip():
        return tr("Enter a path" if item.info.path else "Enter a text") if item.required else ""
    try:
        path = Reading.of(text)[0] if item.info.path == "data" else text
        place = os.path.abspath(os.path.expanduser(path))
        if item.info.path not in ("", "save") and not text.startswith("demo:") and not os.path.exists(place):
            return tr("There is no {}").format(place)
        if item.info.parse is not None and not item.several:
            item.info.parse(text)
    except (ValueError, WorkbenchError) as error:
        return tr(str(error))
    return ""


class PathField(QLineEdit):
    """A field that takes a dropped file or folder as its path."""

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dropped(event.mimeData()):
            event.acceptProposedAction()
        else:
            super().dragEnterEvent(event)

    def dropEvent(self, event: QDropEvent) -> None:
        path = dropped(event.mimeData())
        if path:
            event.acceptProposedAction()
            self.setText(path)
        else:
            super().dropEvent(event)


def dropped(data: QMimeData) -> str:
    """Return the one local file or folder that was dropped; empty for anything else."""
    urls = [url for url in data.urls() if url.scheme()]  # the others are comments (RFC 2483)
    if len(urls) != 1 or not urls[0].isLocalFile():
        return ""
    if urls[0].host() in ("localhost", QSysInfo.machineHostName().lower()):  # this computer (RFC 8089)
        urls[0].setHost("")
    path, lines = urls[0].toLocalFile(), bytes(data.data("text/uri-list").data()).split()
    own = [line for line in lines if line.startswith(b"file:") and line.isascii()]
    if "\ufffd" not in path or len(own) != 1:
        return path
    return os.fsdecode(unquote_to_bytes(urlsplit(own[0]).path))  # Qt has no name for what is not UTF-8


def with_key(text: str, used: set[str]) -> str:
    """Return ``text`` with a mnemonic: its first letter that is not in ``used``, to which it is added."""
    for place, letter in enumerate(text.lower()):
        if letter.isalpha() and letter not in used:
            used.add(letter)
            return f"{text[:place]}&{text[place:]}"
    return text

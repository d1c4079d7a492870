"""The forms of the plan: what each holds, who loads it, what is refused; a click writes one or repairs the plan."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QResizeEvent
from PySide6.QtWidgets import QApplication, QBoxLayout

from workbench.gui.context.worker import Worker
from workbench.gui.panels.panel import PanelPart
from workbench.gui.panels.plan.target import repair
from workbench.gui.shell import step_keys
from workbench.gui.shell.dialogs import SELECTABLE
from workbench.gui.shell.foreign import as_line
from workbench.gui.shell.forms import PathField
from workbench.gui.shell.widgets import button, column, fill, label, named, row
from workbench.gui.shell.words import tr
from workbench.gui.tables.fields import Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.insight.deployments import FORMS, Deployment, Form, command, deployments, loading, place
from workbench.planning.latest import same_objects
from workbench.session.workspace import State
from workbench.steps.files.export import EXPORT, ExportOptions

FIELDS = (
    Field("Form", lambda row: row.form.title, words=True, tip="The kind of file or folder that Export writes"),
    Field("Plan", lambda row: row.verdict, words=True, tooltip=lambda row: row.reasons,
          tip="What the runtime refuses of the plan"),
    Number("Tensors", lambda row: row.nbytes / 1e6, unit="MB", tip="Bytes of all tensors in this form"),
    Field("Loaded by", lambda row: row.form.loads, tip="The programs that load it"),
    Field("Holds", lambda row: row.holds, words=True, tip="The schemes of the plan, with their numbers of layers"),
)  # fmt: skip

EXPORT_TIP = "Write the plan in the selected form, and prove it"
COPY = "Copy the command line that writes the same"
LEAST_FOR_PATH = 200
"""Pixels of the path and its name beside the buttons."""

SAVE_FIRST = f"{COPY}; the session is saved first, whose plan it writes"


class DeployForms(PanelPart):
    """A row for each form; below, where it is written, and the buttons of the selected one."""

    shown: Callable[[], None] = staticmethod(lambda: None)
    """Called when other forms are shown."""

    def _build(self) -> None:
        self._basis: tuple[object, ...] = ()
        self._is_other, self._worker = True, Worker(self, self._show)
        self._suggested = ""
        self.table = RecordsView("Forms of the plan", FIELDS, lambda row: row.form.kind)
        self.table.setSelectionMode(RecordsView.SelectionMode.SingleSelection)
        self.table.horizontalHeader().setStretchLastSection(True)
        self.table.setMinimumHeight(2 * self.table.verticalHeader().defaultSectionSize())
        self.table.setMaximumHeight(self.table.verticalHeader().defaultSectionSize() * (len(FORMS) + 2))
        self.table.selectionModel().selectionChanged.connect(lambda *_: self._choose())
        self.place = named(PathField(), "Write to", "The file or folder to write")
        self.export = button("E&xport", self.write, EXPORT_TIP, role="primary")
        self.repair = button("Re&pair", self.repair_plan, "Give refused layers the nearest scheme that it runs")
        self.copy = button("Copy &Command", self.copy_command, COPY)
        self.folder = button("Open Fol&der", self.open_folder, "Show the folder that it is written to")
        title, buttons = label("&Write to", buddy=self.place), (self.export, self.repair, self.copy, self.folder)
        self.written = label(role="good", name="What was written", wrap=True)
        self.written.setTextInteractionFlags(SELECTABLE)
        self.written.hide()
        self._buttons = row(None, *buttons)
        self._line = row(place := row(title, self.place, stretch=self.place), self._buttons)
        self._line.setStretchFactor(place, 1)
        fill(self, column(self.table, self._line, self.written, stretch=self.table))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Let the buttons stand below the path where there is no room for both."""
        beside = self._buttons.minimumSize().width() + LEAST_FOR_PATH <= self.width()
        directions = QBoxLayout.Direction
        self._line.setDirection(directions.LeftToRight if beside else directions.TopToBottom)

    @property
    def chosen(self) -> Deployment | None:
        """The selected form."""
        return next(iter(self.table.selected()), None)

    def redraw(self, old: State, new: State) -> None:
        """Show the forms of the snapshot's plan; with a model or a target its form is selected, without a target the
        first that the plan can be written in."""
        aim = (new.session.model if new.session else None, new.target)
        basis = (new.assignments, *aim, new.path, new.dirty)
        if same_objects(basis, self._basis):
            return
        self._is_other |= not same_objects(aim, self._basis[1:3])
        self._basis = basis
        self.written.hide()  # it was another plan
        self._worker.ask(partial(deployments, new), len(new.assignments))

    def _show(self, rows: tuple[Deployment, ...]) -> None:
        target = self._drawn.target
        self.table.show_records(rows)
        for index in range(len(FIELDS) - 1):  # the last one takes the rest
            self.table.resizeColumnToContents(index)
        if rows and (self.chosen is None or self._is_other):
            self._is_other = False
            fitting = (each.form.target == target if target else each.is_possible for each in rows)
            self.table.selectRow(next((place for place, fits in enumerate(fitting) if fits), 0))
        self._choose()
        self.shown()

    def _choose(self) -> None:
        chosen = self.chosen
        for widget in (self.place, self.export, self.folder):
            widget.setEnabled(chosen is not None)
        self.copy.setEnabled(chosen is not None and chosen.is_possible)
        self.repair.setVisible(chosen is not None and bool(chosen.refused) and not chosen.unfit)
        self._fit()
        if chosen is None or self.state.session is None:
            return
        wants = EXPORT.wants(self.state.session, ExportOptions(kind=chosen.form.kind, out=""))
        reason = step_keys.why_not(self.state.session, wants) if chosen.is_possible else chosen.reasons
        self.export.setEnabled(not reason)
        self.export.setToolTip(tr(reason or EXPORT_TIP))
        if self.place.text() == self._suggested:  # else it is the user's
            self._suggest(chosen.form)
        saved = bool(command(self.state, chosen.form, self.place.text()))
        self.copy.setToolTip(tr(chosen.reasons if not chosen.is_possible else COPY if saved else SAVE_FIRST))

    def _suggest(self, form: Form) -> None:
        self._suggested = as_line(str(place(self.state, form)))
        self.place.setText(self._suggested)

    def write(self) -> None:
        """Write the selected form, and say what was written."""
        chosen, session = self.chosen, self.state.session
        if chosen is None or session is None:
            return
        if not self.place.text().strip():
            self._suggest(chosen.form)
            text = "name the file or folder to write first; the usual one stands there now"
            self.context.messages.say("Export: not now", text, "warning")
            return
        options = ExportOptions(kind=chosen.form.kind, out=self.place.text().strip())

        async def writing() -> None:
            paths = await self.context.runner.work(EXPORT.request(session, options))
            if paths is not None:
                self._show_written(chosen.form, options.out, paths)

        self.written.hide()
        self.context.tasks.start(writing())

    def _show_written(self, form: Form, out: str, paths: tuple[str, ...]) -> None:
        nbytes = sum(file.stat().st_size for path in paths if os.path.isfile(file := Path(path)))
        command = loading(form, out)
        then = tr("; load it with {}").format(command) if command else ""
        self.written.setText(tr("Wrote {} to {}").format(quantities.data_size(nbytes), out) + then)
        self.written.show()

    def repair_plan(self) -> None:
        """Repair what the selected form's runtime refuses, as one undoable step."""
        if self.chosen is not None:
            repair(self.context, self.state, self.chosen.form.target)

    def copy_command(self) -> None:
        """Copy the command line; it reads the session's file, which is written first where it is not as shown."""
        if self.chosen is not None:
            self.context.tasks.start(self._copy(self.chosen.form, self.place.text().strip()))

    async def _copy(self, form: Form, out: str) -> None:
        state = self.context.workspace.state
        if not command(state, form, out) and not await self.context.save():
            return
        QApplication.clipboard().setText(command(self.context.workspace.state, form, out))
        self.context.messages.say("Copied the command", "it writes the saved session's plan in the same form")

    def open_folder(self) -> None:
        """Open the nearest folder of the place that is there."""
        out = Path(os.path.expanduser(self.place.text().strip()))
        folder = next((each for each in (out, *out.parents) if os.path.isdir(each)), Path.home())
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))

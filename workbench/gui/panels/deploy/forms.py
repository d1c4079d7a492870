"""The forms of the plan as cards: what each holds, who loads it, what is refused; the chosen one is written."""

from __future__ import annotations

import os
from functools import partial
from itertools import pairwise
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QButtonGroup, QLineEdit, QScrollArea, QWidget

from workbench.deployment.exporters import exporter, exporter_options
from workbench.deployment.proof.child import missing_package
from workbench.gui.context.worker import Worker
from workbench.gui.panels.deploy.card import Card
from workbench.gui.panels.panel import PanelPart
from workbench.gui.panels.plan.target import repair
from workbench.gui.shell import step_keys
from workbench.gui.shell.copying import put
from workbench.gui.shell.dialogs import SELECTABLE
from workbench.gui.shell.foreign import as_line, as_tip
from workbench.gui.shell.forms import PathField
from workbench.gui.shell.widgets import button, fill, label, named, page, row, set_role
from workbench.gui.shell.words import tr
from workbench.insight import quantities
from workbench.insight.deployments import FORMS, Deployment, Form, command, deployments, loading, measured, place
from workbench.planning.latest import same_objects
from workbench.session.session import Session
from workbench.session.workspace import State
from workbench.steps.checks.runtime import AUTO, RUNTIME, RuntimeOptions, proofs
from workbench.steps.files.export import EXPORT, ExportOptions

EXPORT_TIP = "Write the plan in the selected form, and prove it"
COPY = "Copy the command line that writes the same"
SAVE_FIRST = f"{COPY}; the session is saved first, whose plan it writes"


class DeployForms(PanelPart):
    """A card for each form, the possible ones first; the chosen one holds where it is written, and the buttons."""

    runtime, file = AUTO, ""
    """The runtime chosen last, and the exported file to run in it (empty: one of the moment)."""

    def _build(self) -> None:
        self._basis: tuple[object, ...] = ()
        self._is_other, self._worker = True, Worker(self, self._show)
        self._suggested = ""
        self.rows: tuple[Deployment, ...] = ()
        self.chosen: Deployment | None = None
        """The chosen form."""
        self.cards = {form.kind: Card(form, self.repair_plan) for form in FORMS}
        heads = QButtonGroup(self)
        for each in self.cards.values():
            heads.addButton(each.head)
        heads.buttonClicked.connect(self._clicked)
        self._fields = self._chosen_part()
        self._open(FORMS[0].kind)  # until there is a plan
        self._list = page(*self.cards.values(), None, top=0, gap=4)
        self.area = QScrollArea(widgetResizable=True)
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # its cards have the keyboard
        self.area.setFrameShape(QScrollArea.Shape.NoFrame)
        self.area.setWidget(self._list)
        fill(self, self.area, top=0)

    def _chosen_part(self) -> QWidget:
        """Return what only the chosen card holds."""
        self.place = named(PathField(), "Write to", "The file or folder to write")
        self.settings = named(QLineEdit(), "Options")
        self.settings.setPlaceholderText(tr("the defaults"))
        self._settings_title = label("Op&tions", buddy=self.settings)
        self.export = button("E&xport", self.write, EXPORT_TIP, role="primary")
        self.copy = button("Copy &Command", self.copy_command, COPY)
        self.folder = button("Open Fol&der", self.open_folder, "Show the folder that it is written to")
        self.measure_button = button("Mea&sure…", self._measure, RUNTIME.summary)
        self.measured = label(name="What was measured", wrap=True)
        self.written = label(role="good", name="What was written", wrap=True)
        for line in (self.measured, self.written):
            line.setTextInteractionFlags(SELECTABLE)
        self.written.hide()
        where = row(label("&Write to", buddy=self.place), self.place, self._settings_title, self.settings)
        where.setStretchFactor(self.place, 3)
        where.setStretchFactor(self.settings, 1)
        buttons = row(self.export, self.copy, self.folder, self.measure_button, None)
        result = page(self.measured, where, buttons, self.written, top=0, gap=4)
        result.setContentsMargins(6, 0, 6, 6)
        return result

    def redraw(self, old: State, new: State) -> None:
        """Show the forms of the snapshot's plan; with a model or a target its form is selected, without a target the
        first that the plan can be written in."""
        aim = (new.session.model if new.session else None, new.target)
        runs = new.session.results if new.session else None
        basis = (new.assignments, *aim, runs, new.path, new.dirty)
        if same_objects(basis, self._basis):
            return
        self._is_other |= not same_objects(aim, self._basis[1:3])
        if not same_objects(basis[:3], self._basis[:3]):
            self.written.hide()  # it was another plan
        self._basis = basis
        self._worker.ask(partial(deployments, new), len(new.assignments))

    def _show(self, rows: tuple[Deployment, ...]) -> None:
        target, kind = self._drawn.target, self.chosen.form.kind if self.chosen else ""
        moved = [each.form.kind for each in rows] != [each.form.kind for each in self.rows]
        self.rows = rows
        if moved:
            self._arrange()
        for each in rows:
            self.cards[each.form.kind].show_deployment(each)
        if rows and (not kind or self._is_other):
            self._is_other = False
            fitting = (each for each in rows if (each.form.target == target if target else each.is_possible))
            kind = next(fitting, rows[0]).form.kind
        self._choose(kind)

    def _arrange(self) -> None:
        """Put the cards in the order of the rows, and let Tab go through them so."""
        layout = self._list.layout()
        assert layout is not None
        for each in reversed(self.rows):
            layout.removeWidget(self.cards[each.form.kind])
            layout.insertWidget(0, self.cards[each.form.kind])  # type: ignore[attr-defined]  # it is a column
        fields = self.place, self.settings, self.export, self.copy, self.folder, self.measure_button
        stops: list[QWidget] = []
        for each in self.rows:
            card = self.cards[each.form.kind]
            stops += card.head, card.repair, *(fields if self._fields.parent() is card else ())
        for before, after in pairwise(stops):
            QWidget.setTabOrder(before, after)

    def _clicked(self, head: QWidget) -> None:
        self._choose(next(kind for kind, card in self.cards.items() if card.head is head))

    def _choose(self, kind: str) -> None:
        """Open the card of a form, and say in it what can be done with it."""
        changed = self.chosen is None or self.chosen.form.kind != kind
        self.chosen = next((each for each in self.rows if each.form.kind == kind), None)
        if self.chosen is None or self.state.session is None:
            return
        if changed:
            self._open(kind)
            self._arrange()
            card = self.cards[kind]  # its place is known once it is laid out
            QTimer.singleShot(0, card, partial(self._scroll_to, card))
        chosen, session = self.chosen, self.state.session
        wants = EXPORT.wants(session, ExportOptions(kind=kind, out=""))
        reason = step_keys.why_not(session, wants) if chosen.is_possible else chosen.reasons
        self.export.setEnabled(not reason)
        self.export.setToolTip(as_tip(tr(reason or EXPORT_TIP)))
        self.copy.setEnabled(chosen.is_possible)
        if self.place.text() == self._suggested:  # else it is the user's
            self._suggest(chosen.form)
        saved = bool(command(self.state, chosen.form, self.place.text()))
        self.copy.setToolTip(as_tip(tr(chosen.reasons if not chosen.is_possible else COPY if saved else SAVE_FIRST)))
        self._offer_measuring(chosen, session)
        self.measured.setText("\n".join(measured(chosen.form, session, proofs(session))))
        self.measured.setVisible(bool(self.measured.text()))

    def _scroll_to(self, card: Card) -> None:
        """Show the whole card, where there is room, and its head at any rate."""
        self.area.ensureWidgetVisible(card, 0, 0)
        self.area.ensureVisible(0, card.y(), 0, 0)

    def _open(self, kind: str) -> None:
        for each in self.cards.values():
            each.head.setChecked(each.form.kind == kind)
            set_role(each, "chosen" if each.form.kind == kind else "")
        card = self.cards[kind]
        card.layout().addWidget(self._fields)  # type: ignore[union-attr]  # every card has one
        self.setFocusProxy(card.head)
        self.written.hide()
        options = exporter_options(exporter(kind))
        self.settings.clear()
        for widget in (self._settings_title, self.settings):
            widget.setVisible(bool(options))
        self.settings.setToolTip(as_tip(", ".join(f"{name}={value}" for name, value in options.items())))

    def _suggest(self, form: Form) -> None:
        self._suggested = as_line(str(place(self.state, form)))
        self.place.setText(self._suggested)

    @property
    def _options(self) -> tuple[str, ...]:
        return tuple(filter(None, map(str.strip, self.settings.text().split(","))))

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
        options = ExportOptions(kind=chosen.form.kind, out=self.place.text().strip(), settings=self._options)

        async def writing() -> None:
            paths = await self.context.runner.work(EXPORT.request(session, options))
            if paths is not None and self.chosen is not None and self.chosen.form is chosen.form:
                self._show_written(chosen.form, options.out, paths)

        self.written.hide()
        self.context.tasks.start(writing())

    def _show_written(self, form: Form, out: str, paths: tuple[str, ...]) -> None:
        nbytes = sum(file.stat().st_size for path in paths if os.path.isfile(file := Path(path)))
        command = loading(form, out)
        then = tr("; load it with {}").format(command) if command else ""
        self.written.setText(tr("Wrote {} to {}").format(quantities.data_size(nbytes), out) + then)
        self.written.show()

    def _measure(self) -> None:
        """Ask how the plan is run in a runtime of the chosen form, and run it there, in the engine's machine."""
        self.file = self.place.text().strip() if self.written.isVisible() else ""
        self.context.trigger(RUNTIME.name)

    def _offer_measuring(self, chosen: Deployment, session: Session) -> None:
        """Offer to measure the form where a runtime of it is installed and runs the plan; else say why not."""
        missing = {name: missing_package(name) for name, _ in chosen.form.runtimes}
        self.runtime = next((name for name, lack in missing.items() if not lack), AUTO)
        reason = step_keys.why_not(session, (*RUNTIME.requires, *RUNTIME.wants(session, RuntimeOptions())))
        reason = reason or ("" if chosen.is_possible else chosen.reasons)
        reason = reason or ("\n".join(missing.values()) if self.runtime == AUTO else "")
        self.measure_button.setVisible(bool(missing))
        self.measure_button.setEnabled(not reason)
        self.measure_button.setToolTip(as_tip(tr(reason or RUNTIME.summary)))

    def repair_plan(self, form: Form) -> None:
        """Repair what a form's runtime refuses, as one undoable step."""
        self._clicked(self.cards[form.kind].head)
        repair(self.context, self.state, form.target)

    def copy_command(self) -> None:
        """Copy the command line; it reads the session's file, which is written first where it is not as shown."""
        if self.chosen is not None:
            self.context.tasks.start(self._copy(self.chosen.form, self.place.text().strip(), self._options))

    async def _copy(self, form: Form, out: str, settings: tuple[str, ...]) -> None:
        if not command(self.context.workspace.state, form, out) and not await self.context.save():
            return
        put(command(self.context.workspace.state, form, out, settings))
        self.context.messages.say("Copied the command", "it writes the saved session's plan in the same form")

    def open_folder(self) -> None:
        """Open the nearest folder of the place that is there."""
        out = Path(os.path.expanduser(self.place.text().strip()))
        folder = next((each for each in (out, *out.parents) if os.path.isdir(each)), Path.home())
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))

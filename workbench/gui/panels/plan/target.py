"""What the plan must run on: the choice of a target, what it cannot run, and one click that repairs the plan."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

from workbench.deployment.networks import unknown_network
from workbench.deployment.targets import RUNTIMES, target, target_names
from workbench.gui.context.context import Context
from workbench.gui.context.worker import FEW, Worker
from workbench.gui.panels.panel import PanelPart
from workbench.gui.shell.widgets import button, combo, fill, fitted, label, row, set_role
from workbench.gui.shell.words import tr
from workbench.insight import quantities
from workbench.insight.legality import Refusal, by_reason, latest_refusals, refusals, unknown_rounding
from workbench.insight.legality import repair as repaired
from workbench.insight.roles import lacks_schemes
from workbench.planning.latest import same_objects
from workbench.session.contents import ANY
from workbench.session.session import Session
from workbench.session.workspace import State


class PlanTarget(PanelPart):
    """A line: the target, the number of violations, ``Select`` and ``Repair``; a repair is one undoable step."""

    def _build(self) -> None:
        self._basis: tuple[object, ...] = ()
        self._refusals: tuple[Refusal, ...] = ()
        self._worker = Worker(self, self.context.workspace.show_target)
        self.box = combo(
            "Target of the plan", [(ANY, ""), *((target(name).title, name) for name in target_names())],
            lambda: self._worker.ask(partial(_judged, self.state, self.box.currentData() or ""),
                                     len(self.state.assignments)),
            "What the plan must run on: only the schemes that it runs are offered", letters=20,
        )  # fmt: skip
        self.box.insertSeparator(1 + len(RUNTIMES))
        self.verdict = fitted(name="What the target cannot run")
        self.select_button = button("Se&lect", self.select, "Select the layers that the target cannot run")
        tip = "Give each of them the nearest scheme that the target runs"
        self.repair_button = button("Re&pair", lambda: repair(self.context, self.state, self.state.target), tip)
        self.title, buttons = label("&Target", buddy=self.box), (self.select_button, self.repair_button)
        fill(self, row(self.title, self.box, self.verdict, *buttons, stretch=self.verdict), top=0)

    def redraw(self, old: State, new: State) -> None:
        """Show what the snapshot's target says of its plan."""
        session = new.session
        rounding = unknown_rounding(session, new.target, new.metric) if session else ""
        basis = (new.assignments, new.target, session.model if session else None, bool(rounding))
        if same_objects(basis, self._basis):
            return
        self._basis = basis
        self.box.setCurrentIndex(max(self.box.findData(new.target), 0))
        self._refusals = (
            latest_refusals(session.plan, session.model.layers, new.target, new.assignments) if session else ()
        )  # fmt: skip
        layers = len({name for refusal in self._refusals for name in refusal.layers})
        unknown = unknown_network(new.target, session.model) if session else ""
        refused = f"{quantities.plural(layers, 'layer')} refused" if layers else "runs the whole plan"
        short = "not this model" if unknown else refused if new.target else "every scheme is allowed"
        reasons = [unknown] if unknown else [refusal.sentence for refusal in self._refusals[:1]]
        if rounding and not reasons:
            reasons = ["it rounds inputs as well, which a search does not count yet"]
        self.verdict.say(*(f"{tr(short)}: {tr(reason)}" for reason in reasons), short)
        lacking = rounding and f"{rounding}. Sensitivity (F6) by the predicted KL of inputs has a search count it."
        self.verdict.setToolTip("\n\n".join(filter(None, (unknown or by_reason(self._refusals), lacking))))
        set_role(self.verdict, "error" if unknown or layers else "muted")
        for action in (self.select_button, self.repair_button):
            action.setVisible(bool(layers))

    def select(self) -> None:
        """Select the violating layers."""
        self.context.workspace.select(name for refusal in self._refusals for name in refusal.layers)


def repair(context: Context, state: State, name: str) -> None:
    """Repair what the target ``name`` cannot run of the plan, as one undoable step.

    Say what it made of the size and what finds a better plan, or what could not be repaired.
    """
    if state.session is not None and name and state.assignments:
        context.tasks.start(_repair(context, state, state.session, name))


async def _repair(context: Context, state: State, session: Session, name: str) -> None:
    """Look for the repair, of thousands of layers in a thread; what was edited meanwhile is left alone."""
    work = partial(repaired, session.plan, session.model.layers, name, state.assignments)
    result = work() if len(state.assignments) <= FEW else await asyncio.to_thread(work)
    if context.workspace.state.session is not session:
        return
    title, count = target(name).title, quantities.plural(len(result.changes), "layer")
    if result.changes:
        context.workspace.edit(f"Repair {count} for {title}", lambda session: replace(session, plan=result.plan))
    if result.left:
        context.messages.say("Not everything could be repaired", result.left[0].sentence, "warning")
    elif result.changes:
        context.messages.say(f"Repaired {count}", _outcome(state, context.workspace.state, name))


def _judged(state: State, name: str) -> str:
    """Return the name of a target once it is known what it refuses, as is then shown within a frame."""
    if state.session is not None:
        refusals(state.session.plan, state.session.model.layers, name, state.assignments)
    return name


def _outcome(before: State, after: State, name: str) -> str:
    """Return what a repair for the target ``name`` made of the size, and what comes next."""
    said = tr("for {}").format(target(name).title)
    if before.totals is not None and after.totals is not None:
        sizes = [quantities.data_size(each.nbytes) for each in (before.totals, after.totals)]
        said = tr("for {}: {} before, {} now").format(target(name).title, *sizes)
    if after.session is None or after.session.table(after.metric) is None:
        return said
    scored = not lacks_schemes(after.session, after.metric, name, after.assignments)
    search = (
        "a search (F7) finds the best plan within the budget" if scored else "Score (F6) tells what its schemes cost"
    )
    return f"{said}; {tr(search)}"

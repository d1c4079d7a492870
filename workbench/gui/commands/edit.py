"""The menu Edit: undo, the plan of the selected layers, and the selection."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.gui.commands.command import Command
from workbench.gui.context import edits
from workbench.insight import legality, quantities, schemes
from workbench.insight.decisions import decisions
from workbench.insight.layer_facts import PlanFacts
from workbench.planning.plan import KEEP
from workbench.session.session import Session

if TYPE_CHECKING:
    from workbench.gui.panels.layers import LayersPanel


def layers_panel(command: Command, *, reveal: bool = True) -> LayersPanel:
    """Return the panel of the layers, brought to the front."""
    from workbench.gui.panels.layers import LayersPanel

    if reveal:
        command.window.reveal("layers")
    return command.window.panel(LayersPanel)


def undo(command: Command) -> None:
    """Undo the last edit and say which it was."""
    context = command.context
    name = context.workspace.state.undo_name
    context.workspace.undo()
    context.messages.say("Undone", name)


def redo(command: Command) -> None:
    """Redo the edit that was undone last and say which it was."""
    context = command.context
    name = context.workspace.state.redo_name
    context.workspace.redo()
    context.messages.say("Redone", name)


def keep(command: Command) -> None:
    """Keep the selected layers in floating point."""
    workspace = command.context.workspace
    edits.assign(workspace, workspace.state.selection, weights=KEEP)


def lock(command: Command) -> None:
    """Lock the selected layers, or unlock them if all are locked."""
    workspace = command.context.workspace
    names = workspace.state.selection
    edits.lock(workspace, names, not set(names) <= command.session.locked)


def repair(command: Command) -> None:
    """Give layers that the target cannot run the nearest scheme that it runs."""
    from workbench.gui.panels.plan.target import repair

    state = command.context.workspace.state
    repair(command.context, state, state.target)


def select_all(command: Command) -> None:
    """Select every layer."""
    command.context.workspace.select(layer.name for layer in command.session.model.layers)


def next_decision(command: Command) -> None:
    """Select the layer where more bits save most loss for each byte; from the one that was selected so, the next."""
    context = command.context
    state = context.workspace.state
    facts = PlanFacts(state.session, state.assignments, state.metric)
    ordered = decisions(facts)
    if not ordered or facts.table is None:
        context.messages.say("No layer can be improved", "No unlocked layer loses less with a larger scheme.")
        return
    names = [each.layer for each in ordered]
    panel = layers_panel(command)
    at = names.index(panel.decided) + 1 if state.selection == (panel.decided,) and panel.decided in names else 0
    chosen = ordered[at % len(ordered)]
    panel.decided = chosen.layer
    panel.filter.clear()
    context.workspace.select([chosen.layer])
    place = f"{names.index(chosen.layer) + 1:,} of {len(ordered):,}, most loss saved for each byte first"
    context.messages.say(quantities.marked_in(chosen.sentence(facts.table.unit)), place)


def change_bits(command: Command, direction: int) -> None:
    """Give the selected layers the next larger (1) or smaller (-1) scheme, of those that are scored where one is."""
    state = command.context.workspace.state
    table = command.session.table(state.metric)
    kinds: dict[tuple[object, ...], list[str]] = {}
    for name in state.selection:
        kinds.setdefault(legality.kind_of(command.session.model.by_name[name], state.assignments), []).append(name)
    changes: dict[str, list[str]] = {}
    for names in kinds.values():
        choices = legality.weight_choices(
            state.session, state.assignments, target=state.target, metric=state.metric, layers=names[:1]
        )  # fmt: skip
        now = state.assignments[names[0]].weights
        known = [name for name in choices if table is None or name == KEEP or name in table.column]
        scheme = schemes.neighbour(now, known, direction) or schemes.neighbour(now, choices, direction)
        if scheme is not None:
            changes.setdefault(scheme, []).extend(names)
    if not changes:
        return
    count = sum(len(names) for names in changes.values())
    title = f"{'More' if direction > 0 else 'Fewer'} bits for {quantities.plural(count, 'layer')}"

    def change(session: Session) -> Session:
        plan = session.plan
        for scheme, names in changes.items():
            plan = plan.assign(names, weights=scheme)
        return replace(session, plan=plan)

    command.context.workspace.edit(title, change)

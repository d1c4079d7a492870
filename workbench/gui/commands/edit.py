"""The menu Edit: undo, the plan of the selected layers, and the selection."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.gui.commands.command import Command
from workbench.gui.context import edits
from workbench.insight import legality, quantities, schemes
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

    repair(command.context)


def select_all(command: Command) -> None:
    """Select every layer."""
    command.context.workspace.select(layer.name for layer in command.session.model.layers)


def change_bits(command: Command, direction: int) -> None:
    """Give the selected layers the next larger (1) or smaller (-1) scheme."""
    state = command.context.workspace.state
    choices = legality.weight_choices(state.session, state.assignments, metric=state.metric)
    changes: dict[str, list[str]] = {}
    for name in state.selection:
        scheme = schemes.neighbour(state.assignments[name].weights, choices, direction)
        if scheme is not None:
            changes.setdefault(scheme, []).append(name)
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

"""The menu Edit: undo, the plan of the selected layers, and what is selected."""

from __future__ import annotations

from dataclasses import replace

from workbench.gui.commands.command import Command
from workbench.gui.context import edits
from workbench.insight import legality, quantities, schemes
from workbench.planning.plan import KEEP
from workbench.session.session import Session


def keep(command: Command) -> None:
    """Keep the selected layers in floating point."""
    workspace = command.context.workspace
    edits.assign(workspace, workspace.state.selection, weights=KEEP)


def set_scheme(command: Command) -> None:
    """Open the menu of schemes."""
    from workbench.gui.panels.layers import LayersPanel

    command.window.reveal("layers")
    command.window.panel(LayersPanel).choose_scheme()


def more_bits(command: Command) -> None:
    """Give the selected layers the next larger scheme."""
    _step(command, 1)


def fewer_bits(command: Command) -> None:
    """Give the selected layers the next smaller scheme."""
    _step(command, -1)


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


def select_similar(command: Command) -> None:
    """Select the layers that are like the selected ones."""
    from workbench.gui.panels.layers import LayersPanel

    command.window.panel(LayersPanel).select_similar(command.context.workspace.state.selection)


def columns(command: Command) -> None:
    """Open the menu of the layers' columns."""
    from workbench.gui.panels.layers import LayersPanel

    command.window.reveal("layers")
    command.window.panel(LayersPanel).choose_columns()


def find(command: Command) -> None:
    """Go to the filter of the layers."""
    from workbench.gui.panels.layers import LayersPanel

    command.window.reveal("layers")
    command.window.panel(LayersPanel).go_to_filter()


def _step(command: Command, direction: int) -> None:
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

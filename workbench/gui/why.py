"""Why a layer has its scheme: what its steps along the front buy, and at which size of the model they are taken."""

from __future__ import annotations

import numpy as np

from workbench.gui import quantities
from workbench.planning.search import Front
from workbench.runtime.workspace import State


def why(front: Front | None, state: State) -> str:
    """Return a sentence or three about the first selected layer; empty where there is nothing to say."""
    session, totals = state.session, state.totals
    if front is None or session is None or totals is None or not state.selection:
        return ""
    name = state.selection[0]
    table = session.sensitivities.get(state.metric)
    unit = "nats" if table is not None and table.unit == "nats" else "of the loss"
    held = state.assignments[name].weights if name in state.assignments else ""
    if name in session.locked:
        return f"{name} is locked to {held}: searches leave it alone."
    place = _group_of(front, name)
    if place is None:
        return f"{name} is {held}; no search decides about it, because it has no scores of its own."
    index = front.index_within(totals.nbytes)
    said = [f"Shadow price here: {quantities.number(front.price(totals.nbytes))} {unit} avoided by the next byte."]
    steps = np.flatnonzero(front.moves.group == place)
    options = front.space.groups[place].options
    taken = [int(step) for step in steps if step < index]
    ahead = [int(step) for step in steps if step >= index]
    best = options[int(front.moves.choice[taken[-1]]) if taken else int(front.moves.start[place])].weights
    said.append(f"At this size the front gives {name} {best}{'' if best == held else f' (the plan has {held})'}.")
    if ahead:
        said.append(_next(front, ahead[0], options[int(front.moves.choice[ahead[0]])].weights, unit))
    else:
        said.append("No step above it avoids any loss.")
    return " ".join(said)


def _group_of(front: Front, name: str) -> int | None:
    for place, group in enumerate(front.space.groups):
        if name in group.layers:
            return place
    return None


def _next(front: Front, step: int, scheme: str, unit: str) -> str:
    """Say what the layer's next step costs, avoids, and when it is its turn."""
    moves = front.moves
    size = quantities.data_size(float(moves.more[step]) / 8)
    return (
        f"Its next step, to {scheme}, takes {size} and avoids {quantities.number(float(moves.less[step]))} {unit}, "
        f"{quantities.number(float(moves.price[step]) * 8)} a byte: its turn comes at "
        f"{quantities.data_size(float(front.nbytes[step + 1]))} in all."
    )

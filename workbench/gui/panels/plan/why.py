"""Why the selected layer has its scheme, and what the next byte buys, in words."""

from __future__ import annotations

from workbench.errors import WorkbenchError
from workbench.insight import quantities
from workbench.measurement.units import short_unit
from workbench.planning.explain import explain, next_purchase
from workbench.planning.search.search import Front
from workbench.session.workspace import State


def why(front: Front | None, state: State) -> str:
    """Return a few sentences about the first selected layer; empty where there is nothing to say."""
    session, totals = state.session, state.totals
    if front is None or session is None or totals is None or not state.selection or not state.assignments:
        return ""
    name, table = state.selection[0], session.table(state.metric)
    try:
        explanation = explain(front, state.assignments, name, table)
    except WorkbenchError as error:
        return str(error)
    unit = (short_unit(table.unit) if table is not None else "") or "of the loss"
    bought = next_purchase(front, totals.nbytes)
    if bought is None:
        return f"{name}: {explanation.sentence}. Nothing that costs bytes avoids any loss."
    whom = bought.layers[0] if len(bought.layers) == 1 else quantities.plural(len(bought.layers), "layer")
    return (
        f"{name}: {explanation.sentence}. The next {quantities.data_size(bought.nbytes)} take {whom} from "
        f"{bought.before} to {bought.after} and avoid {quantities.number(bought.loss)} {unit}."
    )

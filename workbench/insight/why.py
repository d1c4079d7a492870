"""Why a layer has its scheme, and what the next byte buys, in words."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.errors import WorkbenchError
from workbench.insight import quantities
from workbench.measurement.units import short_unit
from workbench.planning.explain import explain, next_purchase
from workbench.planning.plan import Assignment
from workbench.planning.search.search import Front
from workbench.planning.totals import Totals
from workbench.sensitivity.table import Sensitivity


def why(
    front: Front, layer: str, assignments: Mapping[str, Assignment], totals: Totals, table: Sensitivity | None
) -> str:
    """Return a few sentences about a layer of a plan; what is wrong where it cannot be explained."""
    try:
        explanation = explain(front, assignments, layer, table)
    except WorkbenchError as error:
        return str(error)
    unit = (short_unit(table.unit) if table is not None else "") or "of the loss"
    bought = next_purchase(front, totals.nbytes)
    if bought is None:
        return f"{layer}: {explanation.sentence}. Nothing that costs bytes avoids any loss."
    whom = bought.layers[0] if len(bought.layers) == 1 else quantities.plural(len(bought.layers), "layer")
    return (
        f"{layer}: {explanation.sentence}. The next {quantities.data_size(bought.nbytes)} take {whom} from "
        f"{bought.before} to {bought.after} and avoid {quantities.number(bought.loss)} {unit}."
    )

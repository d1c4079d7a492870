"""Every fact that is known of each layer of a plan, as text: the table of a report."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.insight import quantities
from workbench.planning.plan import KEEP, Assignment
from workbench.planning.totals import layer_bits
from workbench.session.session import Session

HEADINGS = ["Layer", "Kind", "Shape", "Weights", "Inputs", "Algorithm", "Bits", "Size", "Loss", "Locked"]


def layer_rows(session: Session, assignments: Mapping[str, Assignment], metric: str) -> list[list[str]]:
    """Return the headings and a row for each layer; only the headings where the plan cannot be resolved."""
    rows = [HEADINGS]
    if not assignments:
        return rows
    table = session.table(metric)
    for layer in session.model.layers:
        given = assignments[layer.name]
        kept = given.weights == KEEP
        bits = layer_bits(layer, given.weights)
        loss = 0.0 if kept else None if table is None else table.of(layer.name, given.weights)
        rows.append([
            layer.name, layer.kind.value, quantities.shape(layer.shape),
            "tied" if layer.tied_to else f"kept ({layer.dtype})" if kept else given.weights,
            given.inputs or "", "" if kept else given.algorithm, f"{bits / max(layer.parameters, 1):.2f}",
            quantities.data_size(bits / 8), quantities.number(loss), "yes" if layer.name in session.locked else "",
        ])  # fmt: skip
    return rows

"""Losses of layers by scheme, and the measured ones beside the predicted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench.console.command import Outcome
from workbench.console.report import Report, Table, row
from workbench.insight.quantities import plural
from workbench.readable import few
from workbench.sensitivity.table import Sensitivity
from workbench.steps.checks.refine import close_decisions


def scored(outcome: Outcome[Any, Sensitivity]) -> Report:
    """Return the whole table; a cell that was not computed is null.

    ``forms`` says by which form of the prediction each layer's losses came.
    """
    table = outcome.result
    unscored = [name for name, losses in zip(table.layers, table.score, strict=True) if np.isnan(losses).all()]
    notes = [note for note in outcome.session.notes if note.startswith(f"{table.metric}: ")]
    if unscored:
        notes.append(
            f"{few(unscored)} could not be scored (no data reached it, or its weights are not finite): a search asks "
            "for data that reach it, or that you lock it; weights that are not finite stay as they are stored"
        )
    rows = [
        {"layer": name, **dict(zip(table.schemes, losses, strict=True))}
        for name, losses in zip(table.layers, table.score.tolist(), strict=True)
    ]
    forms, newton, corrected = _forms(table), not outcome.session.model.output.is_logits, table.corrected
    lines = [
        "measured, since no gradient tells what they decide: " + plural(len(layers), "layer") if form == "measured" else
        f"predicted by the {form} form{' of Gauss-Newton' if newton else ''}{how}: {plural(len(layers), 'layer')}"
        for form, every in forms.items() for how, of in (("", False), (", corrected by measured cells", True))
        if (layers := [name for name in every if (name in corrected) is of])
    ]  # fmt: skip
    columns = " | ".join(["layer", *table.schemes])
    return Report(
        facts=row(table, "metric unit layers schemes score", forms=forms, gauss_newton=newton),
        parts=[f"{table.metric} in {table.unit}", Table(rows=rows, columns=columns), *lines],
        notes=notes,
    )


def _forms(table: Sensitivity) -> dict[str, list[str]]:
    """Return the layers of each form of the prediction; empty for a table of another metric."""
    if table.metric != "predicted_kl":
        return {}
    sampled = set() if table.directions is None else set(table.directions.layers)
    known = [name for name, losses in zip(table.layers, table.score, strict=True) if not np.isnan(losses).all()]
    predicted = [name for name in known if name not in table.measured]
    return {
        "kronecker": [name for name in predicted if name not in sampled],
        "directional": [name for name in predicted if name in sampled],
        "measured": [name for name in known if name in table.measured],
    }


def refined(outcome: Outcome[Any, Sensitivity]) -> Report:
    """Return the measured cells beside their predictions, in the order in which they were measured."""
    session, bits = outcome.session, outcome.options.bits_per_weight
    cells = close_decisions(session, outcome.options)
    tables = {name: session.sensitivities[f"{name}_kl"] for name in ("predicted", "measured")}
    rows = [
        {"layer": layer, "scheme": scheme, **{name: table.of(layer, scheme) for name, table in tables.items()}}
        for layer, scheme in cells
    ]
    count = sum(not math.isnan(tables["measured"].of(*cell)) for cell in cells)
    return Report(
        facts={"bits_per_weight": bits, "measured": count},
        parts=[
            f"{count} cells decide closely at {bits:g} bits per weight; in nats",
            Table(key="cells", rows=rows, columns="layer | scheme | predicted | measured"),
        ],
    )

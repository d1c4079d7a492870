"""Losses of layers by scheme, the measured ones beside the predicted, and calibrated ranges."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np

from workbench.console.report import Report, Row, Table
from workbench.console.step_command import Outcome
from workbench.errors import MissingResultError, PlanError, nearest
from workbench.numerics.ranges import REGISTRY
from workbench.planning.plan import Assignment, Rule
from workbench.sensitivity.table import Sensitivity
from workbench.session.calibrated_ranges import ranges_of_plan
from workbench.session.session import Session
from workbench.steps.checks.refine import RefineOptions, close_decisions
from workbench.steps.score import ScoreOptions


def scored(outcome: Outcome[ScoreOptions, Sensitivity]) -> Report:
    """Return the whole table; a cell that was not computed is null.

    ``forms`` says by which form of the prediction each layer's losses came.
    """
    table, model, notes = outcome.result, outcome.session.model, outcome.session.notes
    unscored = [name for name, row in zip(table.layers, table.score, strict=True) if np.isnan(row).all()]
    mine = [note for note in notes if note.startswith(f"{table.metric}: ")]
    if unscored:
        mine.append(
            f"{', '.join(unscored)} could not be scored (no data reached it, or its weights are not finite): a search "
            "leaves it in floating point"
        )
    rows = [
        {"layer": name, **dict(zip(table.schemes, row, strict=True))}
        for name, row in zip(table.layers, table.score.tolist(), strict=True)
    ]
    forms, newton = _forms(table), not model.output.is_logits
    return Report(
        facts={
            "metric": table.metric, "unit": table.unit, "layers": table.layers, "schemes": table.schemes,
            "score": table.score.tolist(), "forms": forms, "gauss_newton": newton, "notes": mine,
        },
        parts=[
            f"{table.metric} in {table.unit}",
            Table(rows=rows, columns=" | ".join(["layer", *table.schemes])),
            *(
                f"predicted by the {form} form{' of Gauss-Newton' if newton else ''}: {len(layers)} layers"
                for form, layers in forms.items() if layers
            ),
        ],
        notes=mine,
    )  # fmt: skip


def _forms(table: Sensitivity) -> dict[str, list[str]]:
    """Return the layers of each form of the prediction; empty for a table of another metric."""
    if table.metric != "predicted_kl":
        return {}
    sampled = set() if table.directions is None else set(table.directions.layers)
    rows = zip(table.layers, table.score, strict=True)
    known = [name for name, row in rows if not np.isnan(row).all()]
    return {
        "kronecker": [name for name in known if name not in sampled],
        "directional": [name for name in known if name in sampled],
    }


def refined(outcome: Outcome[RefineOptions, Sensitivity]) -> Report:
    """Return the measured cells beside their predictions, in the order in which they were measured."""
    session, bits = outcome.session, outcome.options.bits_per_weight
    cells = close_decisions(session, outcome.options)
    predicted, measured = session.sensitivities["predicted_kl"], session.sensitivities["measured_kl"]
    rows = [
        {
            "layer": layer, "scheme": scheme, "predicted": predicted.of(layer, scheme),
            "measured": measured.of(layer, scheme),
        }
        for layer, scheme in cells
    ]  # fmt: skip
    count = sum(not math.isnan(measured.of(*cell)) for cell in cells)
    return Report(
        facts={"bits_per_weight": bits, "measured": count},
        parts=[
            f"{count} cells decide closely at {bits:g} bits per weight; in nats",
            Table(key="cells", rows=rows, columns="layer | scheme | predicted | measured"),
        ],
    )


def ranges(session: Session, pattern: str, tap: str) -> Report:
    """Return the range of every method and the one in force, for the layers that match.

    Raises PlanError where the pattern matches nothing, MissingResultError where nothing was calibrated.
    """
    rule = Rule(pattern=pattern, assignment=Assignment())
    names = [layer.name for layer in session.model.layers if rule.matches(layer.name)]
    if not names:
        raise PlanError(f"the pattern {pattern!r} matches no layer{nearest(pattern, session.model.by_name)}")
    in_force = ranges_of_plan(session, session.plan)
    layers: list[Row] = []
    rows: list[Row] = []
    for name in names:
        by_method = [session.ranges.get((name, tap, method)) for method in REGISTRY.names()]
        entries = [asdict(calibrated) for calibrated in by_method if calibrated is not None]
        if not entries:
            continue
        used = in_force.get((name, tap))
        mine = None if used is None else asdict(used)
        layers.append({"layer": name, "ranges": entries, "in_force": mine})
        shown = [*entries, *([mine] if mine is not None and mine not in entries else [])]
        rows += [{"layer": name, "used": entry == mine, **entry} for entry in shown]
    if not layers:
        raise MissingResultError(f"no {tap} range of these layers was calibrated; calibrate first")
    return Report(
        facts={"tap": tap, "layers": layers},
        parts=[
            f"{tap} ranges; * is in force for static schemes, by the plan's method or set by hand",
            Table(rows=rows, columns="layer | used= | method | low | high | clipped"),
        ],
    )

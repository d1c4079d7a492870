"""Coarse cells of embeddings, which whole plans leave as they are, measured: they say what the layer's others cost.

An embedding's error reaches every block at once and from all tokens, so that of two or three bits is beyond what the
second order tells: 2 bits of all-MiniLM-L6's words cost 1.35 times as much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from workbench.measurement.units import NATS
from workbench.progress import Progress, part_of
from workbench.readable import few
from workbench.sensitivity.checks.measured_losses import SMALLEST, Reference, Row
from workbench.sensitivity.checks.plan_checks import NOTEWORTHY, PlanChecks
from workbench.sensitivity.scoring import Scoring

MOST = 3
"""So many cells of a layer are measured, the coarsest first, until one costs what was predicted."""

STEP = 3.0
"""The next cell has a predicted loss that many times smaller."""

LOST = 1.0
"""Cells of more nats are not measured: a model that is lost loses no more."""


def correct_embeddings(scoring: Scoring, reference: Reference, names: Sequence[str]) -> None:
    """Raise the losses of the embeddings ``names`` to what a few measured ones of their cells say.

    Takes a pass over the reference's samples for each cell, one or two for most layers.  What costs less than predicted
    is lost already, as whole plans are that the measured ones correct: it is left to them.
    """
    changed: dict[str, float] = {}
    for number, name in enumerate(names):
        part = part_of(scoring.progress, number / len(names), (number + 1) / len(names))
        checks = _measured(scoring, reference, name, part)
        row = scoring.table.row[name]
        losses = scoring.table.score[row].copy()
        if checks is None or not (checks.factors > 0).any():
            continue
        scoring.table.score[row] = np.maximum(checks.wholes(losses), losses)
        scoring.uncorrected[row] = losses
        scoring.errors[name] = math.hypot(scoring.errors.get(name, math.nan), float(checks.error[-1]))
        changed[name] = math.exp(float(checks.factors.max()))
    told = [f"{name} × {factor:.2g}" for name, factor in changed.items() if factor > NOTEWORTHY]
    if told:
        scoring.finite.notes.append(
            "embeddings at few bits cost more than predicted, as measured; all losses of these layers are raised "
            f"accordingly, at most by the factor behind the name: {few(told)}"
        )


def _measured(scoring: Scoring, reference: Reference, name: str, progress: Progress) -> PlanChecks | None:
    """Measure the coarsest cell of a layer, and finer ones while they cost more than predicted."""
    table, rows = scoring.table, list[Row]()
    checks, largest = None, LOST if table.unit == NATS else math.inf
    while len(rows) < MOST:
        losses = np.where(table.score[table.row[name]] <= largest, table.score[table.row[name]], 0.0)
        place = int(np.nan_to_num(losses, posinf=0.0).argmax())
        if not losses[place] > SMALLEST:
            break
        part = part_of(progress, len(rows) / MOST, (len(rows) + 1) / MOST)
        rows.append(reference.measured({name: table.schemes[place]}, float(losses[place]), part, f"measuring {name}"))
        checks = reference.checks(rows)
        if checks is None or checks.factors[0] <= 0:
            break
        largest = float(losses[place]) / STEP
    return checks

"""A few whole plans of several sizes, measured on a part of the calibration's samples.

What they say about all others is in :mod:`workbench.sensitivity.checks.plan_checks`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from workbench.models.model import Model
from workbench.numerics.formats import parse_scheme
from workbench.progress import part_of
from workbench.sensitivity.checks.measured_losses import SMALLEST, Plan, Reference, Row
from workbench.sensitivity.checks.plan_checks import PlanChecks
from workbench.sensitivity.interaction import interaction_of
from workbench.sensitivity.refine import price_within
from workbench.sensitivity.scoring import Scoring
from workbench.sensitivity.table import Sensitivity

BITS = (2.5, 3.0, 4.0, 5.5)
"""The bits per weight of the plans that are measured, as far as the table's schemes reach."""


def measured_plans(scoring: Scoring, reference: Reference, names: Sequence[str]) -> PlanChecks | None:
    """Measure the best plans of the layers ``names`` for a few sizes, by the table so far; None if they tell nothing.

    Takes ``len(BITS)`` passes over the reference's samples, and rounds all weights for each plan.
    """
    table, rows = scoring.snapshot(), list[Row]()
    plans = list(_plans(table, scoring.model, names))
    for number, plan in enumerate(plans):
        part = part_of(scoring.progress, number / len(plans), (number + 1) / len(plans))
        loss = second_order(table, plan)
        if SMALLEST < loss < math.inf:
            text = f"checking the prediction, plan {number + 1} of {len(plans)}"
            rows.append(reference.measured(plan, loss, part, text))
    return reference.checks(rows)


def second_order(table: Sensitivity, plan: Mapping[str, str]) -> float:
    """Return the second-order loss of a plan as the totals of a plan add it up (see ``planning.totals``)."""
    rerouted = [table.rerouting_of(*cell) for cell in plan.items()]
    own = math.fsum(table.of(*cell) for cell in plan.items()) - math.fsum(rerouted)
    together = interaction_of(table.slopes(*cell) for cell in plan.items())
    return max(own + math.hypot(*rerouted) + together, 0.0)


def _plans(table: Sensitivity, model: Model, names: Sequence[str]) -> Iterator[Plan]:
    """Yield the plan of the least second-order loss for each of BITS, or the closest; each plan once."""
    layers, schemes = [model.summary.by_name[name] for name in names], [parse_scheme(name) for name in table.schemes]
    bits = np.array([[float(scheme.bits(layer.matrix)) for scheme in schemes] for layer in layers])
    loss = table.cells(names, table.schemes)
    loss = np.where(np.isnan(loss), np.inf, loss)
    weights, seen = sum(layer.parameters for layer in layers), set[tuple[int, ...]]()
    for budget in BITS:
        picks = (loss + price_within(loss, bits, budget * weights) * bits).argmin(axis=1).tolist()
        if tuple(picks) not in seen:
            seen.add(tuple(picks))
            yield {name: table.schemes[pick] for name, pick in zip(names, picks, strict=True)}

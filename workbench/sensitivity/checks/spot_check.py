"""Are the predicted losses those of this model?  A few are measured, and where they disagree that is said.

The prediction is the second order of the loss.  It misses what rounding does by a choice (which queries a detector
keeps, which positions an indexer lets through), and what lies beyond the second order, as where answers are all but
certain.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import torch

from workbench.measurement.divergence import sample_divergence
from workbench.measurement.finite_batches import FiniteBatches
from workbench.models.data.batches import Data, units_of
from workbench.numerics.rounding.round_weight import round_weight
from workbench.sensitivity.scoring import Scoring

CHECKED = 3
"""Layers that are measured, spread over the model."""

SAMPLES, POSITIONS = 16, 512
"""So many samples or positions of theirs, whichever come first: two windows of 256 tokens tell a factor of three."""

BATCH_SIZE = 1

LOSS = 1e-3
"""The scheme whose predicted loss is the closest to this is measured: small enough for the second order."""

SMALLEST = 1e-9
"""A loss below this is rounding of float32."""

FACTOR = 3.0
"""Predictions that differ from measurements by more, in the geometric mean, are said to."""


FINE, AGREES = 0.5, 1.5
"""A measured plan of a predicted loss below this, which it costs within this factor, says that the layers' losses are
right; one that loses more is predicted by the measured plans."""


def samples_checked(units: int) -> int:
    """Return how many samples of so many positions each are measured at most."""
    return min(SAMPLES, -(-POSITIONS // max(units, 1)))


def disagreement(scoring: Scoring, data: Data) -> str:
    """Return a sentence where the table's losses are not those that a few cells measure; empty where they are.

    ``CHECKED + 1`` passes over SAMPLES samples or POSITIONS positions, none where a fine plan that was measured agrees.
    """
    plans = scoring.checks
    if plans is not None and plans.predicted[0] < FINE and 1 / AGREES < plans.measured[0] / plans.predicted[0] < AGREES:
        return ""
    chosen = _cells(scoring)
    losses = _measured(scoring, data, chosen) if chosen else {}
    ratios = [max(scoring.table.of(*cell), SMALLEST) / max(loss, SMALLEST) for cell, loss in losses.items()]
    if not ratios:
        return ""
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    if 1 / FACTOR <= mean <= FACTOR:
        return ""
    names = ", ".join(layer for layer, _ in losses)
    left_out = "Whole plans are predicted by those that were measured" if scoring.checks else "Intervals are left out"
    return (
        f"the predicted losses are about {mean:.2g} times what {names} cost when measured: the answers may be all but "
        f"certain, or the model may choose by rank. {left_out}; use the metric measured_kl"
    )


def _cells(scoring: Scoring) -> list[tuple[str, str]]:
    """Return layers from the model's start, first and second third, each with the scheme to measure."""
    table, summary = scoring.table, scoring.model.summary
    names = [
        name for name in table.layers
        if name not in table.unused and name not in scoring.measured and not summary.by_name[name].keep
        and _scheme(scoring, name) and not _by_choice(scoring, name, _scheme(scoring, name))
    ]  # fmt: skip
    places = sorted({number * len(names) // CHECKED for number in range(CHECKED)}) if names else []
    return [(names[place], _scheme(scoring, names[place])) for place in places]


def _by_choice(scoring: Scoring, name: str, scheme: str) -> bool:
    """Return whether most of a cell's loss is expected of tokens that change sides: of so few samples none may."""
    table = scoring.table
    return bool(2 * scoring.rerouted[table.row[name], table.column[scheme]] > table.of(name, scheme))


def _scheme(scoring: Scoring, name: str) -> str:
    losses = {scheme: scoring.table.of(name, scheme) for scheme in scoring.table.schemes}
    known = {scheme: max(loss, sys.float_info.min) for scheme, loss in losses.items() if math.isfinite(loss)}
    return min(known, key=lambda scheme: abs(math.log(known[scheme] / LOSS)), default="")


@torch.no_grad()
def _measured(scoring: Scoring, data: Data, cells: Sequence[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Return the loss of each cell on the first batches, in the table's unit."""
    model, sums, units, samples = scoring.model, dict.fromkeys(cells, 0.0), 0, 0
    views = {}
    for name, scheme in cells:
        known = scoring.known(name)
        rounded = round_weight(name, model.weight(name), scheme, scoring.algorithm, known).values
        views[name, scheme] = model.with_weights({name: rounded})
    size = model.inputs.batch or min(BATCH_SIZE, scoring.batch_size)
    for _, batch, reference in FiniteBatches(model=model).of(data, size):
        units, samples = units + units_of(batch, model.summary), samples + len(reference)
        for cell, view in views.items():
            distances = sample_divergence(reference, view.run(batch), batch, model.summary.output)
            sums[cell] += float(distances.sum())
        if samples >= SAMPLES or units >= POSITIONS:
            break
    return {cell: total / units for cell, total in sums.items() if units}

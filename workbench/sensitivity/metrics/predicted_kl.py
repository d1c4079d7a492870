"""The predicted loss: second moments of inputs and output gradients, or slopes sample by sample."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from workbench.measurement.units import NATS
from workbench.progress import part_of
from workbench.readable import few
from workbench.sensitivity.metrics.metric import OpenCells, SensitivityMetric

if TYPE_CHECKING:
    from workbench.sensitivity.scoring import Row, Scoring

MOST_BEFORE_SLOPES = 0.5
"""The share of the progress after which the passes for the slopes begin at the latest: a single layer takes a whole
pass with gradients over the data, on a small Llama as long as all others."""

ROUTERS = 0.3
"""The share of the progress for the margins of routers: up to 64 passes back and as many forward."""

MEASURED = 0.95
"""The share of the check's progress at which whole plans are measured; a few cells follow where these disagree."""


def _fill(scoring: Scoring, cells: OpenCells) -> None:
    from workbench.sensitivity.predicted import directional_rows, kronecker_rows, split_forms
    from workbench.sensitivity.rerouting import hard_steps, measure_rerouting

    if scoring.dataset is not None:
        steps = hard_steps(scoring.model, scoring.dataset)
        decisive = {name: cells[name] for name in cells if name in steps.decisive}
        if decisive:
            _measure(scoring, decisive)
            cells = {name: cells[name] for name in cells if name not in decisive}
    kronecker, directional = split_forms(scoring, tuple(cells))
    scoring.errors.update({name: scoring.curvature[name].error for name in kronecker})
    rerouting = None
    if scoring.dataset is not None:
        rerouting = measure_rerouting(
            scoring.model, steps.numbers, scoring.dataset, scoring.curvature, batch_size=scoring.batch_size,
            seed=scoring.seed, progress=part_of(scoring.progress, 0.0, ROUTERS),
        )  # fmt: skip
        if rerouting is not None:
            scoring.progress = part_of(scoring.progress, ROUTERS, 1.0)
            scoring.table = replace(scoring.table, one_token=rerouting.one_token)
    separable = {name: cells[name] for name in kronecker}
    share = 1.0 if not directional else min(len(kronecker) / len(cells), MOST_BEFORE_SLOPES)
    scoring.fill(kronecker_rows(scoring, separable, rerouting, share), round(len(kronecker) / share) if share else 0)
    if directional:
        data = scoring.require_data("a predicted loss")
        sloped_layers = [name for name in directional if name not in scoring.measured]
        sloped = directional_rows(scoring, data, dict.fromkeys(sloped_layers, scoring.table.schemes), rerouting, share)
        scoring.fill(scoring.with_slopes(sloped), len(directional), start=share)
        _fill_flat(scoring, {name: cells[name] for name in directional})


def _fill_choosing(scoring: Scoring, cells: OpenCells) -> None:
    """Measure the layers that run and have no gradient at all (an indexer that chooses what attention sees).

    One whose rounding changes nothing on these data stays open: other data may make it choose otherwise.
    """
    from workbench.sensitivity.measured import measured_rows, running

    data = scoring.require_data("a measured loss")
    ran = running(scoring.model, tuple(cells), data, scoring.batch_size, scoring.finite)
    choosing = {name: cells[name] for name in cells if name in ran}
    if not choosing:
        return
    tick = scoring.ticker(choosing, -(-len(data) // scoring.batch_size))
    without: list[str] = []

    def rows() -> Iterator[Row]:
        for name, losses in measured_rows(scoring, data, choosing, tick):
            if any(losses.values()):
                scoring.measured.add(name)
                yield name, losses
            else:
                without.append(name)

    scoring.fill(rows(), len(choosing), start=1.0)
    _note_measured(scoring)
    if without:
        scoring.finite.notes.append(
            f"not scored: {few(without)}, which only choose what others see, and on these data choose the same "
            "whatever the scheme; longer samples may show what rounding costs, else lock them"
        )


def _fill_flat(scoring: Scoring, cells: OpenCells) -> None:
    """Measure the layers at which every gradient was 0: dead ones, or ones that act through a choice (argmax)."""
    table = scoring.table
    left = {name: [scheme for scheme in schemes if np.isnan(table.of(name, scheme))] for name, schemes in cells.items()}
    flat = {name: schemes for name, schemes in left.items() if schemes}
    _measure(scoring, flat)


def _measure(scoring: Scoring, cells: OpenCells) -> None:
    """Fill cells with what they cost when measured, and keep whose they are."""
    from workbench.sensitivity.measured import measured_rows

    data = scoring.require_data("a measured loss")
    if cells:
        tick = scoring.ticker(cells, -(-len(data) // scoring.batch_size))
        scoring.fill(measured_rows(scoring, data, cells, tick), len(cells), start=1.0)
    known = [name for name, (scheme, *_) in cells.items() if not np.isnan(scoring.table.of(name, scheme))]
    scoring.measured.update(known)
    _note_measured(scoring)


def _note_measured(scoring: Scoring) -> None:
    names = [name for name in scoring.table.layers if name in scoring.measured]
    message = "measured, not predicted, since no gradient tells what it decides: "
    scoring.finite.notes[:] = [note for note in scoring.finite.notes if not note.startswith(message)]
    if names:
        scoring.finite.notes.append(message + few(names))


def _check(scoring: Scoring, cells: OpenCells) -> None:
    """Measure the layers that no prediction reached, then whole plans and a few cells; say where these disagree.

    Here, where all of the table is: a worker's piece may hold such layers alone.
    """
    from workbench.sensitivity.checks.measured_parts import measure_parts
    from workbench.sensitivity.checks.spot_check import disagreement

    table = scoring.table
    still = {name: schemes for name, schemes in cells.items() if np.isnan(table.score[table.row[name]]).all()}
    if still and len(still) < len(cells) and scoring.dataset is not None:
        _fill_choosing(scoring, still)
    if scoring.dataset is None:
        return
    whole = scoring.progress
    scoring.progress = part_of(whole, 0.0, MEASURED)
    measure_parts(scoring, scoring.dataset)
    scoring.progress = whole
    scoring.progress(MEASURED, "checking the prediction by a few measurements")
    message = disagreement(scoring, scoring.dataset)
    if message:
        scoring.finite.notes.append(message)
    if message and scoring.checks is None:
        scoring.errors.update(dict.fromkeys(scoring.table.layers, math.nan))


PREDICTED_KL = SensitivityMetric(
    name="predicted_kl", title="Predicted KL", unit=NATS, moments="diagonal", fill=_fill, check=_check,
    meaning="Second-order prediction of the KL that quantizing this weight alone causes; needs a calibration",
    formula="½ Σ g·a·D², or ½ E⟨∇, D⟩² where positions are correlated; D: rounding error, a and g: mean squares of "
    "inputs and output gradients (K-FAC, Martens & Grosse 2015)",
)  # fmt: skip

"""What is measured of a full table of predicted losses: whole plans, cells of embeddings, all of small networks."""

from __future__ import annotations

import numpy as np

from workbench.memory import available_memory
from workbench.models.data.batches import Data, units_of
from workbench.models.summary import embeddings
from workbench.progress import part_of
from workbench.sensitivity.checks.embedding_cells import correct_embeddings
from workbench.sensitivity.checks.measured_losses import Reference, samples_measured
from workbench.sensitivity.checks.small_networks import measure_cells
from workbench.sensitivity.checks.whole_plans import BITS, measured_plans
from workbench.sensitivity.interaction import FEWEST
from workbench.sensitivity.scoring import Scoring

LEAST = 0.01
"""Embeddings with a smaller share of the weights (positions, kinds of tokens) save nothing, and are not measured."""

ROOM = 0.5
"""A plan's weights may take so much of the free memory; else nothing is measured, and ranges stay wide."""

FILLED = 0.8
"""The share of the time after which a table is full, where slopes take passes with gradients."""

ROUNDING = 500
"""To round a weight to a scheme takes as long as it takes in a pass of so many positions: 490 on SmolLM2-135M."""

PASSES = len(BITS) + 2
"""So many passes over the reference's samples are taken: as it is, each plan, and an embedding."""


def share_filled(scoring: Scoring, data: Data, cells: int) -> float:
    """Return the share of the time after which a table with so many open ``cells`` is full."""
    output, count = scoring.model.summary.output, samples_measured(len(data), scoring.model.summary.output)
    if not output.per_token or not count:
        return FILLED
    positions = count * units_of(next(data.batches(scoring.model.inputs.batch or 1)), scoring.model.summary)
    filling = ROUNDING * cells / max(len(scoring.table.layers), 1)
    return filling / (filling + ROUNDING * len(BITS) + PASSES * positions)


def measure_parts(scoring: Scoring, data: Data) -> None:
    """Measure a small network's cells, plans of the layers quantized by default, and the embeddings each alone.

    No plans where there are too few samples, or too little memory for the weights.
    """
    known = scoring.measured | measure_cells(scoring, data)
    table, summary = scoring.table, scoring.model.summary
    tables, count = embeddings(summary.layers), samples_measured(len(data), summary.output)
    scored = [
        name for name in table.layers
        if name not in table.unused and not summary.by_name[name].keep
        and np.isfinite(table.score[table.row[name]]).any()
    ]  # fmt: skip
    plain = [name for name in scored if name not in tables]
    sizes = {name: summary.by_name[name].parameters for name in scored}
    looked_up = [
        name for name in scored
        if name in tables and name not in known and sizes[name] >= LEAST * sum(sizes.values())
    ]  # fmt: skip
    weights = max([sum(sizes[name] for name in plain), *(sizes[name] for name in looked_up)])
    scoring.checks = None
    if not weights or count < FEWEST or 4 * weights > ROOM * available_memory():
        return
    whole, done = scoring.progress, 1 - 1 / PASSES
    reference = Reference.of(scoring, data, count, weights, part_of(whole, 0.0, 1 / PASSES))
    scoring.progress = part_of(whole, 1 / PASSES, done)
    scoring.checks = measured_plans(scoring, reference, plain) if plain else None
    scoring.progress = part_of(whole, done, 1.0)
    correct_embeddings(scoring, reference, looked_up)

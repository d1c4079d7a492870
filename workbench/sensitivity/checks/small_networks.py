"""All cells of small networks, measured on the samples that their second order was predicted from.

The second order of a weight whose positions are correlated is a mean over random draws of output gradients, and
scatters by 10 to 20 % for some hundreds of samples: as much as the layers of a small network differ.  Of seven layers
measuring takes about as long as drawing, and says the same of the same samples each time.
"""

from __future__ import annotations

import numpy as np

from workbench.models.data.batches import Data
from workbench.models.summary import ModelSummary
from workbench.sensitivity.measured import measured_rows
from workbench.sensitivity.scoring import Scoring

LAYERS, SAMPLES = 8, 1024
"""Networks of no more layers are small.  Of more samples the draws tell enough."""


def is_small(summary: ModelSummary, samples: int) -> bool:
    """Return whether the cells of a network are measured where that many ``samples`` are scored on.

    Not of models of tokens, whose positions are many and have a label each.
    """
    return not summary.output.per_token and len(summary.stored) <= LAYERS and samples <= SAMPLES


def measure_cells(scoring: Scoring, data: Data) -> frozenset[str]:
    """Replace the drawn losses of a small network's layers by measured ones, and return the names of the layers."""
    table = scoring.table
    names = [
        name for name, slopes in scoring.slopes.items()
        if slopes and name in table.row and name not in scoring.measured
        and not scoring.rerouted[table.row[name]].any()
    ]  # fmt: skip
    if not names or not is_small(scoring.model.summary, len(data)):
        return frozenset()
    cells = dict.fromkeys(names, table.schemes)
    tick = scoring.ticker(cells, -(-len(data) // scoring.batch_size))
    for name, losses in measured_rows(scoring, data, cells, tick, scoring.errors):
        row = table.row[name]
        drawn, measured = table.score[row].copy(), np.array([losses[scheme] for scheme in table.schemes])
        table.score[row] = np.where(np.isfinite(measured), measured, drawn)
        scoring.uncorrected[row] = drawn
    scoring.finite.notes.append(
        f"the losses of single layers are measured, {len(names)} x {len(table.schemes)} cells: of so small a network "
        "that takes little time, and random draws of its second order would scatter"
    )
    return frozenset(names)

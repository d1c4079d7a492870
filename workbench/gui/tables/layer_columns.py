"""The columns of the layer tree: what each says of a layer, which are edited in place."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.gui.shell.words import tr
from workbench.gui.tables.fields import METRIC_UNIT, Field
from workbench.insight import quantities
from workbench.insight.decisions import decision
from workbench.insight.layer_facts import LayerFacts
from workbench.models.layer import StoredTensor
from workbench.planning.plan import KEEP

(NAME, SCHEME, HISTOGRAM, LOSS, SIZE, BITS, SHAPE, WEIGHTS, KIND, INPUTS, MEASURED, TIME, ALGORITHM, CACHE,
 SAVING, CHANGE) = range(16)  # fmt: skip
FIELDS = {SCHEME: "weights", INPUTS: "inputs", CACHE: "cache"}
"""The columns that are edited in place, and the field of the Assignment that each holds."""


@dataclass(frozen=True, slots=True)
class Column(Field):
    """A column of the tree, ``width`` characters wide; ``other(tensor)`` is its value of a tensor that stays as it is.

    ``muted`` texts are facts that an edit does not change; ``hidden`` columns are shown on demand.
    """

    width: int = 9
    other: Callable[[StoredTensor], Any] | None = None
    muted: bool = False
    hidden: bool = False


def _scheme(facts: LayerFacts) -> str:
    return f"keep ({facts.layer.dtype})" if facts.scheme == KEEP else facts.scheme


def _variance(facts: LayerFacts) -> float:
    statistics = facts.statistics
    return statistics.variance if statistics else math.nan


def _saving(facts: LayerFacts) -> float:
    best = decision(facts)
    return best.rate * 1e6 if best else math.nan


def block_sums(layers: list[LayerFacts]) -> dict[int, Any]:
    """Return what a block's layers add up to by column; ``NAME`` has the one that costs most with its loss.

    Tied layers have no bytes of their own; a block whose losses are not all known has no sum of them.
    """
    owned = [facts for facts in layers if facts.layer.tied_to is None]
    weights = sum(facts.layer.parameters for facts in layers)
    bits = sum(facts.bits for facts in owned)
    sums: dict[int, Any] = {WEIGHTS: weights, SIZE: bits / 8}
    if owned:
        sums[BITS] = bits / sum(facts.layer.parameters for facts in owned)
    losses = [facts.loss for facts in owned]
    if losses and not any(map(math.isnan, losses)):
        sums[LOSS] = math.fsum(losses)
        worst = max(owned, key=lambda facts: facts.loss)
        sums[NAME] = f"{worst.layer.name} ({quantities.loss(worst.loss)})"
    schemes = {_scheme(facts) for facts in owned}
    sums[SCHEME] = schemes.pop() if len(schemes) == 1 else tr("{} schemes").format(len(schemes))
    return sums


COLUMNS = (
    Column("Layer", lambda facts: facts.layer.name, width=24, other=lambda tensor: tensor.name,
           tip="Blocks and layers in the order of the network"),
    Column("Scheme", lambda facts: facts.scheme, width=18, text=_scheme, other=lambda tensor: tensor.dtype,
           tip="How the plan stores the weight; double-click or F2 to change it"),
    Column("Weights", _variance, quantities.number, unit="variance", width=10,
           tip="Histogram of the weight's values, lowest to highest; sorts by their variance"),
    Column("Loss", lambda facts: facts.loss, numeric=True, unit=METRIC_UNIT, width=12,
           tip="Score of the chosen scheme for this layer alone; lower is better"),
    Column("Size", lambda facts: facts.bits / 8, quantities.data_size, numeric=True, unit="bytes",
           other=lambda tensor: tensor.nbytes, tip="Bytes of the weight under the plan"),
    Column("Bits", lambda facts: facts.bits_per_weight, lambda bits: quantities.fixed(bits, 2), numeric=True,
           unit="per weight", width=6, tip="Bits per weight, scales and zero points included"),
    Column("Shape", lambda facts: facts.layer.shape, quantities.shape, width=14, muted=True,
           key=lambda facts: facts.layer.parameters, other=lambda tensor: tensor.shape,
           tip="Shape of the weight as the model stores it"),
    Column("Count", lambda facts: facts.layer.parameters, quantities.count, numeric=True, width=8, muted=True,
           other=lambda tensor: math.prod(tensor.shape), tip="Number of weights"),
    Column("Kind", lambda facts: str(facts.layer.kind).replace("_", " "), width=11, muted=True, words=True,
           tip="What the weight does"),
    Column("Inputs", lambda facts: facts.inputs, width=14, muted=True, words=True,
           tip="How the plan stores the layer's inputs; double-click to change it"),
    Column("Measured", lambda facts: facts.measured_loss, numeric=True, unit=METRIC_UNIT, width=15, hidden=True,
           tip="Measured KL of the chosen scheme in this layer alone; lower is better"),
    Column("Time", lambda facts: facts.microseconds, quantities.microseconds, numeric=True, unit="µs", hidden=True,
           tip="Median kernel time of the layer under the plan, where it was timed"),
    Column("Algorithm", lambda facts: facts.algorithm, width=12, muted=True, hidden=True,
           tip="How the weight is rounded"),
    Column("Cache", lambda facts: facts.cache, width=14, muted=True, hidden=True,
           tip="How the KV cache stores the keys or values that the layer makes; double-click to change it"),
    Column("Saving", _saving, numeric=True, unit="loss per MB", width=12, hidden=True,
           tip="Loss that the best larger scheme saves for each MB that it adds; high: give this layer more bits"),
    Column("Marked", lambda facts: facts.change, width=30, hidden=True,
           tip="What changes between the two plans that are marked in Plan > Plans"),
)  # fmt: skip

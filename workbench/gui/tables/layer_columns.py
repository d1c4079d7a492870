"""The columns of the layer tree: what each is called, what it means, which are edited in place."""

from __future__ import annotations

from dataclasses import dataclass

NAME, SCHEME, HISTOGRAM, LOSS, SIZE, BITS, SHAPE, WEIGHTS, KIND, INPUTS, MEASURED, TIME, ALGORITHM, CACHE = range(14)
FIELDS = {SCHEME: "weights", INPUTS: "inputs", CACHE: "cache"}
"""The columns that are edited in place, and the field of the Assignment that each holds."""

FLOATING = "floating point"
"""What stands for inputs, keys and values that are not quantized."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, what it means, whether it holds numbers, its width in characters."""

    title: str
    tip: str
    numeric: bool
    width: int


COLUMNS = (
    Column("Layer", "Blocks and layers in the order of the network", False, 24),
    Column("Scheme", "How the plan stores the weight; double-click or F2 to change it", False, 18),
    Column("Weights", "Histogram of the weight's values, least to greatest; sorts by their spread", False, 10),
    Column("Loss", "Score of the chosen scheme for this layer alone; lower is better", True, 9),
    Column("Size", "Bytes of the weight under the plan", True, 9),
    Column("Bits", "Bits per weight, scales and zero points included", True, 6),
    Column("Shape", "Shape of the weight as the model stores it", False, 12),
    Column("Count", "Number of weights", True, 8),
    Column("Kind", "What the weight does", False, 11),
    Column("Inputs", "How the plan stores the layer's inputs; double-click to change it", False, 14),
    Column("Measured", "Measured KL of the chosen scheme in this layer alone, nats; lower is better", True, 10),
    Column("Time", "Median kernel time of the layer under the plan, where it was timed", True, 9),
    Column("Algorithm", "How the weight is rounded", False, 12),
    Column("Cache", "How the key-value cache stores what the layer gives; double-click to change it", False, 14),
)

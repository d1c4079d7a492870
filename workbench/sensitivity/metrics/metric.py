"""One record for each sensitivity metric: what it is called, what it means and needs, how its cells are computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from workbench.errors import PlanError
from workbench.measurement.units import HALF_SQUARED_DISTANCE, NATS, loss_unit
from workbench.models.summary import OutputKind

if TYPE_CHECKING:
    from workbench.sensitivity.scoring import Scoring

Part = Literal["weights", "inputs", "cache"]
"""Which tensors of a layer are quantized: its weight, its input, or the keys or values that it gives the KV cache."""

Moments = Literal["none", "diagonal", "full"]
"""What a metric reads of the calibrated second moments of a layer's inputs and output gradients."""

OpenCells = Mapping[str, Sequence[str]]
"""The schemes whose scores are still to be computed, by layer."""


def not_computed(scoring: Scoring, cells: OpenCells) -> None:
    """Refuse to compute the cells of a derived table."""
    raise PlanError(f"the {scoring.table.metric} table is derived from others and is not computed by itself")


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitivityMetric:
    """What a table of layers x schemes holds.  Higher is worse, always.

    ``name`` is what files and commands call it; ``unit`` is that of a model whose outputs are logits.  ``part`` is also
    the field of an Assignment that a cell sets.  ``formula`` says how a cell comes about, in symbols.  ``needs_data``
    says whether the model runs on samples.  ``fill`` computes the cells, and ``check`` looks at the whole table; a
    table may be derived instead, from those of the metrics in ``derived_from``.
    """

    name: str
    title: str
    unit: str
    meaning: str
    formula: str = ""
    part: Part = "weights"
    needs_data: bool = True
    moments: Moments = "none"
    fill: Callable[[Scoring, OpenCells], None] = not_computed
    check: Callable[[Scoring, OpenCells], None] | None = None
    derived_from: tuple[str, ...] = ()

    def unit_for(self, output: OutputKind) -> str:
        """Return the unit of the scores of a model with such outputs."""
        return loss_unit(output) if self.unit == NATS else self.unit

    def title_in(self, unit: str) -> str:
        """Return the title for scores of a unit: KL is a distance where the outputs are not logits."""
        return self.title.replace("KL", "distance") if unit == HALF_SQUARED_DISTANCE else self.title

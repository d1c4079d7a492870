"""What is known of each layer under the present plan: one record for the layer tree, the report and the filter."""

from __future__ import annotations

import math
from dataclasses import dataclass

from workbench.models.kv_cache import makes_keys_or_values
from workbench.models.layer import Layer
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.planning.plan import KEEP, Assignment
from workbench.planning.totals import layer_bits
from workbench.sensitivity.table import Sensitivity
from workbench.session.workspace import State

FLOATING = "floating point"
"""What stands for inputs, keys and values that are not quantized."""


class PlanFacts:
    """Looks up once what the facts of all layers of a state need."""

    def __init__(self, state: State) -> None:
        session = state.session
        self.state = state
        self.table = session.table(state.metric) if session else None
        self.measured = session.sensitivities.get("measured_kl") if session else None
        timings = session.timings if session else ()
        self.microseconds = {(timing.shape, timing.scheme): timing.median for timing in timings}

    def of(self, layer: Layer) -> LayerFacts:
        """Return the facts of a layer."""
        return LayerFacts(layer=layer, plan=self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerFacts:
    """A layer under the present plan; what is not known is NaN or None."""

    layer: Layer
    plan: PlanFacts

    @property
    def assignment(self) -> Assignment | None:
        """What the plan gives the layer; None where the plan does not fit the model."""
        return self.plan.state.assignments.get(self.layer.name)

    @property
    def scheme(self) -> str:
        """The scheme of the weight."""
        assignment = self.assignment
        return assignment.weights if assignment else KEEP

    @property
    def inputs(self) -> str:
        """The scheme of the inputs."""
        assignment = self.assignment
        return (assignment.inputs if assignment else None) or FLOATING

    @property
    def cache(self) -> str:
        """The scheme of the keys or values that the layer makes; empty where it makes none."""
        if not makes_keys_or_values(self.layer):
            return ""
        assignment = self.assignment
        return (assignment.cache if assignment else None) or FLOATING

    @property
    def algorithm(self) -> str:
        """How the weight is rounded; empty where it is not."""
        assignment = self.assignment
        return assignment.algorithm if assignment and assignment.weights != KEEP else ""

    @property
    def bits(self) -> int:
        """Bits of the weight, scales and zero points included."""
        return layer_bits(self.layer, self.scheme)

    @property
    def bits_per_weight(self) -> float:
        """Bits of the weight over its number of values."""
        return self.bits / max(self.layer.parameters, 1)

    @property
    def loss(self) -> float:
        """The score of the chosen scheme in this layer alone, by the metric that is shown."""
        return 0.0 if self.scheme == KEEP else self._score(self.plan.table)

    @property
    def measured_loss(self) -> float:
        """The measured KL of the chosen scheme in this layer alone."""
        return math.nan if self.scheme == KEEP else self._score(self.plan.measured)

    @property
    def microseconds(self) -> float:
        """The median time of the kernel of the layer's shape under its scheme."""
        return self.plan.microseconds.get((self.layer.matrix, self.scheme), math.nan)

    @property
    def statistics(self) -> LayerStatistics | None:
        """The statistics of the weight; a tied weight's are its owner's."""
        session = self.plan.state.session
        by_place = session.statistics if session else {}
        names = (self.layer.name, self.layer.tied_to or self.layer.name)
        return next((by_place[name, "weight"] for name in names if (name, "weight") in by_place), None)

    def _score(self, table: Sensitivity | None) -> float:
        return math.nan if table is None else table.of(self.layer.tied_to or self.layer.name, self.scheme)

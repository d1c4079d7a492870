"""What is known of each layer under a plan: one record for the layer tree and the filter, rows for the report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from workbench.insight import quantities
from workbench.models.kv_cache import makes_keys_or_values
from workbench.models.layer import Layer, LayerKind
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.planning.plan import KEEP, Assignment
from workbench.planning.totals import layer_bits
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session

FLOATING = "floating point"
"""What stands for inputs, keys and values that are not quantized."""

HEADINGS = ["Layer", "Kind", "Shape", "Weights", "Inputs", "Algorithm", "Bits", "Size", "Loss", "Locked"]


def weight_loss(table: Sensitivity | None, layer: str, scheme: str) -> float:
    """Return what a weight's scheme costs by a table of losses; NaN without a table or where the cell is missing."""
    return 0.0 if scheme == KEEP else math.nan if table is None else table.of(layer, scheme)


def why_unseen(session: Session, layer: str, tap: str) -> str:
    """Return why nothing was seen of a layer's weights, inputs or outputs; empty where something was."""
    statistics, facts = session.statistics.get((layer, tap)), session.model.by_name.get(layer)
    if statistics is not None and statistics.count:
        return ""
    if tap == "input" and facts is not None and facts.kind is LayerKind.EMBEDDING:
        return "An embedding takes token ids, which are never rounded. Its rows are under Weights."
    if tap == "weight" and not session.model.fingerprint:
        return "The weights are still being read."
    if tap == "weight":
        return "No statistics of this weight were kept."
    if session.model.cannot_run is not None:
        return f"{session.model.cannot_run[:1].upper()}{session.model.cannot_run[1:]}."
    if session.calibration is None:
        return "Calibrate (F5) to see inputs, outputs and ranges"
    return "The calibration data never reached this layer."


class PlanFacts:
    """Looks up once what the facts of all layers of a session under a plan, resolved to ``assignments``, need."""

    def __init__(
        self, session: Session | None, assignments: Mapping[str, Assignment], metric: str,
        changes: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.session, self.assignments, self.changes = session, assignments, changes or {}
        self.table = session.table(metric) if session else None
        self.measured = session.sensitivities.get("measured_kl") if session else None
        timings = session.timings if session else ()
        self.microseconds = {(timing.shape, timing.scheme): timing.median for timing in timings}

    def of(self, layer: Layer) -> LayerFacts:
        """Return the facts of a layer."""
        return LayerFacts(layer=layer, plan=self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerFacts:
    """A layer under the current plan; what is not known is NaN or None."""

    layer: Layer
    plan: PlanFacts

    @property
    def assignment(self) -> Assignment | None:
        """What the plan gives the layer; None where the plan does not fit the model."""
        return self.plan.assignments.get(self.layer.name)

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
        return weight_loss(self.plan.table, self.layer.tied_to or self.layer.name, self.scheme)

    @property
    def measured_loss(self) -> float:
        """The measured KL of the chosen scheme in this layer alone."""
        if self.scheme == KEEP:
            return math.nan
        return weight_loss(self.plan.measured, self.layer.tied_to or self.layer.name, self.scheme)

    @property
    def microseconds(self) -> float:
        """The median time of the kernel of the layer's shape under its scheme."""
        return self.plan.microseconds.get((self.layer.matrix, self.scheme), math.nan)

    @property
    def change(self) -> str:
        """What changes between two plans that are compared; empty where nothing does."""
        return self.plan.changes.get(self.layer.name, "")

    @property
    def statistics(self) -> LayerStatistics | None:
        """The statistics of the weight; a tied weight's are its owner's."""
        by_place = self.plan.session.statistics if self.plan.session else {}
        names = (self.layer.name, self.layer.tied_to or self.layer.name)
        return next((by_place[name, "weight"] for name in names if (name, "weight") in by_place), None)


def layer_rows(session: Session, assignments: Mapping[str, Assignment], metric: str) -> list[list[str]]:
    """Return the headings and a row for each layer; only the headings where the plan cannot be resolved."""
    rows, plan = [HEADINGS], PlanFacts(session, assignments, metric)
    for layer in session.model.layers if assignments else ():
        facts, assignment = plan.of(layer), assignments[layer.name]
        weights = f"kept ({layer.dtype})" if facts.scheme == KEEP else facts.scheme
        loss = weight_loss(plan.table, layer.name, facts.scheme)
        rows.append([
            layer.name, layer.kind.value, quantities.shape(layer.shape), "tied" if layer.tied_to else weights,
            assignment.inputs or "", facts.algorithm, quantities.fixed(facts.bits_per_weight, 2),
            quantities.data_size(facts.bits / 8), quantities.loss(loss),
            "yes" if layer.name in session.locked else "",
        ])  # fmt: skip
    return rows


def expert_tokens(session: Session, layer: Layer) -> tuple[np.ndarray, int] | None:
    """Return the tokens that each expert of ``layer`` was sent, int64 ``[experts]``, and how many all were shown
    instead (0: none); None where that is not known."""
    known = session.curvature.get(layer.name) if layer.experts > 1 else None
    if known is None or known.counts is None or len(known.counts) != layer.experts:
        return None
    return known.counts, known.shown


def tokens_in_words(counts: np.ndarray, shown: int) -> list[str]:
    """Return ``counts`` in clauses: how many experts, the fewest and the most tokens, who had the fewest."""
    least, most = quantities.whole(int(counts.min())), quantities.whole(int(counts.max()))
    everyone = [f"all experts were shown {quantities.whole(shown)} tokens"] if shown else []
    if least == most:
        return [f"{len(counts)} experts were sent {least} tokens each", *everyone]
    few = int(counts.argmin())
    return [f"{len(counts)} experts were sent {least} to {most} tokens, expert {few} the fewest", *everyone]

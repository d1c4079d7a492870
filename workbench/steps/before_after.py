"""One layer before and after its plan: the weight as transforms and rounding leave it, the input as they shift it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import MissingResultError, PlanError
from workbench.numerics.formats import parse_scheme
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.numerics.statistics.observe import observe
from workbench.planning.plan import KEEP, LEARNED, Plan, Rule, resolve
from workbench.progress import Progress, part_of, silent
from workbench.session.calibrated_ranges import ranges_of_plan
from workbench.session.session import Session
from workbench.steps.needs import moments_of_plan, without_results

if TYPE_CHECKING:
    import torch

    from workbench.engine.model_cache import ModelCache
    from workbench.models.model import Model

SAMPLES = 16
"""Samples on which the input is observed after a transform."""

WEIGHED_SAMPLES = 32
"""Samples on which it is found out what an error in an input costs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BeforeAfter:
    """What the plan makes of a layer; None where it changes nothing.

    ``transformed`` is the weight after the transforms, in floating point; ``rounded`` the weight that is stored, as it
    is decoded; ``inputs`` the layer's input after the transforms.
    """

    layer: str
    scheme: str
    transforms: tuple[str, ...]
    transformed: LayerStatistics | None
    rounded: LayerStatistics | None
    inputs: LayerStatistics | None


def before_after(
    session: Session, layer: str, *, model: Model, samples: int = SAMPLES, progress: Progress = silent
) -> BeforeAfter:
    """Carry the session's plan out for ``layer`` and observe what comes of it.

    Other layers are rounded too only where the plan's algorithm looks at them.  Raises PlanError for an unknown layer,
    and what transforms and rounding raise.
    """
    owner, scheme = plan_for(session, layer)
    transforms = _rewriting(session.plan)
    rewritten, inputs = model, None
    if transforms:
        rewritten, inputs = _transformed(session, model, layer, samples, part_of(progress, 0.0, 0.6))
    rounded = rounded_weight(session, owner, model=model, progress=part_of(progress, 0.6, 1.0))
    return BeforeAfter(
        layer=layer, scheme=scheme, transforms=transforms, inputs=inputs,
        rounded=None if rounded is None else observe(rounded, 0),
        transformed=observe(rewritten.weight(owner), 0) if transforms else None,
    )  # fmt: skip


def plan_for(session: Session, layer: str) -> tuple[str, str]:
    """Return the layer that owns ``layer``'s weight and the scheme that the plan gives it; PlanError if unknown."""
    if layer not in session.model.by_name:
        raise PlanError(f"there is no layer {layer!r} in {session.model.name}")
    owner = session.model.by_name[layer].tied_to or layer
    return owner, resolve(session.plan, session.model.layers)[owner].weights


def _rewriting(plan: Plan) -> tuple[str, ...]:
    """Return the transforms that rewrite the model before rounding; corrections come after it."""
    from workbench.planning.transform_names import CORRECTIONS

    return tuple(name for name in plan.transforms if name not in CORRECTIONS)


def _transformed(
    session: Session, model: Model, layer: str, samples: int, progress: Progress
) -> tuple[Model, LayerStatistics | None]:
    from workbench.measurement.calibrate import calibrate
    from workbench.quantization.transforms.apply import transform
    from workbench.steps import session_data

    if session.calibration is None:
        raise MissingResultError("the plan's transforms need calibration data; calibrate first")
    data = session_data.recorded(model, session.calibration)
    done = transform(
        model, session.plan, curvature=session.curvature, ranges=ranges_of_plan(session, session.plan), data=data,
        progress=part_of(progress, 0.0, 0.7),
    )  # fmt: skip
    few = session_data.recorded(model, session.calibration, samples=min(samples, session.calibration.samples))
    seen = calibrate(done.model, few, curvature=False, progress=part_of(progress, 0.7, 1.0)).statistics
    return done.model, seen.get((layer, "input"))


def rounded_weight(
    session: Session, owner: str, *, model: Model, progress: Progress = silent
) -> torch.Tensor | None:
    """Return the weight of ``owner`` as the plan stores it, decoded (outputs x inputs); None if it is kept."""
    from workbench.numerics.rounding.round_weight import needs_sequence
    from workbench.steps import tasks

    given = resolve(session.plan, session.model.layers)[owner]
    if given.weights == KEEP:
        return None
    alone = not session.plan.transforms and given.algorithm != LEARNED and not needs_sequence(given.algorithm)
    plan = session.plan
    if alone:
        plan = replace(plan, rules=(Rule(pattern=owner, assignment=replace(given, inputs=None)),))
    stored = tasks.quantize(model, plan, session=session, progress=progress).tensors.get(owner)
    return None if stored is None else parse_scheme(stored.scheme).decode(stored)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShowAfter:
    """Carry the plan out for one layer; the response is a BeforeAfter."""

    session: Session
    layer: str
    trust: bool = False

    @property
    def title(self) -> str:
        """What a person reads in the jobs panel."""
        return f"Before and after of {self.layer}"

    def slim(self) -> ShowAfter:
        """Keep the plan, the active ranges and the moments that its algorithms look at."""
        return replace(self, session=without_results(self.session, curvature=moments_of_plan(self.session)))

    def run(self, models: ModelCache, progress: Progress) -> BeforeAfter:
        """Carry it out; raises what transforms and rounding raise."""
        model = models.get(self.session.model, self.trust)
        return before_after(self.session, self.layer, model=model, progress=progress)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InputWeights:
    """What an error costs at each value of a layer's input: ``weights`` float64 ``[BINS]``, nats per squared unit.

    ``samples`` of the calibration data were run; see :func:`workbench.sensitivity.input_weights.input_weights`.
    """

    layer: str
    weights: np.ndarray
    samples: int


def weigh_input(
    session: Session, layer: str, *, model: Model, samples: int = WEIGHED_SAMPLES, batch_size: int = 8, seed: int = 0,
    progress: Progress = silent,
) -> InputWeights | None:  # fmt: skip
    """Find out what an error costs at each value of a layer's input; None where nothing that can be rounded enters it.

    ``samples`` of the calibration's data are run at most.  Raises MissingResultError before a calibration, DataError.
    """
    from workbench.sensitivity.input_weights import input_weights
    from workbench.steps import session_data

    seen = session.statistics.get((layer, "input"))
    if session.calibration is None or seen is None or not seen.count:
        raise MissingResultError("the loss of an input range needs a calibration that saw the input; calibrate first")
    few = min(samples, session.calibration.samples)
    data = session_data.recorded(model, session.calibration, samples=few)
    found = input_weights(
        model, layer, data, 2.0**seen.exponent, batch_size=batch_size, seed=seed, progress=progress
    )
    return None if found is None else InputWeights(layer=layer, weights=found, samples=len(data))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeighInput:
    """Find out what an error in a layer's input costs; the response is InputWeights, or None."""

    session: Session
    layer: str
    trust: bool = False

    @property
    def title(self) -> str:
        """What a person reads in the jobs panel."""
        return f"What an input error of {self.layer} costs"

    def slim(self) -> WeighInput:
        """Keep the input's histogram."""
        held = {key: self.session.statistics[key] for key in self.session.statistics if key == (self.layer, "input")}
        return replace(self, session=without_results(self.session, statistics=held))

    def run(self, models: ModelCache, progress: Progress) -> InputWeights | None:
        """Weigh it; raises MissingResultError before a calibration."""
        model = models.get(self.session.model, self.trust)
        return weigh_input(self.session, self.layer, model=model, progress=progress)

"""What an error costs at each value of a layer's input."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from workbench.errors import MissingResultError
from workbench.session.session import Session
from workbench.steps import session_data
from workbench.steps.options import BATCH_SIZE, LAYER, SAMPLES, SEED, option
from workbench.steps.requirements import without_results
from workbench.steps.step import Context, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class InputWeightsOptions:
    """Which layer; at most how many of the calibration samples are run."""

    layer: str = field(metadata=LAYER.metadata)
    samples: int = option(32, SAMPLES)
    batch_size: int = option(8, BATCH_SIZE)
    seed: int = option(0, SEED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InputWeights:
    """What an error costs at each value of a layer's input: ``weights`` float64 ``[BINS]``, nats per squared unit.

    ``samples`` of the calibration data were run; see :func:`workbench.sensitivity.input_weights.input_weights`.
    """

    layer: str
    weights: np.ndarray
    samples: int


def _run(context: Context, options: InputWeightsOptions) -> InputWeights | None:
    """Return None where nothing that can be rounded enters the layer; MissingResultError before a calibration."""
    from workbench.sensitivity.input_weights import input_weights

    session, model = context.session, context.model()
    observed = session.statistics.get((options.layer, "input"))
    if session.calibration is None or observed is None or not observed.count:
        raise MissingResultError("the loss of an input range needs a calibration that saw the input; calibrate first")
    data = session_data.recorded(model, session.calibration, samples=min(options.samples, session.calibration.samples))
    weights = input_weights(
        model, {options.layer: 2.0**observed.exponent}, data, batch_size=options.batch_size, seed=options.seed,
        progress=context.progress,
    ).get(options.layer)  # fmt: skip
    return None if weights is None else InputWeights(layer=options.layer, weights=weights, samples=len(data))


def _needs(session: Session, options: InputWeightsOptions) -> Session:
    """Add the input's histogram."""
    place = options.layer, "input"
    histogram = {place: session.statistics[place]} if place in session.statistics else {}
    return replace(without_results(session), statistics=histogram)


INPUT_WEIGHTS = Step(
    runs_model=True,
    name="input-weights", title="What an input error costs", options=InputWeightsOptions, run=_run, needs=_needs,
    summary="Finds what an error costs at each value of a layer's input.",
    heading=lambda options, session: f"What an input error of {options.layer} costs",
)  # fmt: skip

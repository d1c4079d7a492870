"""The average Hessian trace of a layer times the squared error of its weight: what HAWQ-V2 ranks layers by.

Dong et al., "HAWQ-V2: Hessian Aware trace-Weighted Quantization of Neural Networks", NeurIPS 2020.  The trace of the
Kronecker-factored Fisher matrix ``G x A`` is ``sum(diag G) * sum(diag A)``; half its mean over the weights times
``|D|^2`` is a loss in nats that treats all weights of a layer alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.errors import MissingResultError
from workbench.measurement.units import NATS
from workbench.sensitivity.metrics.metric import OpenCells, SensitivityMetric

if TYPE_CHECKING:
    from workbench.sensitivity.scoring import Scoring


def _fill(scoring: Scoring, cells: OpenCells) -> None:
    whole = {name for name, curvature in scoring.curvature.items() if curvature.has_gradients}
    known = {name: schemes for name, schemes in cells.items() if name in whole}
    if not known:
        raise MissingResultError("hessian_trace needs the calibrated curvature, and the session holds none; calibrate")
    scoring.fill(((name, _losses(scoring, name, schemes)) for name, schemes in known.items()), len(known))


def _losses(scoring: Scoring, name: str, schemes: Sequence[str]) -> dict[str, float]:
    curvature = scoring.curvature[name]
    trace = float(curvature.rows.mean() * curvature.columns.mean())
    return {scheme: 0.5 * trace * error for scheme, error in scoring.squared_errors(name, schemes).items()}


HESSIAN_TRACE = SensitivityMetric(
    name="hessian_trace", title="Hessian trace (HAWQ)", unit=NATS, moments="diagonal", fill=_fill,
    meaning="Average Hessian trace of the layer times the squared error of its weight, as in HAWQ-V2; needs a "
    "calibration",
    formula="½ mean(g)·mean(a)·Σ D²; a and g: mean squares of inputs and output gradients (Dong et al. 2020)",
)  # fmt: skip

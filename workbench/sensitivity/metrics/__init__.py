"""Sensitivity metrics, one record each: a new one is its own file and one line in METRICS."""

from __future__ import annotations

from workbench.errors import PlanError, nearest
from workbench.sensitivity.metrics.activations import (
    MEASURED_KL_CACHE,
    MEASURED_KL_INPUTS,
    PREDICTED_KL_CACHE,
    PREDICTED_KL_INPUTS,
)
from workbench.sensitivity.metrics.hessian_trace import HESSIAN_TRACE
from workbench.sensitivity.metrics.measured_kl import MEASURED_KL
from workbench.sensitivity.metrics.metric import SensitivityMetric
from workbench.sensitivity.metrics.output_error import OUTPUT_ERROR
from workbench.sensitivity.metrics.predicted_kl import PREDICTED_KL
from workbench.sensitivity.metrics.refined import REFINED as REFINED
from workbench.sensitivity.metrics.weight_error import WEIGHT_ERROR

METRICS: tuple[SensitivityMetric, ...] = (
    PREDICTED_KL, MEASURED_KL, OUTPUT_ERROR, WEIGHT_ERROR, HESSIAN_TRACE, REFINED, PREDICTED_KL_INPUTS,
    MEASURED_KL_INPUTS, PREDICTED_KL_CACHE, MEASURED_KL_CACHE,
)  # fmt: skip
"""Of weights first, the best to plan with before the others."""

BY_NAME = {metric.name: metric for metric in METRICS}

SCORED = tuple(metric.name for metric in METRICS if not metric.derived_from)
"""The metrics that a table can be computed by; the others are derived from such tables."""

WEIGHT_METRICS = tuple(metric.name for metric in METRICS if metric.part == "weights")
"""The metrics that a plan can be searched with."""

ACTIVATION_METRICS = tuple(metric.name for metric in METRICS if metric.part != "weights")
"""The metrics of activation schemes: each layer's input, or its keys or values, quantized alone."""

TABLE_METRICS = tuple(name for name in WEIGHT_METRICS if name in SCORED)
"""The metrics of the weight tables that a session stores, the best to plan with first."""


def find_metric(name: str) -> SensitivityMetric:
    """Return the metric called ``name``; raises PlanError naming the nearest."""
    if name not in SCORED:
        known = ", ".join(SCORED)
        raise PlanError(f"there is no metric {name!r}{nearest(name, SCORED)}; the metrics are {known}")
    return BY_NAME[name]


def metric_title(name: str, unit: str = "") -> str:
    """Return what a metric is called where its scores have that unit; the name of one from another version."""
    return BY_NAME[name].title_in(unit) if name in BY_NAME else name


def metric_phrase(name: str, unit: str = "") -> str:
    """Return a metric's title, where its scores have that unit, as it reads inside a sentence."""
    title = metric_title(name, unit)
    return title[:1].lower() + title[1:]

"""Evaluation metrics, one record each: a new one is its own file and one line in METRICS."""

from __future__ import annotations

import numpy as np

from workbench.measurement.bootstrap import Transform, identity
from workbench.measurement.metrics.logits import ACCURACY, PERPLEXITY, TOP1_AGREEMENT
from workbench.measurement.metrics.logits import KL as KL
from workbench.measurement.metrics.mean_iou import MEAN_IOU
from workbench.measurement.metrics.metric import EvaluationMetric
from workbench.measurement.metrics.objects_found import OBJECTS_FOUND
from workbench.measurement.metrics.spearman import SPEARMAN
from workbench.measurement.metrics.top5 import TOP5_ACCURACY
from workbench.measurement.metrics.vectors import COSINE, RELATIVE_ERROR
from workbench.measurement.metrics.vectors import HALF_DISTANCE as HALF_DISTANCE
from workbench.measurement.metrics.word_errors import WORD_ERROR_RATE

METRICS: tuple[EvaluationMetric, ...] = (
    KL, TOP1_AGREEMENT, OBJECTS_FOUND, PERPLEXITY, ACCURACY, TOP5_ACCURACY, MEAN_IOU, WORD_ERROR_RATE, SPEARMAN,
    COSINE, RELATIVE_ERROR, HALF_DISTANCE,
)  # fmt: skip
"""In the order in which an evaluation lists them."""

BY_NAME = {metric.name: metric for metric in METRICS}


def metric_title(name: str) -> str:
    """Return a metric's title; one made from the name for a metric of the user's own."""
    return BY_NAME[name].title if name in BY_NAME else name.replace("_", " ").capitalize()


def transform_of(name: str) -> Transform:
    """Return what a metric's mean over samples becomes; of a task's losses (``task:word_perplexity``) a perplexity."""
    if name in BY_NAME:
        return BY_NAME[name].transform
    return np.exp if ":" in name and name.split(":")[1].endswith("perplexity") else identity


def metric_meaning(name: str) -> str:
    """Return what a metric means, with its unit; its title for a metric of the user's own."""
    return BY_NAME[name].meaning if name in BY_NAME else metric_title(name)

"""Mean intersection over union of semantic segmentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import DataError
from workbench.measurement.metrics.metric import EvaluationMetric, Outputs, Sums
from workbench.measurement.units import PERCENT
from workbench.models.summary import OutputKind

if TYPE_CHECKING:
    import torch


def _mean_iou(outputs: Outputs) -> Sums | None:
    """Return each image's pixels in the intersection and in the union of every class, ``[samples, 2 x classes]``."""
    import torch

    labels = outputs.batch.get("labels")
    if labels is not None and labels.ndim == 4 and labels.shape[1] == 1:  # masks with an axis of channels
        labels = labels[:, 0]
    if outputs.kind is not OutputKind.POSITION_CLASSES or labels is None or labels.ndim != 3:
        return None
    labels = labels.long()
    both = (outputs.quantized, outputs.reference)
    quantized, baseline = (
        torch.stack([_areas(logits, label) for logits, label in zip(each, labels, strict=True)]) for each in both
    )
    return Sums(quantized, baseline, torch.ones(len(labels)))


def _areas(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return one image's areas from logits (positions x classes), at the size of ``labels`` (height x width)."""
    import torch

    from workbench.models.data.batches import UNLABELLED

    classes = logits.shape[1]
    answers = _resized(logits, labels.shape).argmax(dim=0).flatten()
    labels = labels.flatten()
    counted = (labels >= 0) & ((labels != UNLABELLED) | (classes > UNLABELLED))
    answers, labels = answers[counted], labels[counted]
    right, predicted, true = (
        torch.bincount(each, minlength=classes) for each in (labels[answers == labels], answers, labels)
    )
    return torch.cat([right, predicted + true - right])


def _resized(logits: torch.Tensor, size: torch.Size) -> torch.Tensor:
    """Return logits as classes x height x width of ``size``, by bilinear interpolation where they are coarser."""
    height = round((len(logits) * size[0] / size[1]) ** 0.5)
    if height * (len(logits) // max(height, 1)) != len(logits):
        raise DataError(
            f"the model answers {len(logits)} positions, which do not form a grid like the labels' {tuple(size)}"
        )
    from torch.nn import functional as F

    image = logits.T.reshape(1, logits.shape[1], height, -1)
    return (F.interpolate(image.float(), tuple(size), mode="bilinear") if image.shape[2:] != size else image)[0]


def _mean(samples: np.ndarray) -> float:
    """Return the mean over the classes that occur, in %."""
    right, union = samples.sum(axis=0).reshape(2, -1)
    return float(100.0 * np.mean(right[union > 0] / union[union > 0])) if (union > 0).any() else float("nan")


MEAN_IOU = EvaluationMetric(
    name="mean_iou", title="Mean IoU", unit=PERCENT, higher_is_better=True, measure=_mean_iou, statistic=_mean,
    meaning="Intersection over union of the predicted and the labelled pixels of each class, over all images, mean "
    "over the classes that occur, in %; higher is better",
)  # fmt: skip

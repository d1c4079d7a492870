"""Rank correlation with scores that people gave: of pairs of texts (STS-B), or of a regressor's numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workbench.measurement.metrics.metric import EvaluationMetric, Outputs, Sums
from workbench.models.summary import OutputKind

if TYPE_CHECKING:
    import torch


def _spearman(outputs: Outputs) -> Sums | None:
    """Return each pair's (similarity, score); pairs are two samples that follow each other."""
    import torch

    if outputs.kind is not OutputKind.EMBEDDING:
        return None
    pairs, numbers = outputs.batch.get("scores"), outputs.batch.get("labels")
    if pairs is not None:
        columns = [_cosines(each) for each in (outputs.quantized, outputs.reference)]
        scores = pairs[::2]
    elif numbers is not None and numbers.shape == outputs.reference.shape[:1] == outputs.reference.flatten().shape:
        columns, scores = [each.flatten() for each in (outputs.quantized, outputs.reference)], numbers
    else:
        return None
    quantized, baseline = (torch.stack([each.double().cpu(), scores.double().cpu()], dim=1) for each in columns)
    return Sums(quantized, baseline, torch.ones(len(scores)))


def _cosines(vectors: torch.Tensor) -> torch.Tensor:
    import torch

    vectors = vectors.double().flatten(1)
    return torch.nn.functional.cosine_similarity(vectors[::2], vectors[1::2], dim=1)


def _correlation(samples: np.ndarray) -> float:
    from scipy.stats import rankdata

    ranks = [rankdata(samples[:, column]) for column in (0, 1)]
    return float("nan") if any(np.ptp(each) == 0 for each in ranks) else float(np.corrcoef(*ranks)[0, 1])


SPEARMAN = EvaluationMetric(
    name="spearman", title="Spearman correlation", unit="", higher_is_better=True, measure=_spearman,
    statistic=_correlation,
    meaning="Rank correlation of the cosine between the two texts of a pair (or of a regressor's number) with the "
    "score in the data, as STS-B is quoted; 1 is the same order, higher is better",
)  # fmt: skip

"""Metrics of models whose outputs are logits: KL, agreement, perplexity, accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workbench.measurement.metrics.metric import EvaluationMetric, Outputs, Sums
from workbench.measurement.units import NATS, PERCENT
from workbench.models.summary import OutputKind

if TYPE_CHECKING:
    import torch

    from workbench.models.model import Batch


def _kl(outputs: Outputs) -> Sums | None:
    if not outputs.kind.is_logits:
        return None
    if not outputs.kind.per_token:
        kl = outputs.kl.reshape(len(outputs.kl), -1).sum(dim=1)
        return Sums(kl, 0.0 * outputs.ones, outputs.ones)
    units = outputs.counted.sum(dim=1)
    return Sums(outputs.kl.sum(dim=1), 0.0 * units, units)


def _agreement(outputs: Outputs) -> Sums | None:
    import torch

    if not outputs.kind.is_logits or outputs.kind is OutputKind.DETECTIONS:
        return None
    same = torch.eq(*outputs.compared.answers)
    if outputs.kind is OutputKind.CLASS_LOGITS:
        return Sums(100.0 * same, 100.0 * outputs.ones, outputs.ones)
    units = outputs.counted.sum(dim=1)
    return Sums(100.0 * (same & outputs.counted).sum(dim=1), 100.0 * units, units)


def _perplexity(outputs: Outputs) -> Sums | None:
    if outputs.kind is not OutputKind.TOKEN_LOGITS:
        return None
    ids, counted = next_tokens(outputs.batch, outputs.tokens)
    if ids.shape[1] < 1:
        return None
    counted = counted & (ids < outputs.reference.shape[-1])
    ids = ids.clamp_max(outputs.reference.shape[-1] - 1)
    baseline, loss = outputs.compared.log_sums
    losses = _log_likelihood_loss(outputs.quantized, loss, ids, counted)
    baselines = _log_likelihood_loss(outputs.reference, baseline, ids, counted)
    return Sums(losses, baselines, counted.sum(dim=1))


def next_tokens(batch: Batch, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the tokens that the logits from the first position on predict, and which of them count.

    Both are samples x tokens: the labels of an encoder-decoder, else each window's tokens from the second on, which
    count where they and the token before them are real and the window scores them (``scored``: int64, 1 where it does;
    ``labels``: not negative where they do).
    """
    from workbench.models.data.batches import has_decoder, token_ids

    ids = token_ids(batch)
    if has_decoder(batch) and "labels" in batch:
        return batch["labels"].clamp_min(0), (batch["labels"] >= 0) & tokens
    pairs = tokens[:, 1:] & tokens[:, :-1]
    if "labels" in batch and batch["labels"].shape == ids.shape:
        pairs = pairs & (batch["labels"][:, 1:] >= 0)
    return ids[:, 1:], pairs & (batch["scored"][:, 1:] != 0) if "scored" in batch else pairs


def _log_likelihood_loss(
    logits: torch.Tensor, log_sums: torch.Tensor, ids: torch.Tensor, counted: torch.Tensor
) -> torch.Tensor:
    """Return each window's summed negative log-likelihood of ``ids`` where they are ``counted``, float64."""
    tokens = ids.shape[1]
    chosen = logits[:, :tokens].gather(-1, ids[..., None].long()).squeeze(-1)
    losses = log_sums[:, :tokens] - chosen.double()
    return losses.where(counted, losses.new_zeros(())).sum(dim=1)


def _accuracy(outputs: Outputs) -> Sums | None:
    labels, kind = outputs.batch.get("labels"), outputs.kind
    if labels is None or labels.shape != outputs.reference.shape[:-1]:
        return None
    right, baseline = (100.0 * (logits.argmax(-1) == labels) for logits in (outputs.quantized, outputs.reference))
    if kind is OutputKind.CLASS_LOGITS and labels.ndim == 1:
        return Sums(right, baseline, outputs.ones)
    if kind is not OutputKind.TOKEN_CLASSES:
        return None
    counted = outputs.tokens & (labels >= 0)
    return Sums((right * counted).sum(dim=1), (baseline * counted).sum(dim=1), counted.sum(dim=1))


KL = EvaluationMetric(
    name="kl", title="KL to floating point", unit=NATS, higher_is_better=False, measure=_kl, compares_models=True,
    meaning="Kullback-Leibler divergence of the quantized model's answers from the floating-point model's, in nats per "
    "token or sample; 0 is equal, lower is better",
)  # fmt: skip
TOP1_AGREEMENT = EvaluationMetric(
    name="top1_agreement", title="Top-1 agreement", unit=PERCENT, higher_is_better=True, measure=_agreement,
    compares_models=True,
    meaning="Share of tokens or samples for which both models give the same most likely answer, in %; higher is better",
)  # fmt: skip
PERPLEXITY = EvaluationMetric(
    name="perplexity", title="Perplexity", unit="", higher_is_better=False, measure=_perplexity, transform=np.exp,
    meaning="Exponential of the mean loss per token: the number of equally likely tokens that would be as uncertain; "
    "no unit, lower is better",
)  # fmt: skip
ACCURACY = EvaluationMetric(
    name="accuracy", title="Top-1 accuracy", unit=PERCENT, higher_is_better=True, measure=_accuracy,
    meaning="Share of samples, or of labelled tokens, whose label is the model's most likely answer, in %; higher is "
    "better",
)  # fmt: skip

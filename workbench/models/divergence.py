"""How far one output lies from another: per sample, in nats where the outputs are logits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from workbench.models.batches import token_mask
from workbench.models.summary import OutputKind

if TYPE_CHECKING:
    from workbench.models.model import Batch


def logit_divergence(reference: torch.Tensor, candidate: torch.Tensor) -> torch.Tensor:
    """Return KL(softmax(reference) || softmax(candidate)) along the last axis, float64, never negative.

    With ``s = candidate - reference`` shifted so that its mean under p is 0, ``KL = log(1 + sum p (exp(s) - 1 - s))``:
    a sum of positive terms, so that small divergences keep their digits.  Where ``s`` is too large for that, the plain
    difference of log-probabilities is as good.
    """
    p = torch.softmax(reference.double(), dim=-1)
    shift = candidate.double() - reference.double()
    shift -= (p * shift).sum(dim=-1, keepdim=True)
    if float(shift.abs().max()) > 30.0:
        log_ratio = torch.log_softmax(reference.double(), -1) - torch.log_softmax(candidate.double(), -1)
        return (p * log_ratio).sum(dim=-1).clamp_min(0.0)
    return torch.log1p((p * (torch.expm1(shift) - shift)).sum(dim=-1)).clamp_min(0.0)


def sample_divergence(reference: torch.Tensor, candidate: torch.Tensor, batch: Batch, kind: OutputKind) -> torch.Tensor:
    """Return each sample's divergence summed over its units, float64 ``[samples]``.

    Token logits: KL summed over real tokens; class logits: KL; anything else: half the squared distance, which is what
    the Gauss-Newton prediction stands for.
    """
    if kind not in (OutputKind.TOKEN_LOGITS, OutputKind.CLASS_LOGITS):
        difference = (candidate.double() - reference.double()).reshape(reference.shape[0], -1)
        return 0.5 * difference.square().sum(dim=1)
    each = torch.stack([logit_divergence(r, c) for r, c in zip(reference, candidate, strict=True)])
    mask = token_mask(batch)
    if mask is not None and each.ndim == 2:
        each = each * mask
    return each.reshape(each.shape[0], -1).sum(dim=1)

"""What a quantized model learns to lower: its divergence from the floating-point model, or the task's own loss."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F

from workbench.errors import DataError
from workbench.models.data.batches import token_ids, token_mask
from workbench.models.model import Batch
from workbench.models.summary import OutputKind

Loss = Literal["kl", "task"]


def divergence(teacher: torch.Tensor, student: torch.Tensor, batch: Batch, kind: OutputKind) -> torch.Tensor:
    """Return KL(teacher || student), the mean over real tokens or samples, a scalar with a graph to ``student``.

    Outputs that are no logits: the squared distance over the teacher's mean square.
    """
    if not kind.is_logits:
        exact = teacher.float()
        tiny = torch.finfo(torch.float32).tiny
        return (student.float() - exact).square().mean() / exact.square().mean().clamp_min(tiny)
    target = torch.log_softmax(teacher.float(), dim=-1)
    each = F.kl_div(torch.log_softmax(student.float(), dim=-1), target, log_target=True, reduction="none").sum(dim=-1)
    return _mean(each, token_mask(batch) if each.ndim == 2 else None)


def task_loss(student: torch.Tensor, batch: Batch, kind: OutputKind) -> torch.Tensor:
    """Return the mean cross-entropy to the labels, or to the next tokens; raises DataError where there are neither."""
    if kind is OutputKind.TOKEN_LOGITS:
        logits, mask = student[:, :-1].float().transpose(1, 2), token_mask(batch)
        each = F.cross_entropy(logits, token_ids(batch)[:, 1:], reduction="none")
        return _mean(each, None if mask is None else mask[:, 1:] & mask[:, :-1])
    if kind is not OutputKind.CLASS_LOGITS or "labels" not in batch:
        raise DataError("the task loss needs class labels or tokens; give data with labels, or train on the loss kl")
    return F.cross_entropy(student.float(), batch["labels"])


def _mean(losses: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    return losses.mean() if mask is None else (losses * mask).sum() / mask.sum()

"""What a quantized model learns to lower: its divergence from the floating-point model, or the task's own loss."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F

from workbench.errors import DataError
from workbench.models.data.batches import token_mask
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
    mask = token_mask(batch)
    if mask is None or each.ndim != 2:
        return each.mean()
    return (each * mask).sum() / mask.sum()


def task_loss(student: torch.Tensor, batch: Batch, kind: OutputKind) -> torch.Tensor:
    """Return the mean cross-entropy to the labels, or to the next tokens; raises DataError where there are neither."""
    if kind is OutputKind.TOKEN_LOGITS:
        ids = batch["input_ids"] if "input_ids" in batch else next(iter(batch.values()))
        each = F.cross_entropy(student[:, :-1].float().transpose(1, 2), ids[:, 1:], reduction="none")
        mask = token_mask(batch)
        if mask is None:
            return each.mean()
        pairs = mask[:, 1:] & mask[:, :-1]
        return (each * pairs).sum() / pairs.sum()
    if kind is not OutputKind.CLASS_LOGITS or "labels" not in batch:
        raise DataError("the task loss needs class labels or tokens; give data with labels, or train on the loss kl")
    return F.cross_entropy(student.float(), batch["labels"])

"""The loop that learned rounding and quantization-aware training share: matrices on their grids, moved by gradients."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F

from workbench.errors import CancelledError, DataError, NonFiniteError, PlanError
from workbench.measurement.metrics.logits import next_tokens
from workbench.models.data.batches import output_mask, token_ids, token_mask, units_of
from workbench.models.model import Batch, Model, Replacement
from workbench.models.summary import OutputKind
from workbench.numerics.detections import detection_divergence
from workbench.numerics.rounding.descent import Descent, rate_factor
from workbench.numerics.rounding.lsq import LearnedMatrix
from workbench.preflight import clock
from workbench.progress import Progress, silent
from workbench.quantization.learning.checkpoint import Checkpoint
from workbench.quantization.learning.data import Samples, Teacher

Loss = Literal["kl", "task"]
"""What a run lowers: the divergence from the floating-point model, or the task's own loss."""

COMPARED_SAMPLES = 64
"""Samples that decide whether the end of a run is better than its start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnOptions:
    """How to learn.

    ``rate``: the most that a weight moves in the first step, in steps of its grid; ``scale_rate`` the relative change
    of a scale, ``zero_rate`` of a zero point, in codes.  ``limit``: how far a weight may go from where it began, in
    steps (None: anywhere).  ``batch_size`` None: 4 samples of tokens, else 64.
    """

    steps: int = 600
    batch_size: int | None = None
    rate: float = 0.01
    scale_rate: float = 0.002
    zero_rate: float = 0.01
    limit: float | None = 0.5
    loss: Loss = "kl"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1 or (self.batch_size is not None and self.batch_size < 1):
            raise PlanError(
                f"{self.steps} steps of {self.batch_size} samples are not possible; at least 1 of each is needed"
            )
        if not (self.rate >= 0 and self.scale_rate >= 0 and self.zero_rate >= 0):
            raise PlanError(f"a learning rate of {self.rate} is not possible; it must not be negative")

    def samples(self, kind: OutputKind) -> int:
        """Return the samples of a batch for a model with this output."""
        return self.batch_size or (4 if kind.per_token else 64)


@dataclass(slots=True, kw_only=True)
class Run:
    """A learning run over ``matrices`` (layer that owns its weight to matrix), which hold its result.

    ``teacher`` is the floating-point model, ``student`` a view of it with everything else that is quantized;
    ``inputs`` quantize layer inputs.  At most ``most`` samples run at once: a larger batch of logits goes in pieces,
    whose losses and gradients add up to the batch's.
    """

    teacher: Model
    student: Model
    matrices: Mapping[str, LearnedMatrix]
    samples: Samples
    options: LearnOptions
    inputs: Mapping[str, Replacement]
    purpose: str
    most: int = sys.maxsize
    progress: Progress = silent

    def learn(self, checkpoint: Checkpoint) -> None:
        """Take all steps that ``checkpoint`` lacks.

        A cancelled run saves what it has.  Where the samples' loss is no lower in the end than it was at the start, the
        matrices return to where they began.  Raises NonFiniteError if the loss is NaN or infinite, PlanError for a
        checkpoint of another run.
        """
        descent, steps = self._descent(), self.options.steps
        state = checkpoint.load()
        if state is not None:
            descent.load(state)
        teacher, loss = Teacher(self.teacher, self.samples), ""
        try:
            while descent.taken < steps:
                self.progress(descent.taken / steps, f"{self.purpose}: step {descent.taken + 1} of {steps}{loss}")
                loss = f", loss {self._step(descent, teacher):.4g}"
                if checkpoint.due(descent.taken, steps):
                    checkpoint.save(descent.state())
        except CancelledError:
            checkpoint.save(descent.state())
            raise
        self._undo_unless_better(teacher)
        self.progress(1.0, f"{self.purpose}: done")

    def tried(self) -> tuple[float, float]:
        """Take two steps; return the seconds of the second, and of the mean loss of one batch afterwards."""
        descent, teacher = self._descent(), Teacher(self.teacher, self.samples)
        self._step(descent, teacher)
        start = clock()
        self._step(descent, teacher)
        step = clock() - start
        start = clock()
        with torch.no_grad():
            for piece, _ in self._pieces(np.arange(min(self._batch_size(), len(self.samples)))):
                self._loss(piece, teacher)
        return step, clock() - start

    @torch.no_grad()
    def _undo_unless_better(self, teacher: Teacher) -> None:
        """Set all variables to where they began, 0, unless the end is better on the first samples."""
        variables = [variable for matrix in self.matrices.values() for variable in matrix.variables.values()]
        end = [variable.detach().clone() for variable in variables]
        learned = self._mean_loss(teacher)
        for variable in variables:
            variable.zero_()
        if learned < self._mean_loss(teacher):
            for variable, value in zip(variables, end, strict=True):
                variable.copy_(value)

    def _mean_loss(self, teacher: Teacher) -> float:
        """Return the mean loss of the rounded matrices over the first samples."""
        size = min(self._batch_size(), len(self.samples))
        count = max(1, min(len(self.samples), COMPARED_SAMPLES) // size)
        parts = np.arange(count * size).reshape(count, size)
        pieces = [piece for numbers in parts for piece in self._pieces(numbers)]
        return sum(float(self._loss(piece, teacher)) * share for piece, share in pieces) / count

    def _pieces(self, numbers: np.ndarray) -> list[tuple[np.ndarray, float]]:
        """Return the samples that run together and their share in the mean loss."""
        if len(numbers) <= self.most or not self.teacher.summary.output.is_logits:
            return [(numbers, 1.0)]
        pieces = [numbers[start : start + self.most] for start in range(0, len(numbers), self.most)]
        units = [self._units(piece) for piece in pieces]
        if not sum(units):
            return [(numbers, 1.0)]
        return [(piece, each / sum(units)) for piece, each in zip(pieces, units, strict=True) if each]

    def _units(self, numbers: np.ndarray) -> int:
        """Return over how many tokens or samples the loss of a batch is the mean."""
        batch = self.samples.batch(numbers)
        if self.options.loss == "kl" or self.teacher.summary.output is not OutputKind.TOKEN_LOGITS:
            return units_of(batch, self.teacher.summary)
        return int(_predicted(batch)[1].sum())

    def _descent(self) -> Descent:
        rates = {"shift": self.options.rate, "scale": self.options.scale_rate, "zero": self.options.zero_rate}
        pairs = [(v, rates[name]) for m in self.matrices.values() for name, v in m.variables.items()]
        return Descent(variables=[v for v, _ in pairs], rates=[rate for _, rate in pairs])

    def _batch_size(self) -> int:
        return self.options.samples(self.teacher.summary.output)

    def _step(self, descent: Descent, teacher: Teacher) -> float:
        options, step = self.options, descent.taken
        variables, loss, gradients = list(descent.variables), torch.zeros(()), list[torch.Tensor]()
        for piece, share in self._pieces(self.samples.shuffled(step, self._batch_size(), options.seed)):
            with torch.enable_grad():
                part = self._loss(piece, teacher) * share if share < 1 else self._loss(piece, teacher)
                more = torch.autograd.grad(part, variables, allow_unused=True, materialize_grads=True)
            loss = loss + part.detach().cpu()
            gradients = [a + b for a, b in zip(gradients, more, strict=True)] if gradients else list(more)
        if not bool(loss.isfinite()):
            raise NonFiniteError(f"{self.purpose} diverged at step {step + 1}: the loss is {float(loss.detach())}")
        descent.step(gradients, rate_factor("cosine", step, options.steps))
        if options.limit is not None:
            for matrix in self.matrices.values():
                matrix.bound_(options.limit)
        return float(loss.detach())

    def _loss(self, numbers: np.ndarray, teacher: Teacher) -> torch.Tensor:
        """Return the loss on the samples ``numbers``, with a graph to the variables where gradients are enabled."""
        batch, kind = self.teacher.on_device(self.samples.batch(numbers)), self.teacher.summary.output
        target = teacher.outputs(numbers, batch) if self.options.loss == "kl" else None
        weights = {name: matrix.values() for name, matrix in self.matrices.items()}
        output = self.student.with_weights(weights).run(batch, inputs=self.inputs or None)
        return task_loss(output, batch, kind) if target is None else divergence(target, output, batch, kind)


def through(replace: Replacement) -> Replacement:
    """Return ``replace`` with the gradient of the identity: quantized inputs that let gradients pass."""

    def replaced(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.requires_grad:
            return replace(tensor)
        return tensor + (replace(tensor.detach()) - tensor).detach()

    return replaced


def divergence(teacher: torch.Tensor, student: torch.Tensor, batch: Batch, kind: OutputKind) -> torch.Tensor:
    """Return KL(teacher || student), the mean over real tokens or samples, a scalar with a graph to ``student``.

    Outputs that are not logits: the squared distance over the teacher's mean square.
    """
    if not kind.is_logits:
        exact = teacher.float()
        tiny = torch.finfo(torch.float32).tiny
        return (student.float() - exact).square().mean() / exact.square().mean().clamp_min(tiny)
    if kind is OutputKind.DETECTIONS:
        return detection_divergence(teacher, student).mean().float()
    target = torch.log_softmax(teacher.float(), dim=-1)
    each = F.kl_div(torch.log_softmax(student.float(), dim=-1), target, log_target=True, reduction="none").sum(dim=-1)
    return _mean(each, None if kind is OutputKind.CLASS_LOGITS else output_mask(batch, teacher))


def task_loss(student: torch.Tensor, batch: Batch, kind: OutputKind) -> torch.Tensor:
    """Return the mean cross-entropy to the labels, or to the next tokens; raises DataError where there are neither."""
    if kind is OutputKind.TOKEN_LOGITS:
        ids, counted = _predicted(batch)
        logits = student[:, : ids.shape[1]].float().transpose(1, 2)
        return _mean(F.cross_entropy(logits, ids.long(), reduction="none"), counted)
    if kind is not OutputKind.CLASS_LOGITS or "labels" not in batch:
        raise DataError("the task loss needs class labels or tokens; give data with labels, or train on the loss kl")
    return F.cross_entropy(student.float(), batch["labels"].long())


def _predicted(batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the ids that token logits predict, and which of them count; see ``next_tokens``."""
    mask = token_mask(batch)
    return next_tokens(batch, torch.ones_like(token_ids(batch), dtype=torch.bool) if mask is None else mask)


def _mean(losses: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    return losses.mean() if mask is None else (losses * mask).sum() / mask.sum()

"""The loop that learned rounding and quantization-aware training share: matrices on their grids, moved by gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from workbench.errors import CancelledError, NonFiniteError, PlanError
from workbench.models.model import Batch, Model
from workbench.models.summary import OutputKind
from workbench.numerics.rounding.descent import Descent, Rule, Schedule, rate_factor
from workbench.numerics.rounding.lsq import LearnedMatrix
from workbench.progress import Progress, silent
from workbench.quantization.learning.checkpoint import Checkpoint
from workbench.quantization.learning.data import Samples, Teacher
from workbench.quantization.learning.loss import Loss, divergence, task_loss

Replacement = Callable[[torch.Tensor], torch.Tensor]

JUDGED_SAMPLES = 64
"""So many samples decide whether the end of a run is better than its start."""


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
    rule: Rule = "adam"
    schedule: Schedule = "cosine"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1 or (self.batch_size is not None and self.batch_size < 1):
            raise PlanError(f"{self.steps} steps of {self.batch_size} samples cannot be; at least 1 of each is needed")
        if not (self.rate >= 0 and self.scale_rate >= 0 and self.zero_rate >= 0):
            raise PlanError(f"a learning rate of {self.rate} cannot be; it must not be negative")

    def samples(self, kind: OutputKind) -> int:
        """Return the samples of a batch for a model with this output."""
        return self.batch_size or (4 if kind.per_token else 64)


@dataclass(slots=True, kw_only=True)
class Run:
    """A learning run over the matrices of ``matrices`` (layer that owns its weight to matrix), which hold its result.

    ``teacher`` is the floating-point model, ``student`` a view of it with everything else that is quantized;
    ``inputs`` quantize layer inputs.
    """

    teacher: Model
    student: Model
    matrices: Mapping[str, LearnedMatrix]
    samples: Samples
    options: LearnOptions
    inputs: Mapping[str, Replacement]
    purpose: str
    progress: Progress = silent

    def learn(self, checkpoint: Checkpoint | None = None) -> float:
        """Take all steps (those that ``checkpoint`` lacks) and return the last step's loss.

        A cancelled run saves what it has.  Where the samples' loss is no lower in the end than it was at the start, the
        matrices are put back to where they began.  Raises NonFiniteError if the loss is lost, PlanError for a
        checkpoint of another run.
        """
        descent, options = self._descent(), self.options
        known = checkpoint.load() if checkpoint is not None else None
        if known is not None:
            descent.load(known)
        teacher, latest = Teacher(self.teacher, self.samples), float("nan")
        start = [torch.zeros_like(variable) for variable in descent.variables]
        try:
            while descent.taken < options.steps:
                step = descent.taken
                self.progress(step / options.steps, self._text(step, latest))
                latest = self._step(descent, teacher)
                if checkpoint is not None and descent.taken % checkpoint.every == 0:
                    checkpoint.save(descent.state())
        except CancelledError:
            if checkpoint is not None:
                checkpoint.save(descent.state())
            raise
        if checkpoint is not None:
            checkpoint.save(descent.state())
        self._keep_the_better(descent.variables, start, teacher)
        self.progress(1.0, f"{self.purpose}: done")
        return latest

    def _keep_the_better(
        self, variables: Sequence[torch.Tensor], start: Sequence[torch.Tensor], teacher: Teacher
    ) -> None:
        """Put the start back into ``variables`` unless the end is better on the first samples."""
        end = [variable.detach().clone() for variable in variables]
        learned = self._judged(teacher)
        _put(variables, start)
        if learned < self._judged(teacher):
            _put(variables, end)

    @torch.no_grad()
    def _judged(self, teacher: Teacher) -> float:
        """Return the mean loss over the first samples, of the rounded matrices."""
        weights = {name: matrix.values() for name, matrix in self.matrices.items()}
        view = self.student.with_weights(weights)
        size = min(self.options.samples(self.teacher.summary.output), len(self.samples))
        total, count = 0.0, max(1, min(len(self.samples), JUDGED_SAMPLES) // size)
        for place in range(count):
            chosen = np.arange(place * size, (place + 1) * size)
            batch = self.samples.take(chosen)
            output = view.run(batch, inputs=self.inputs or None)
            target = teacher.outputs(chosen, batch) if self.options.loss == "kl" else None
            total += float(self._compare(output, target, batch))
        return total / count

    def _text(self, step: int, loss: float) -> str:
        shown = f", loss {loss:.4g}" if loss == loss else ""
        return f"{self.purpose}: step {step + 1} of {self.options.steps}{shown}"

    def _descent(self) -> Descent:
        rates = {"shift": self.options.rate, "scale": self.options.scale_rate, "zero": self.options.zero_rate}
        pairs = [(v, rates[name]) for m in self.matrices.values() for name, v in m.variables.items()]
        return Descent(variables=[v for v, _ in pairs], rates=[rate for _, rate in pairs], rule=self.options.rule)

    def _step(self, descent: Descent, teacher: Teacher) -> float:
        options, step = self.options, descent.taken
        size = options.samples(self.teacher.summary.output)
        chosen = self.samples.drawn(step, size, options.seed)
        batch = self.samples.take(chosen)
        target = teacher.outputs(chosen, batch) if options.loss == "kl" else None
        with torch.enable_grad():
            loss = self._loss(batch, target)
            found = torch.autograd.grad(loss, list(descent.variables), allow_unused=True)
        if not bool(loss.isfinite()):
            raise NonFiniteError(f"{self.purpose} lost its way at step {step + 1}: the loss is {float(loss.detach())}")
        gradients = [torch.zeros_like(v) if g is None else g for v, g in zip(descent.variables, found, strict=True)]
        descent.step(gradients, rate_factor(options.schedule, step, options.steps))
        if options.limit is not None:
            for matrix in self.matrices.values():
                matrix.bound_(options.limit)
        return float(loss.detach())

    def _loss(self, batch: Batch, target: torch.Tensor | None) -> torch.Tensor:
        weights = {name: matrix.values() for name, matrix in self.matrices.items()}
        output = self.student.with_weights(weights).run(batch, inputs=self.inputs or None)
        return self._compare(output, target, batch)

    def _compare(self, output: torch.Tensor, target: torch.Tensor | None, batch: Batch) -> torch.Tensor:
        kind = self.teacher.summary.output
        return task_loss(output, batch, kind) if target is None else divergence(target, output, batch, kind)


@torch.no_grad()
def _put(variables: Sequence[torch.Tensor], values: Sequence[torch.Tensor]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.copy_(value)


def through(replace: Replacement) -> Replacement:
    """Return ``replace`` with the gradient of the identity: quantized inputs that let gradients pass."""

    def replaced(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.requires_grad:
            return replace(tensor)
        return tensor + (replace(tensor.detach()) - tensor).detach()

    return replaced

"""What learned rounding and training take, from two steps of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.measurement.gradients import fitting_batch
from workbench.models.data.batches import Data
from workbench.models.model import Model
from workbench.preflight import clock, measured
from workbench.quantization.learning.data import Samples
from workbench.quantization.learning.learn import first_fits
from workbench.quantization.learning.loop import COMPARED_SAMPLES, LearnOptions, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningTrial:
    """Seconds of the first fits, of a step and of the comparison of the end with the start; bytes beside the model."""

    fits: float
    step: float
    comparison: float
    nbytes: int

    def seconds(self, steps: int) -> float:
        """Return the seconds of a whole run."""
        return self.fits + self.step * steps + self.comparison


def learning_trial(
    model: Model, schemes: Mapping[str, str], data: Data, options: LearnOptions | None = None
) -> LearningTrial:  # fmt: skip
    """Fit all layers of ``schemes`` and take two steps; what is learned is thrown away."""
    options = options or LearnOptions()
    with measured() as spent:
        start = clock()
        matrices = first_fits(model, schemes, {})
        fits = clock() - start
        size = options.samples(model.summary.output)
        run = Run(
            teacher=model, student=model, matrices=matrices, samples=Samples(data), options=options, inputs={},
            purpose="a trial", most=fitting_batch(size, data, model, gradients=True),
        )  # fmt: skip
        step, loss = run.tried()
    batches = max(1, min(len(data), COMPARED_SAMPLES) // min(size, len(data)))
    return LearningTrial(fits=fits, step=step, comparison=2 * batches * loss, nbytes=spent.peak - spent.before)

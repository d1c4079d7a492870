"""AdaRound and SignRound (``learned`` in plans) for one matrix: rounding chosen for the layer's output.

Nagel et al., "Up or Down? Adaptive Rounding for Post-Training Quantization", ICML 2020, with the signed gradient
descent of Cheng et al., "Optimize Weight Rounding via Signed Gradient Descent for the Quantization of LLMs", 2023.
Here the objective is the mean squared error of the layer's output,

    tr(D A D^T),    D = rounded - weight,  A = E[x x^T] of the inputs,

which needs no run of the model.  Where there is a model and data to run it on, :mod:`workbench.quantization.learning`
takes the model's own output as the objective, for all layers at once; a plan with the algorithm ``learned`` gets that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from workbench.errors import AlgorithmError
from workbench.numerics.rounding.algorithm import Context, Need, Rounded
from workbench.numerics.scheme import Scheme

if TYPE_CHECKING:
    import torch

    from workbench.numerics.rounding.lsq import LearnedMatrix

RATES = {"shift": 1.0, "scale": 0.2, "zero": 1.0}
"""Rates of the variables relative to that of the rounding offsets."""

LIMIT = 0.5
"""Offsets within half a step choose between the two codes around a weight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedRounding:
    """``steps`` of signed gradient descent with a rate that falls linearly from ``rate`` steps of the grid to 0."""

    name: ClassVar[str] = "learned"
    needs: ClassVar[Need] = Need.SECOND_MOMENT
    """The second moment of the inputs: the objective is the error of the output."""
    steps: int = 200
    rate: float = 0.01

    def quantize(self, weight: torch.Tensor, scheme: Scheme, context: Context | None = None) -> Rounded:
        """Return the best of all steps; round-to-nearest with clip search is the first of them.

        ``context.second_moment`` is A, ``[columns, columns]`` (or one for each of the equal runs of rows of a grouped
        convolution); raises AlgorithmError without it.
        """
        import torch

        from workbench.numerics.rounding.lsq import LearnedMatrix

        if context is None or context.second_moment is None:
            raise AlgorithmError(
                "AdaRound/SignRound ('learned') needs the second moment of the inputs; calibrate with curvature first"
            )
        exact = weight.detach().to(torch.float32)
        moment = context.second_moment.to(torch.float32).reshape(-1, exact.shape[1], exact.shape[1])
        importance = moment.diagonal(dim1=1, dim2=2).repeat_interleave(exact.shape[0] // moment.shape[0], dim=0)
        matrix = LearnedMatrix(exact, scheme, scheme.fit(weight, importance, clip_search=True))
        with torch.enable_grad():
            return self._descend(matrix, exact, moment)

    def _descend(self, matrix: LearnedMatrix, exact: torch.Tensor, moment: torch.Tensor) -> Rounded:
        import torch

        from workbench.numerics.rounding.descent import Descent, rate_factor

        names, variables = list(matrix.variables), list(matrix.variables.values())
        descent = Descent(variables=variables, rates=[self.rate * RATES[name] for name in names], rule="signed")
        least, best = float("inf"), matrix.rounded()
        for step in range(self.steps + 1):
            difference = (matrix.values() - exact).reshape(moment.shape[0], -1, exact.shape[1])
            loss = ((difference @ moment) * difference).sum()
            error = float(loss.detach())
            if error < least:
                least, best = error, matrix.rounded()
            if step < self.steps:
                descent.step(torch.autograd.grad(loss, variables), rate_factor("linear", step, self.steps))
                matrix.bound_(LIMIT)
        return best

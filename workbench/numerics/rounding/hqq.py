"""HQQ: half-quadratic quantization, a zero point and scale without any data.

Badri and Shaji, "Half-Quadratic Quantization of Large Machine Learning Models", 2023.  Objective, for each group of a
weight ``W`` ``[rows, columns]``: the zero point ``z`` with the least ``sum |W - Q_z(W)|^p``, ``p = 0.7``: large errors
(outliers) count less than in a square.  Half-quadratic splitting with an auxiliary error ``E`` alternates

    E = shrink(W - s (q - z)),      shrink(e) = sign(e) * relu(|e| - p |e|^(p-1) / beta)
    z = mean over the group of (q - (W - E) / s),      q = round(W / s + z) within the codes

with ``beta`` growing.  Then the scale is refitted once by least squares, and kept where the objective falls.  Where the
scheme stores integer zero points ``z`` is rounded.  The paper keeps the scale of the full range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from workbench.errors import AlgorithmError
from workbench.numerics.rounding.algorithm import Context, Need, Rounded
from workbench.numerics.rounding.parameter_parts import is_plain, join_columns, stack_rows, take_rows
from workbench.numerics.scheme import Parameters, Scheme

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class Hqq:
    """``power`` is the norm's exponent, ``beta`` the splitting's first weight, ``growth`` its factor at each step."""

    name: ClassVar[str] = "hqq"
    needs: ClassVar[Need] = Need.NOTHING
    power: float = 0.7
    beta: float = 10.0
    growth: float = 1.01
    steps: int = 20

    def quantize(self, weight: torch.Tensor, scheme: Scheme, context: Context | None = None) -> Rounded:
        """Return the weight on the grid; AlgorithmError for a scheme without a zero point for each row's group."""
        weight = weight.detach().float()
        start = scheme.fit(weight)
        movable = start.zero_point is not None or start.offset is not None
        if not movable or not is_plain(scheme, start, weight.shape[0]):
            raise AlgorithmError(
                f"hqq moves zero points, and {scheme.name} has none for each row or group; choose an asymmetric "
                "integer scheme such as int4-g64-asym"
            )
        width = start.width if start.scale.shape[1] > 1 else weight.shape[1]
        parts = [self._group(weight[:, first : first + width], scheme) for first in range(0, weight.shape[1], width)]
        parameters = join_columns(parts)
        return Rounded(parameters=parameters, values=scheme.round(weight, parameters))

    def _group(self, weight: torch.Tensor, scheme: Scheme) -> Parameters:
        """Return the parameters of one group of columns ``[rows, width]``: the best of the ranges passed on the way."""
        import torch

        top = float(scheme.values()[-1] - scheme.values()[0])
        parameters = scheme.fit(weight)
        scale = parameters.scale.clone()
        scale[scale == 0] = 1.0
        zero = -weight.amin(dim=1, keepdim=True).clamp(max=0) / scale
        beta, tried = self.beta, [parameters]
        for step in range(self.steps):
            codes = (weight / scale + zero).round().clamp(0, top)
            error = self._shrink(weight - scale * (codes - zero), beta)
            zero = (codes - (weight - error) / scale).mean(dim=1, keepdim=True)
            beta *= self.growth
            if step % 4 == 3 or step == self.steps - 1:
                tried += [_of_range(scheme, weight, scale, zero, top), _refitted(scheme, weight, scale, zero, top)]
        stacked = stack_rows(tried)
        rounded = scheme.round(weight.repeat(len(tried), 1), stacked).reshape(len(tried), *weight.shape)
        best = (rounded - weight).abs().pow(self.power).sum(dim=-1).argmin(dim=0)
        return take_rows(stacked, best * len(weight) + torch.arange(len(weight), device=weight.device))

    def _shrink(self, error: torch.Tensor, beta: float) -> torch.Tensor:
        size = error.abs()
        return error.sign() * (size - self.power * size.clamp_min(1e-8).pow(self.power - 1) / beta).clamp_min(0)


def _of_range(scheme: Scheme, weight: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, top: float) -> Parameters:
    """Return the scheme's parameters of the ranges from code 0 to code ``top``, as it can store them."""
    import torch

    low, high = (-zero * scale).clamp(max=0), ((top - zero) * scale).clamp(min=0)
    ends = torch.zeros_like(weight)
    ends[:, :1], ends[:, -1:] = low, high
    if weight.shape[1] == 1:
        ends = torch.where(weight < 0, low, high)
    return scheme.fit(ends)


def _refitted(scheme: Scheme, weight: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, top: float) -> Parameters:
    """Return the parameters with the scale of least squares for the codes that ``scale`` and ``zero`` give."""
    import torch

    levels = (weight / scale + zero).round().clamp(0, top) - zero
    energy = levels.square().sum(dim=1, keepdim=True)
    fitted = (weight * levels).sum(dim=1, keepdim=True) / energy.clamp_min(1e-12)
    return _of_range(scheme, weight, torch.where((energy > 0) & (fitted > 0), fitted, scale), zero, top)

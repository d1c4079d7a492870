"""Learned step sizes: a weight matrix on the grid of a scheme, with gradients for what decides its codes.

Esser et al., "Learned Step Size Quantization", ICLR 2020: the forward pass rounds, ``value = s * (clip(round(u / s) +
z, 0, Q) - z)``; the backward pass takes rounding for the identity.  A latent weight ``u`` gets the gradient where it is
not clipped; a step ``s`` gets ``code - u / s`` (``code`` where clipped), times ``1 / sqrt(n * Qp)``, n being the
weights that share it and Qp the greatest code; a zero point or offset gets what the clipped weights leave (Bhalgat et
al., "LSQ+", 2020).  Here ``u = weight + step * shift`` with the steps of the first fit, so that shifts of all layers
have one unit: a rounding offset within [-0.5, 0.5] chooses one of the two neighbouring codes (Cheng et al., "Optimize
Weight Rounding via Signed Gradient Descent", 2023), a free one trains the weight.

Schemes with a scale format of floating-point numbers learn their steps.  Any other (powers of two, scales of scales,
tables) keeps the parameters of its fit, and its weights alone learn.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from workbench.numerics.element import Element
from workbench.numerics.formats.affine import Affine
from workbench.numerics.formats.scaled import ScaledScheme
from workbench.numerics.granularity import Grid, grid, grouped
from workbench.numerics.rounding.algorithm import Rounded
from workbench.numerics.scale_format import SCALE_FORMATS
from workbench.numerics.scheme import Parameters, Scheme

if TYPE_CHECKING:
    import torch

SHIFT, SCALE, ZERO = "shift", "scale", "zero"
"""The variables of a learned matrix: shifts of weights in steps, relative changes of scales, shifts of zero points."""


class LearnedMatrix:
    """A matrix ``[rows, columns]`` that is on the grid of ``scheme`` whatever its variables are.

    ``variables`` are float32 leaves: ``shift`` ``[rows, columns]`` in steps of the first fit; where the scheme's steps
    can be learned ``scale`` (relative change) and, with zero points or offsets, ``zero`` (in codes), ``[bands,
    groups]``.
    """

    def __init__(self, weight: torch.Tensor, scheme: Scheme, parameters: Parameters) -> None:
        """Begin at ``parameters``, a fit of ``scheme`` to ``weight``, with all variables at zero."""
        import torch

        self.scheme, self._fit = scheme, parameters
        self._weight = weight.detach().to(torch.float32)
        self.rows, self.columns = self._weight.shape
        self.variables = {SHIFT: torch.zeros_like(self._weight).requires_grad_()}
        self._grid: Grid | None = None
        plain = type(parameters) is Parameters and parameters.shared is None
        if plain and isinstance(scheme, ScaledScheme) and scheme.scale_format in SCALE_FORMATS:
            self._grid = grid(scheme.granularity, (self.rows, self.columns))
            self._start = Affine(parameters.scale, parameters.zero_point, parameters.offset).apply(self._grid.stored)
            self.variables[SCALE] = torch.zeros_like(self._start.scale).requires_grad_()
            if not scheme.symmetric:
                self.variables[ZERO] = torch.zeros_like(self._start.scale).requires_grad_()
        self._steps = self._first_steps()

    def values(self) -> torch.Tensor:
        """Return the matrix on the grid, float32, with a graph to the variables."""
        latent = self._latent()
        if self._grid is None:
            return _as_if(latent, self.scheme.round(latent.detach(), self._fit))
        affine = self._affine().apply(self._grid.spread)
        element = self.scheme.element if isinstance(self.scheme, ScaledScheme) else None
        groups = grouped(latent, self._grid.width, "edge")
        scale, zero, offset, _ = affine.apply(lambda member: member.unsqueeze(-1))
        snapped: torch.Tensor = _snap().apply(groups, scale, zero, offset, element)  # type: ignore[no-untyped-call]
        return snapped.flatten(1)[:, : self.columns]

    def rounded(self) -> Rounded:
        """Return the matrix as the scheme itself rounds it, with the parameters that reproduce it."""
        import torch

        with torch.no_grad():
            parameters, latent = self._fit, self._latent()
            if self._grid is not None and isinstance(self.scheme, ScaledScheme):
                parameters = self.scheme.parameters((self.rows, self.columns), self._affine())
            return Rounded(parameters=parameters, values=self.scheme.round(latent, parameters))

    def bound_(self, limit: float) -> None:
        """Bring every shift back into ``[-limit, limit]`` steps."""
        import torch

        with torch.no_grad():
            self.variables[SHIFT].clamp_(-limit, limit)

    def load(self, variables: Mapping[str, torch.Tensor]) -> None:
        """Load the variables of another matrix of the same weight, scheme and fit."""
        import torch

        with torch.no_grad():
            for name, variable in self.variables.items():
                variable.copy_(variables[name])

    def _latent(self) -> torch.Tensor:
        return self._weight + self.variables[SHIFT] * self._steps

    def _affine(self) -> Affine:
        """Return the storable parameters, ``[bands, groups]``, with gradients as if storing changed nothing."""
        assert isinstance(self.scheme, ScaledScheme)
        levels = self.scheme.element.highest - self.scheme.element.lowest
        scale = self._start.scale * (1.0 + self.variables[SCALE])
        headroom = max(levels, -self.scheme.element.lowest)
        affine = Affine(_as_if(scale, self.scheme.scale_format.storable(scale.detach(), headroom)))
        if self._start.zero_point is not None:
            zero = self._start.zero_point + self.variables[ZERO]
            return affine._replace(zero_point=_as_if(zero, zero.detach().round().clamp(0.0, levels)))
        if self._start.offset is not None and self.scheme.offset_format is not None:
            offset = self._start.offset - self.variables[ZERO] * self._start.scale
            return affine._replace(offset=_as_if(offset, self.scheme.offset_format.nearest(offset.detach())))
        return affine

    def _first_steps(self) -> torch.Tensor:
        """Return the distance of neighbouring grid values at every weight, float32 ``[rows, columns]``."""
        down, up = neighbours(self._weight, self.scheme, self._fit)
        return up - down


def neighbours(weight: torch.Tensor, scheme: Scheme, parameters: Parameters) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two representable values around every weight, one step apart; both float32, ``down <= up``.

    Their distance is the length of the step that a shift of 1 takes.
    """
    if isinstance(scheme, ScaledScheme):
        return _neighbours(weight, scheme, parameters)
    nearest = scheme.round(weight, parameters)
    spread = (nearest - weight).abs().mean(dim=1, keepdim=True) * 4.0  # uniform errors: a quarter of a step on average
    return nearest - spread / 2, nearest + spread / 2


def _neighbours(
    weight: torch.Tensor, scheme: ScaledScheme, parameters: Parameters
) -> tuple[torch.Tensor, torch.Tensor]:
    import torch

    columns = weight.shape[1]
    width = min(parameters.width, max(columns, 1))
    scale = parameters.scale.expand(weight.shape[0], -1).repeat_interleave(width, dim=1)[:, :columns].abs()
    table = torch.from_numpy(scheme.element.values()).to(weight.device)
    if scheme.element.shiftable:
        down = torch.zeros_like(scale)
        return down, scale * (table[1] - table[0])
    place = torch.searchsorted(table, weight / (scale + (scale == 0))).clamp(1, table.numel() - 1)
    return scale * table[place - 1], scale * table[place]


def _as_if(exact: torch.Tensor, stored: torch.Tensor) -> torch.Tensor:
    """Return ``stored`` with the gradient of ``exact``.  The term added is exactly 0; ``a + (b - a)`` would round."""
    return stored + (exact - exact.detach())


@cache
def _snap() -> type[torch.autograd.Function]:
    """Return the function that puts groups ``[rows, groups, width]`` onto the grid of their scales."""
    import torch

    methods = {"forward": staticmethod(_snap_forward), "backward": staticmethod(_snap_backward)}
    return type("Snap", (torch.autograd.Function,), methods)


def _snap_forward(
    ctx: Any, latent: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor | None, offset: torch.Tensor | None,
    element: Element,
) -> torch.Tensor:  # fmt: skip
    shifted = latent if offset is None else latent - offset
    exact = shifted / (scale + (scale == 0))
    point = zero if offset is None else latent.new_zeros(())
    snapped = element.snap_(exact.clone(), point)
    beyond = 0.5 if element.shiftable else 0.0
    levels = element.highest - element.lowest
    low = element.lowest if point is None else -point
    high = element.highest if point is None else levels - point
    inside = (exact >= low - beyond) & (exact <= high + beyond)
    ctx.save_for_backward(exact, snapped, scale, inside)
    ctx.shapes = (zero is not None, offset is not None)
    ctx.factor = (latent.shape[-1] * max(element.highest, 1.0)) ** -0.5
    values = snapped * scale
    return values if offset is None else values + offset


def _snap_backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    """The gradients of LSQ and LSQ+."""
    exact, snapped, scale, inside = ctx.saved_tensors
    gradient = gradients[0]
    within = gradient * inside
    step = (gradient * snapped - within * exact).sum_to_size(scale.shape) * ctx.factor
    has_zero, has_offset = ctx.shapes
    clipped = (gradient - within).sum_to_size(scale.shape) * ctx.factor if has_zero or has_offset else None
    zero = -clipped * scale if has_zero and clipped is not None else None
    return within, step, zero, clipped if has_offset else None, None

"""Which range serves a group of weights best, by any quadratic measure of the error.

A candidate is the fit of weights clamped to a share of their range, so any scheme whose parameters follow from the
extremes of a group can be searched without knowing how it is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.numerics.rounding.parameter_parts import stack_rows
from workbench.numerics.scheme import Parameters, Scheme

if TYPE_CHECKING:
    import torch

_STEPS = tuple(1.0 - 0.06 * step for step in range(9))
_FINE = tuple(1.0 - 0.03 * step for step in range(21))

SQUARE = tuple((low, high) for low in _STEPS for high in _STEPS)
"""Shares of the low and of the high end, for asymmetric schemes."""

JOINT = (*((share, share) for share in _FINE), *((share, 1.0) for share in _STEPS[1:5]),
         *((1.0, share) for share in _STEPS[1:5]))  # fmt: skip
"""Shares for symmetric schemes; unequal ones let the other end be the farther one."""

CELLS = 1 << 24
"""So many rounded weights are held at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Errors:
    """Measures errors ``D`` of ``groups * r`` rows: ``sum_kl D_k moment_kl D_l`` for each row.

    ``moment`` is ``[groups, width, width]``, or ``[groups, width]`` for a diagonal one.
    """

    moment: torch.Tensor

    def of(self, differences: torch.Tensor) -> torch.Tensor:
        """Return the measure of ``differences`` ``[candidates, rows, width]``: ``[candidates, rows]``."""
        groups = self.moment.shape[0]
        split = differences.reshape(len(differences), groups, -1, differences.shape[-1])
        if self.moment.dim() == 2:
            return (split.square() * self.moment[:, None]).sum(dim=-1).flatten(1)
        return ((split @ self.moment) * split).sum(dim=-1).flatten(1)


def shares_of(parameters: Parameters) -> tuple[tuple[float, float], ...]:
    """Return the candidates for a scheme that fits such parameters."""
    return JOINT if parameters.zero_point is None and parameters.offset is None else SQUARE


def best_ranges(weight: torch.Tensor, scheme: Scheme, errors: Errors, keep: int = 1) -> tuple[Parameters, torch.Tensor]:
    """Return the ``keep`` best candidates of every row, best first.

    ``weight`` ``[rows, width]`` is one group of columns of a plain scheme (one scale a row).  The parameters are those
    of ``keep`` such matrices one below the other; the measures are ``[keep, rows]``, ascending.
    """
    import torch

    shares = weight.new_tensor(shares_of(scheme.fit(weight[:1])))
    low, high = weight.amin(dim=1).clamp(max=0), weight.amax(dim=1).clamp(min=0)
    groups, width = errors.moment.shape[0], weight.shape[1]
    places = torch.arange(len(weight), device=weight.device).reshape(groups, -1)
    step = max(CELLS // (len(shares) * width * groups), 1)
    measures = torch.empty(len(shares), len(weight), device=weight.device)
    for part in torch.split(places, step, dim=1):
        rows = part.flatten()
        tile = weight[rows]
        clamped = _clamped(tile, low[rows] * shares[:, :1], high[rows] * shares[:, 1:]).flatten(0, 1)
        rounded = scheme.round(tile.repeat(len(shares), 1), scheme.fit(clamped))
        measures[:, rows] = errors.of(rounded.reshape(len(shares), *tile.shape) - tile)
    ranked = measures.topk(min(keep, len(shares)), dim=0, largest=False)
    fits = [scheme.fit(_clamped(weight, low * pair[:, 0], high * pair[:, 1])) for pair in shares[ranked.indices]]
    return stack_rows(fits), ranked.values


def _clamped(weight: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    return weight.clamp(low.unsqueeze(-1), high.unsqueeze(-1))

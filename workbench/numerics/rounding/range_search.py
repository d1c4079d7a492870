"""Which range serves a group of weights best, by any quadratic measure of the error.

A candidate is the fit of weights clamped to a share of their range, so any scheme whose parameters follow from the
extremes of a group can be searched without knowing how it is stored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.numerics.formats.scaled import ScaledScheme
from workbench.numerics.rounding.parameter_parts import stack_rows, take_rows
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
"""How many rounded weights are in memory at once."""


def best_ranges(weight: torch.Tensor, scheme: Scheme, moment: torch.Tensor, keep: int = 1) -> Parameters:
    """Return the ``keep`` best candidates of every row, best first, as the parameters of ``keep`` matrices, stacked.

    ``weight`` ``[rows, width]`` is one group of columns of a plain scheme (one scale a row).  Errors ``D`` of a row
    cost ``sum_kl D_k moment_kl D_l``; ``moment`` is ``[groups, width, width]``, or ``[groups, width]`` for a diagonal,
    one for each of as many equal runs of rows.
    """
    import torch

    first = scheme.fit(weight[:1])
    shares = weight.new_tensor(JOINT if first.zero_point is None and first.offset is None else SQUARE)
    low, high = weight.amin(dim=1).clamp(max=0), weight.amax(dim=1).clamp(min=0)
    is_shared_diagonal = moment.dim() == 2 and len(moment) == 1
    if is_shared_diagonal and isinstance(scheme, ScaledScheme) and scheme.is_compiled(weight, times=len(shares)):
        return _by_kernel(weight, scheme, moment, keep, (low * shares[:, :1], high * shares[:, 1:]))
    groups, width = moment.shape[0], weight.shape[1]
    places = torch.arange(len(weight), device=weight.device).reshape(groups, -1)
    step = max(CELLS // (len(shares) * width * groups), 1)
    measures = torch.empty(len(shares), len(weight), device=weight.device)
    for part in torch.split(places, step, dim=1):
        rows = part.flatten()
        tile = weight[rows]
        clamped = _clamped(tile, low[rows] * shares[:, :1], high[rows] * shares[:, 1:]).flatten(0, 1)
        rounded = scheme.round(tile.repeat(len(shares), 1), scheme.fit(clamped))
        measures[:, rows] = _costs(rounded.reshape(len(shares), *tile.shape) - tile, moment)
    ranked = measures.topk(min(keep, len(shares)), dim=0, largest=False)
    fits = [scheme.fit(_clamped(weight, low * pair[:, 0], high * pair[:, 1])) for pair in shares[ranked.indices]]
    return stack_rows(fits)


def _by_kernel(
    weight: torch.Tensor, scheme: ScaledScheme, moment: torch.Tensor, keep: int,
    ends: tuple[torch.Tensor, torch.Tensor],
) -> Parameters:  # fmt: skip
    """Return the same by one compiled pass for a diagonal ``moment`` ``[1, width]``; ``ends`` ``[candidates, rows]``.

    Parameters follow from the extremes of the clamped weights, so these alone are fitted.
    """
    import torch

    from workbench.numerics.formats.compiled.clip_compiled import candidate_errors

    extremes = torch.stack([end.clamp(*ends) for end in (weight.amin(dim=1), weight.amax(dim=1))], dim=-1)
    fitted = replace(scheme.fit(extremes.flatten(0, 1)), width=scheme.fit(weight[:1]).width)
    errors = candidate_errors(weight, fitted, moment, scheme.element, len(extremes))
    chosen = errors.argsort(dim=0, stable=True)[:keep]
    return take_rows(fitted, (chosen * len(weight) + torch.arange(len(weight))).flatten())


def _clamped(weight: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    return weight.clamp(low.unsqueeze(-1), high.unsqueeze(-1))


def _costs(differences: torch.Tensor, moment: torch.Tensor) -> torch.Tensor:
    """Return what ``differences`` ``[candidates, rows, width]`` cost, ``[candidates, rows]``."""
    split = differences.reshape(len(differences), moment.shape[0], -1, differences.shape[-1])
    if moment.dim() == 2:
        return (split.square() * moment[:, None]).sum(dim=-1).flatten(1)
    return ((split @ moment) * split).sum(dim=-1).flatten(1)

"""Rounding for the model's output: coordinate descent with the errors of all outputs of a layer at once.

GPTQ's objective ``tr(D A D^T)`` counts every output of a layer alike and apart.  To second order a change ``D`` of the
weight costs the model ``tr(G D A D^T) / 2`` nats, ``A = E[x x^T]`` of the inputs and ``G = E[d d^T]`` of the gradients
``d`` at the outputs (Martens & Grosse, ICML 2015): errors of two outputs that do the same to the model can cancel.
Tseng, Sun, De Sa, "Model-Preserving Adaptive Rounding" (YAQA, arXiv 2505.22988), round with both factors.  Here each
weight moves to the value of the grid that is best given all others, column by column and row by row:

    W_ij <- nearest(W_ij - (G D A)_ij / (G_ii A_jj))

The objective never rises.  A sweep costs ``rows * columns * (rows + columns)`` multiplications.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.numerics.scheme import Parameters, Scheme

if TYPE_CHECKING:
    import torch

BLOCK = 128
"""Columns whose slopes are formed in one product."""

LEVELS = 256
"""Schemes with more values than this lose too little for a search to matter."""

NEAR = 1e-3
"""How far a value may be from an entry of the table, in scales, to be that entry."""

DAMPING = 0.01
"""The share of the mean of diag G that is added to it."""


def descend_coupled(
    weight: torch.Tensor, values: torch.Tensor, scheme: Scheme, parameters: Parameters, moments: torch.Tensor,
    outputs: torch.Tensor, sweeps: int,
) -> torch.Tensor | None:  # fmt: skip
    """Return better ``values`` on the same grid: float32 ``[rows, columns]`` as ``weight``.

    ``moments`` is A, positive definite ``[columns, columns]``, ``outputs`` G ``[rows, rows]``, positive semidefinite.
    None where the scheme's grid is not a scaled and shifted table.
    """
    import torch

    from workbench.numerics.rounding.coupled_compiled import move_block

    grids = _grids(values, scheme, parameters)
    if grids is None:
        return None
    device = values.device
    coupling = _damped(outputs.to("cpu", torch.float32))
    order = moments.float().diagonal().cpu().argsort(descending=True, stable=True)
    moments = moments.to(device, torch.float32)[order][:, order].contiguous()
    blocks = moments.cpu()
    scale, base = (each[order].contiguous() for each in grids[:2])
    table, step = grids[2].numpy(), _step(grids[2])
    current = values.cpu().T[order].contiguous()
    away = (values - weight).T[order].contiguous()
    pulled = away @ coupling.to(device)  # (D G)^T, kept up to date by what moves
    pulls = pulled.cpu()  # the same on the CPU, where weights move
    for _ in range(sweeps):
        moved = 0
        for start in range(0, len(order), BLOCK):
            part = slice(start, start + BLOCK)
            moved += move_block(
                current[part].numpy(), pulls[part].numpy(), (moments[part] @ pulled).cpu().numpy(),
                blocks[part, part].contiguous().numpy(), coupling.numpy(), scale[part].numpy(), base[part].numpy(),
                table, step,
            )  # fmt: skip
            if pulled is not pulls:
                pulled[part] = pulls[part].to(device)
        if not moved:
            break
    return scheme.round(current[order.argsort()].T.contiguous().to(device), parameters)


def _step(table: torch.Tensor) -> float:
    """Return how far the entries of the ascending ``table`` lie apart; 0.0 where they are not whole numbers in line."""
    steps = table.diff()
    even = bool((steps == steps[0]).all()) and bool((table == table.round()).all())
    return float(steps[0]) if even else 0.0


def _damped(outputs: torch.Tensor) -> torch.Tensor:
    """Return G with a damped diagonal; rows that never matter have 1 there and are rounded for themselves."""
    import torch

    outputs = outputs.clone()
    diagonal = outputs.diagonal()
    diagonal += torch.where(diagonal > 0, DAMPING * diagonal.mean(), 1.0)
    return outputs.contiguous()


def _grids(
    values: torch.Tensor, scheme: Scheme, parameters: Parameters
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
    """Return scale and base of every weight, ``[columns, rows]``, and the table; None for grids of another kind."""
    import torch

    table = torch.from_numpy(scheme.values()).float()
    if not 1 < table.numel() <= LEVELS:
        return None
    rows, columns = values.shape

    def spread(entries: torch.Tensor) -> torch.Tensor:
        wide = entries.cpu().expand(rows, -1)
        if wide.shape[1] > 1:
            wide = wide.repeat_interleave(parameters.width, dim=1)[:, :columns]
        return wide.T.expand(columns, rows).contiguous()

    scale, base = spread(parameters.scale), torch.zeros(columns, rows)
    if parameters.zero_point is not None:
        base = -scale * spread(parameters.zero_point)
    elif parameters.offset is not None:
        base = spread(parameters.offset)
    return (scale, base, table) if _holds(values.cpu().T, scale, base, table) else None


def _holds(values: torch.Tensor, scale: torch.Tensor, base: torch.Tensor, table: torch.Tensor) -> bool:
    """Return whether all ``values`` are entries of the table, scaled and shifted."""
    import torch

    exact = (values - base) / torch.where(scale == 0, 1.0, scale)
    above = torch.searchsorted(table, exact.contiguous()).clamp(1, table.numel() - 1)
    away = torch.minimum((exact - table[above - 1]).abs(), (exact - table[above]).abs())
    return bool((away[scale != 0] <= NEAR).all())

"""How much a change of one layer's weights costs: a Kronecker-factored Fisher matrix.

For a linear layer ``y = W x`` the Fisher information of ``W`` is approximated by the product of ``A = E[x x^T]`` over
tokens and ``G = E[d d^T]``, ``d`` being the gradient of the log-likelihood at ``y`` with labels drawn from the model
(Martens & Grosse, "Optimizing Neural Networks with Kronecker-factored Approximate Curvature", ICML 2015).  Only the
diagonal of ``G`` is kept, and of ``A`` the diagonal, with the full matrix where it was collected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.numerics.bands import row_tiles, tile_elements

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curvature:
    """Second moments of one layer, means over ``count`` tokens.

    ``rows`` float64 ``[rows]`` and ``columns`` float64 ``[columns]`` weigh the matrix view of the weight: for a linear
    layer diag G and diag A; for an embedding the share of tokens that use a row, and diag G at its output.  ``full`` is
    A, float32 ``[columns, columns]``, or None, its tokens weighed as in ``by_loss`` where that is known; for a
    convolution ``[groups, columns, columns]``, of the unfolded inputs of each of its groups, which serve equal runs of
    rows.  ``by_loss``, float64 ``[columns]`` or None, stands for ``columns`` where errors are weighed: what the
    gradient's squares are by column, in the sum of ``columns``. Where few tokens have the largest inputs, and hardly
    matter to the loss, the two differ much.  ``outputs`` is the whole G of a linear layer, ``E[d d^T]`` over drawn
    tokens, float32 ``[rows, rows]``, or None: GPTQ lets errors of different outputs cancel by it.  ``error`` is the
    relative standard error of these means, by how samples scatter; NaN where that is not known.  ``counts``, int64
    ``[experts]``, are the tokens that each expert of a mixture was sent; where all of them were shown all tokens for
    ``columns``, ``shown`` is how many, else 0.
    """

    rows: np.ndarray
    columns: np.ndarray
    full: np.ndarray | None
    count: int
    outputs: np.ndarray | None = None
    error: float = math.nan
    counts: np.ndarray | None = None
    shown: int = 0
    by_loss: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.rows.ndim != 1 or self.columns.ndim not in (1, 2) or self.rows.size % len(self.by_run):
            raise ValueError(f"expected vectors; got shapes {self.rows.shape} and {self.columns.shape}")
        square = (self.width, self.width)
        if self.by_loss is not None and self.by_loss.shape != self.columns.shape:
            raise ValueError(f"by_loss: expected the shape of columns, {self.columns.shape}; got {self.by_loss.shape}")
        if self.full is not None and (self.full.shape[-2:] != square or self.full.ndim not in (2, 3)):
            raise ValueError(f"full: expected a square matrix over {self.width} columns; got {self.full.shape}")
        if self.outputs is not None and self.outputs.shape != (self.rows.size, self.rows.size):
            raise ValueError(f"outputs: expected a square matrix over {self.rows.size} rows; got {self.outputs.shape}")

    @property
    def width(self) -> int:
        """The columns of the weight's matrix."""
        return int(self.columns.shape[-1])

    @property
    def by_run(self) -> np.ndarray:
        """``columns`` as ``[runs, columns]``: equal runs of rows see the same inputs, all of them but for experts."""
        return self.columns.reshape(-1, self.width) if self.columns.size else self.columns.reshape(1, -1)

    @property
    def weighing(self) -> np.ndarray:
        """What errors of each column weigh, as ``[runs, columns]``."""
        return self.by_run if self.by_loss is None else self.by_loss.reshape(self.by_run.shape)

    @property
    def seen(self) -> np.ndarray | None:
        """The tokens of ``columns`` by expert, int64 ``[experts]``."""
        return np.full_like(self.counts, self.shown) if self.counts is not None and self.shown else self.counts

    @property
    def has_gradients(self) -> bool:
        """Whether ``rows`` are known."""
        return bool(np.isfinite(self.rows).all())

    def importance(self) -> np.ndarray:
        """Return the columns' weights, float32 ``[1, columns]``, or ``[rows, columns]`` for experts."""
        runs = self.weighing.astype(np.float32)
        return runs if len(runs) == 1 else runs.repeat(self.rows.size // len(runs), axis=0)


def predicted_loss(difference: torch.Tensor, curvature: Curvature, weight: torch.Tensor | None = None) -> float:
    """Return ``1/2 * sum_ij rows_i weighing_j D_ij**2``: nats per token that changing W by ``difference`` D costs.

    ``difference`` is ``[rows, columns]``; with ``weight`` the changed weights, of which D is formed band by band.  Uses
    the diagonal of A: right when the errors of a row are uncorrelated, as they are after rounding to nearest.
    """
    import torch

    _check(difference, curvature)
    columns = torch.from_numpy(curvature.weighing).to(difference.device)
    weights = torch.from_numpy(curvature.rows).to(difference.device)
    loss = torch.zeros((), dtype=torch.float64, device=difference.device)
    norm = columns.max().clamp_min(torch.finfo(torch.float64).tiny) if columns.numel() else columns.new_ones(())
    run = len(difference) // len(columns)
    for number, unit in enumerate((columns / norm).to(torch.float32)):
        for tile in row_tiles(run, difference.shape[1], elements=tile_elements(difference.device)):
            part = slice(number * run + tile.start, number * run + tile.stop)
            changed = difference[part].detach().to(torch.float32)
            squares = changed.square() if weight is None else (changed - weight[part]).square_()
            by_row = squares @ unit
            loss += (by_row.to(torch.float64) @ weights[part]) * norm
    return 0.5 * float(loss)


def predicted_loss_full(difference: torch.Tensor, curvature: Curvature) -> float:
    """Return ``1/2 * sum_ik G_ik (D A D^T)_ik``, nats per token, with the full A: right for correlated errors too.

    ``G_ii`` is ``rows_i``; beside the diagonal, where ``outputs`` is known, G has the correlations of ``outputs``: they
    matter where errors of different outputs were made to cancel.
    """
    import torch

    _check(difference, curvature)
    if curvature.full is None:
        raise ValueError("the full second moment of the inputs was not collected; use predicted_loss")
    weights = torch.from_numpy(curvature.rows).to(difference.device)
    full = torch.from_numpy(curvature.full)
    if curvature.outputs is None or full.dim() > 2:
        return 0.5 * float(output_energy(difference, full) @ weights)
    outputs = torch.from_numpy(curvature.outputs).to(difference.device)
    unit = (weights / outputs.diagonal().double().clamp_min(torch.finfo(torch.float64).tiny)).sqrt().float()
    scaled = difference.detach().float() * unit[:, None]
    return 0.5 * float(((outputs @ scaled) * (scaled @ full.to(difference.device))).sum(dtype=torch.float64))


def output_energy(matrix: torch.Tensor, full: torch.Tensor) -> torch.Tensor:
    """Return ``(M A M^T)_ii``, float64 ``[rows]``: the mean square of each output that ``matrix`` gives.

    ``full`` is A, ``[columns, columns]`` or ``[groups, columns, columns]``.
    """
    import torch

    full = full.to(matrix.device).reshape(-1, *full.shape[-2:])
    run = len(matrix) // len(full)
    energy = torch.zeros(len(matrix), dtype=torch.float64, device=matrix.device)
    for group, moment in enumerate(full):
        for part in row_tiles(run, matrix.shape[1], elements=tile_elements(matrix.device)):
            rows = slice(group * run + part.start, group * run + part.stop)
            tile = matrix[rows].detach().to(torch.float32)
            energy[rows] = ((tile @ moment) * tile).sum(dim=1).to(torch.float64)
    return energy


def _check(difference: torch.Tensor, curvature: Curvature) -> None:
    expected = (curvature.rows.size, curvature.width)
    if tuple(difference.shape) != expected:
        raise ValueError(f"expected a difference of shape {expected}; got {tuple(difference.shape)}")

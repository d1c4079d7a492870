"""The inputs' second moment made ready for error feedback: dead columns, damping, Cholesky factors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.errors import AlgorithmError

if TYPE_CHECKING:
    import torch

RETRIES = 5

DEAD = 1e-8
"""The share of the mean of diag A that a column without input has on the diagonal: below what float32 tells."""

LEAST = 1e-13
"""The least share of the largest squared diagonal element of a factor that the smallest must have: beyond it rounding
in float64 decides what feedback does."""


@dataclass(frozen=True, slots=True, eq=False)
class Hessian:
    """``H = A + damping * mean(diag A) * I``, float32 ``[groups, columns, columns]``.

    A dead column (bool ``dead [groups, columns]``), whose input is always 0, has DEAD on the diagonal: it takes no part
    in the feedback, its weight is rounded to nearest, and its errors count next to nothing wherever ranges are chosen.
    Everything scales with A, so the units of the inputs do not matter.
    """

    matrix: torch.Tensor
    dead: torch.Tensor

    @property
    def groups(self) -> int:
        """1, or the groups of a grouped convolution."""
        return int(self.matrix.shape[0])

    @property
    def diagonal(self) -> torch.Tensor:
        """Return ``[groups, columns]``."""
        return self.matrix.diagonal(dim1=1, dim2=2)

    def feedback(self, order: torch.Tensor) -> torch.Tensor:
        """Return the upper Cholesky factor ``U`` of ``H^-1`` (``U^T U``) with columns in ``order``, float32.

        ``U_jj^-2`` is the error of column ``j`` that the later columns cannot take up, and ``U_jk / U_jj`` what column
        ``k`` takes up of it.
        """
        import torch

        backwards = order.flip(0)
        lower = torch.linalg.cholesky(self.matrix[:, backwards][:, :, backwards].double())
        identity = torch.eye(len(order), dtype=lower.dtype, device=lower.device).expand_as(lower)
        inverse: torch.Tensor = torch.linalg.solve_triangular(lower, identity, upper=False)
        return inverse.flip(1, 2).float()  # H = R R^T with R = flipped factor, so that U = R^-1


def hessian(moment: torch.Tensor, shape: tuple[int, int], damping: float, samples: int | None = None) -> Hessian:
    """Return the damped second moment of a ``rows x columns`` layer; ``moment`` as in ``Context.second_moment``.

    The damping is multiplied by 10 until the matrix has a Cholesky factor.  Raises AlgorithmError for another
    shape, for NaN and infinity, and for fewer ``samples`` than live columns: the message names the rank.
    """
    import torch

    rows, columns = shape
    matrix = moment.detach().reshape(-1, *moment.shape[-2:]).float().clone()
    if matrix.shape[1:] != (columns, columns) or rows % max(matrix.shape[0], 1):
        raise AlgorithmError(
            f"the second moment of the inputs is {tuple(moment.shape)}; a {rows} x {columns} weight needs "
            f"{columns} x {columns}"
        )
    if not bool(matrix.isfinite().all()):
        raise AlgorithmError("the second moment of the inputs holds NaN or infinite values; calibrate on other data")
    diagonal = matrix.diagonal(dim1=1, dim2=2)
    dead = diagonal <= 0
    _require_samples(matrix, int((~dead).sum(dim=1).max()), samples)
    live = (~dead).sum(dim=1).clamp_min(1)
    mean = torch.where(dead, 0.0, diagonal).sum(dim=1, keepdim=True) / live[:, None]
    mean = torch.where(mean > 0, mean, 1.0)
    matrix[dead] = 0.0
    matrix.transpose(1, 2)[dead] = 0.0
    share = damping
    for _ in range(RETRIES):
        damped = matrix + torch.diag_embed(torch.where(dead, DEAD, share) * mean)
        if _has_factors(damped):
            return Hessian(damped, dead)
        share *= 10
    raise AlgorithmError(
        f"the second moment of the inputs ({columns} x {columns}) is not positive definite even with "
        f"{share / 10:g} of its mean added to the diagonal; calibrate on more data, or choose rtn-clip"
    )


def _has_factors(matrix: torch.Tensor) -> bool:
    import torch

    factor, failed = torch.linalg.cholesky_ex(matrix.double())
    diagonal = factor.diagonal(dim1=1, dim2=2)
    return not bool(failed.any()) and bool((diagonal.square().amin(dim=1) > LEAST * diagonal.square().amax()).all())


def _require_samples(matrix: torch.Tensor, live: int, samples: int | None) -> None:
    import torch

    if samples is None or samples >= live:
        return
    rank = int(torch.linalg.matrix_rank(matrix[0].double(), hermitian=True, rtol=1e-6))
    raise AlgorithmError(
        f"{samples} calibration samples are too few for {live} inputs: their second moment has rank {rank}; "
        f"calibrate on at least {live} tokens, or choose rtn-clip"
    )

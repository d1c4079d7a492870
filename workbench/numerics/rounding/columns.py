"""Where columns are rounded one after another by compiled code: on the CPU, for large matrices and scaled tables.

Blocks of matrices on a device come to the CPU for it and go back: a device would launch twenty kernels for each column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.numerics.bands import in_parallel
from workbench.numerics.formats.scaled import ScaledScheme
from workbench.numerics.scheme import Parameters, Scheme

if TYPE_CHECKING:
    import torch

ROWS = 256
"""Rows of a piece of work."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The grids of a matrix's columns as the kernels take them."""

    affine: tuple[np.ndarray, np.ndarray, np.ndarray]
    width: int
    element: Any

    def feed_back(
        self, left: torch.Tensor, feedback: torch.Tensor, columns: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return values and errors over ``U_jj`` of ``left`` float32 ``[rows, n]``, see :mod:`gptq`.

        ``feedback`` is ``[n, n]``; ``columns`` int64 ``[n]`` says which of the matrix's columns they are.
        """
        import torch

        from workbench.numerics.rounding import column_kernels

        values, errors = torch.empty(left.shape), torch.empty(left.shape)
        exact, factors = left.cpu().contiguous().numpy(), feedback.cpu().contiguous().numpy()
        out, over = values.numpy(), errors.numpy()

        def task(part: slice) -> None:
            column_kernels.feed_back(exact[part], factors, self._of(part, columns), self.element, out[part], over[part])

        in_parallel(task, _pieces(len(exact)))
        return values.to(left.device), errors.to(left.device)

    def descend(
        self, values: torch.Tensor, slopes: torch.Tensor, local: torch.Tensor, columns: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return better ``values`` float32 ``[rows, n]`` and how far each moved."""
        import torch

        from workbench.numerics.rounding import column_kernels

        moves, better = torch.empty(values.shape), torch.empty(values.shape).copy_(values)
        sloped, block = slopes.cpu().contiguous().numpy(), local.cpu().contiguous().numpy()
        out, moved = better.numpy(), moves.numpy()

        def task(part: slice) -> None:
            own = self._of(part, columns)
            column_kernels.descend(out[part], sloped[part], block, own, self.element, moved[part])

        in_parallel(task, _pieces(len(out)))
        return better.to(values.device), moves.to(values.device)

    def _of(self, part: slice, columns: torch.Tensor) -> Any:
        scale, zero, offset = (member[part] if len(member) > 1 else member for member in self.affine)
        groups = columns.numpy() // self.width if scale.shape[1] > 1 else np.zeros(len(columns), np.int64)
        return scale, zero, offset, groups


def _pieces(rows: int) -> list[slice]:
    return [slice(start, start + ROWS) for start in range(0, rows, ROWS)]


def compiled_columns(scheme: Scheme, parameters: Parameters, weight: torch.Tensor) -> Columns | None:
    """Return the grids of ``weight``; None where it is small, or the scheme is not a scaled table."""
    if type(parameters) is not Parameters or not isinstance(scheme, ScaledScheme) or not scheme.is_compilable(weight):
        return None
    from workbench.numerics.formats.compiled.clip_compiled import kernel_element

    scale, element = parameters.scale, scheme.element
    base = 0.0 if parameters.offset is not None else -element.lowest
    zero = scale.new_full(scale.shape, base) if parameters.zero_point is None else parameters.zero_point
    offset = scale.new_zeros(scale.shape) if parameters.offset is None else parameters.offset
    members = tuple(member.expand_as(scale).cpu().contiguous().numpy() for member in (scale, zero, offset))
    return Columns((members[0], members[1], members[2]), parameters.width, kernel_element(element))

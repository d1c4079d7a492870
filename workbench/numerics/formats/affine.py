"""What turns the codes of many groups into values: ``scale * (code - zero_point)`` or ``scale * code + offset``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from workbench.numerics.scale_format import Array
from workbench.numerics.scheme import Parameters

if TYPE_CHECKING:
    import torch


class Affine(NamedTuple):
    """Scale, zero point and offset of each group, arrays or tensors; what a scheme does not have is None.

    ``shared`` is a factor that all scales contain, ``[1, 1]``.
    """

    scale: Array
    zero_point: Array | None = None
    offset: Array | None = None
    shared: Array | None = None

    def apply(self, change: Callable[[Array], Array]) -> Affine:
        """Return what ``change`` makes of every member but ``shared``."""
        zero_point, offset = (None if member is None else change(member) for member in self[1:3])
        return Affine(change(self.scale), zero_point, offset, self.shared)

    def values(self, snapped: torch.Tensor) -> torch.Tensor:
        """Return ``scale * snapped + offset`` in place of ``snapped``."""
        snapped.mul_(self.scale)
        return snapped if self.offset is None else snapped.add_(self.offset)


OFFSET_REACH = float(np.finfo(np.float32).max) * (1 - 2.0**-6)
"""Ranges with floating zero points are cut to this, so that the way from one end to the other stays finite."""

Rule = Callable[[Array, Array], Affine]
"""From the ends of ranges to storable parameters."""


def band(parameters: Parameters, part: slice) -> Affine:
    """Return the parameters of a band of rows, ``[rows or 1, groups, 1]``."""
    rows = part if parameters.scale.shape[0] > 1 else slice(None)
    affine = Affine(parameters.scale, parameters.zero_point, parameters.offset)
    return broadcast(affine.apply(lambda member: member[rows]))


def broadcast(affine: Affine) -> Affine:
    """Return ``[rows, groups]`` members as ``[rows, groups, 1]``; codes that an offset shifts start at 0."""
    groups = affine.apply(lambda member: member.unsqueeze(-1))
    return groups if groups.offset is None else groups._replace(zero_point=groups.offset.new_zeros(1, 1, 1))

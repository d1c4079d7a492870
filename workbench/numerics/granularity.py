"""Which elements of a weight matrix share one scale.

Everything here speaks of the matrix view of a weight, ``rows x columns`` = outputs x inputs, in which
:class:`workbench.models.layer.Layer` presents every tensor.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PerTensor:
    """One scale for the whole tensor."""


@dataclass(frozen=True, slots=True)
class PerChannel:
    """One scale for each row, that is for each output channel."""


@dataclass(frozen=True, slots=True)
class PerGroup:
    """One scale for ``size`` neighbouring columns of a row; the last group of a row may be shorter."""

    size: int


@dataclass(frozen=True, slots=True)
class PerBlock:
    """One scale for each tile of ``rows x columns`` elements; tiles at the far edges may be smaller."""

    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class PerToken:
    """One scale for each activation vector, computed when it is seen (dynamic quantization)."""


Granularity = PerTensor | PerChannel | PerGroup | PerBlock | PerToken

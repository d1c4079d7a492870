"""The contract of a rounding algorithm: how a weight matrix comes onto the grid of a scheme."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from workbench.numerics.scheme import Parameters, Scheme

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Context:
    """What is known of the layer beyond its weight; all of it optional.

    ``importance``: >= 0, broadcastable to ``[rows, columns]``, weighs the squared error of each element.
    ``second_moment``: ``A = E[x x^T]`` of the layer's inputs, float32 ``[columns, columns]``.
    ``seed`` for algorithms that draw.
    """

    importance: torch.Tensor | None = None
    second_moment: torch.Tensor | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rounded:
    """A matrix on the grid: ``values`` float32 ``[rows, columns]`` with ``scheme.round(values, parameters) == values``.

    ``scheme.encode(values, parameters)`` is the stored form.
    """

    parameters: Parameters
    values: torch.Tensor


@runtime_checkable
class Algorithm(Protocol):
    """A frozen dataclass whose fields are its options."""

    @property
    def name(self) -> str:
        """The algorithm's name, as a plan writes it."""

    @property
    def needs_second_moment(self) -> bool:
        """Whether ``context.second_moment`` must be given."""

    def quantize(self, weight: torch.Tensor, scheme: Scheme, context: Context) -> Rounded:
        """Return ``weight`` (``[rows, columns]``, any floating dtype) on the grid of ``scheme``."""

"""The contract of a rounding algorithm: how a weight matrix comes onto the grid of a scheme."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from workbench.numerics.scheme import Parameters, Scheme

if TYPE_CHECKING:
    import torch


class Need(StrEnum):
    """What an algorithm has to know of a layer beyond its weight; ``SEQUENCE``: the second moment of its inputs as they
    are after all earlier layers were quantized, with the cross moment."""

    NOTHING = "nothing"
    IMPORTANCE = "importance"
    SECOND_MOMENT = "second moment"
    SEQUENCE = "sequence"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrefixMoments:
    """Means over ``count`` positions: ``present = E[x' x'^T]``, ``cross = E[x x'^T]``, float32 ``[groups, c, c]``.

    ``x`` is the layer's input in the model as it is, ``x'`` the one after all earlier layers were quantized.
    """

    present: torch.Tensor
    cross: torch.Tensor
    count: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Context:
    """What is known of the layer beyond its weight; all of it optional.

    - ``importance``: >= 0, broadcastable to ``[rows, columns]``, weighs the squared error of each element.
    - ``second_moment``: ``A = E[x x^T]`` of the layer's inputs, float32 ``[columns, columns]``, or ``[groups, columns,
      columns]`` for a convolution, whose rows fall into as many equal runs.
    - ``cross_moment``: ``E[x x'^T]`` of the original inputs ``x`` and the present ones ``x'``, of the same shape;
      ``second_moment`` is then that of ``x'``.
    - ``rows``: >= 0, ``[rows]``, weighs the squared error of each output where rows share a scale.
    - ``outputs``: ``G = E[d d^T]`` of the gradients at the layer's outputs, float32 ``[rows, rows]``: what errors of
      two outputs do to the model together.
    - ``samples``: how many inputs the second moment is the mean of, if known.
    - ``seed`` for algorithms that draw.
    """

    importance: torch.Tensor | None = None
    second_moment: torch.Tensor | None = None
    cross_moment: torch.Tensor | None = None
    rows: torch.Tensor | None = None
    outputs: torch.Tensor | None = None
    samples: int | None = None
    seed: int = 0

    def on(self, device: torch.device) -> Context:
        """Return the context with its tensors on ``device``."""
        members = {item.name: getattr(self, item.name) for item in fields(self)}
        return replace(self, **{name: each.to(device) for name, each in members.items() if hasattr(each, "to")})


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
    def needs(self) -> Need:
        """What of the context must be given; ``IMPORTANCE`` can be met by a second moment too."""

    def quantize(self, weight: torch.Tensor, scheme: Scheme, context: Context) -> Rounded:
        """Return ``weight`` (``[rows, columns]``, any floating dtype) on the grid of ``scheme``.

        Raises AlgorithmError for a scheme or a context that it cannot serve, NonFiniteError for NaN and infinity.
        """

"""How a layer's gradient at its weight is formed for every sample, from its input and its output gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from workbench.models.layer import Layer


def linear_gradients(x: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    """Return ``sum_t d_t x_t^T`` of every sample, ``[samples, rows, columns]``.

    ``x`` (samples x ... x columns) is the layer's input, ``d`` (samples x ... x rows) the gradient at its output.
    """
    x = x.reshape(x.shape[0], -1, x.shape[-1])
    return torch.bmm(d.reshape(x.shape[0], -1, d.shape[-1]).transpose(1, 2), x)


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """How a one- or two-dimensional convolution walks over its input, read off its autograd node."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    transposed: bool

    @staticmethod
    def of(layer: Layer, tensor: torch.Tensor, output: torch.Tensor) -> Geometry | None:
        """Return the geometry, None where the output is no plain convolution of the input (padded beforehand, 3-D)."""
        node = output.grad_fn
        dimensions = len(layer.shape) - 2
        if type(node).__name__ != "ConvolutionBackward0" or dimensions not in (1, 2) or tensor.ndim != dimensions + 2:
            return None
        names = ("stride", "padding", "dilation", "groups", "transposed")
        saved = {name: getattr(node, f"_saved_{name}") for name in names}
        found = Geometry(
            kernel=layer.shape[2:], stride=tuple(saved["stride"]), padding=tuple(saved["padding"]),
            dilation=tuple(saved["dilation"]), groups=int(saved["groups"]), transposed=bool(saved["transposed"]),
        )  # fmt: skip
        wide, narrow = (output, tensor) if found.transposed else (tensor, output)
        return found if found.steps(wide.shape[2:]) == tuple(narrow.shape[2:]) else None

    def steps(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return how many positions the kernel takes along each axis of ``sizes``."""
        walk = zip(sizes, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        return tuple((n + 2 * p - dil * (k - 1) - 1) // s + 1 for n, k, s, p, dil in walk)

    def inputs(self, x: torch.Tensor) -> torch.Tensor | None:
        """Return what the layer's matrix is multiplied with, ``[groups, positions of all samples, columns]``.

        ``x`` is the layer's input.  None for a transposed convolution, whose positions overlap.
        """
        if self.transposed:
            return None
        patches = self._patches(x)
        return patches.reshape(len(x), self.groups, -1, patches.shape[-1]).permute(1, 0, 3, 2).flatten(1, 2)

    def _patches(self, wide: torch.Tensor) -> torch.Tensor:
        """Return the kernel's view of ``wide`` at every position, ``[samples, channels * kernel, positions]``."""
        one = len(self.kernel) == 1
        return F.unfold(
            wide.unsqueeze(2) if one else wide, *(_pair(v, fill, one) for v, fill in
            ((self.kernel, 1), (self.dilation, 1), (self.padding, 0), (self.stride, 1))),
        )  # fmt: skip

    def weight_gradients(self, layer: Layer, x: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
        """Return each sample's gradient as the layer's matrix, ``[samples, rows, columns]``."""
        wide, narrow = (d, x) if self.transposed else (x, d)
        samples, groups = x.shape[0], self.groups
        patches = self._patches(wide)
        patches = patches.reshape(samples * groups, patches.shape[1] // groups, -1)
        flat = narrow.reshape(samples * groups, narrow.shape[1] // groups, -1)
        stored = torch.bmm(flat, patches.transpose(1, 2)).reshape(samples, *layer.shape)
        return stored.permute(0, *(axis + 1 for axis in layer.axes)).reshape(samples, *layer.matrix)


def _pair(values: tuple[int, ...], fill: int, one: bool) -> tuple[int, ...]:
    return (fill, *values) if one else values

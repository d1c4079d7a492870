"""The gradient at a layer's weight for every sample, from its input and its output gradient, and sums of its squares.

The row and column sums over samples are those of the Fisher information's diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

from workbench.models.layer import Layer, LayerKind

GRADIENT_CELLS = 1 << 24
"""The most elements of single samples' weight gradients that are formed at once."""

PRODUCT_CELLS = 1 << 20
"""The most elements of output gradients that are multiplied at once: the result is small beside logits."""

SKETCH = 64
"""Random directions in which the inputs of many positions are seen.

A sample's squared gradient of a row is then off by a relative ``sqrt(2 / 64)`` at most, each sample's by itself: of 32
samples by 3 %, where the drawn labels let it scatter by 20 % and more.
"""

SAVING = 2
"""Wide matrices are those whose gradient costs more than so many times what the sketch does."""

PATCH_CELLS = 1 << 21
"""The most elements of unfolded inputs that are formed at once: what fits a core's cache."""

Squares = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""By row, by column and by sample, float64; no samples where they cannot be told apart."""

NO_SAMPLES = torch.zeros(0, dtype=torch.float64)


def linear_gradients(x: torch.Tensor, d: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """Return ``sum_t d_t x_t^T`` of every sample, ``[samples, rows, columns]``, in ``out`` (flat) where there is one.

    ``x`` (samples x ... x columns) is the layer's input, ``d`` (samples x ... x rows) the gradient at its output.
    """
    x = x.reshape(x.shape[0], -1, x.shape[-1])
    d = d.reshape(x.shape[0], -1, d.shape[-1]).transpose(1, 2)
    shape = (x.shape[0], d.shape[1], x.shape[2])
    return torch.bmm(d, x, out=None if out is None else out[: math.prod(shape)].view(shape))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvolutionGeometry:
    """How a one- or two-dimensional convolution walks over its input, read off its autograd node."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    transposed: bool

    @staticmethod
    def of(layer: Layer, tensor: torch.Tensor, output: torch.Tensor) -> ConvolutionGeometry | None:
        """Return the geometry, None for anything but a plain 1-D or 2-D convolution (such as one padded beforehand)."""
        node = output.grad_fn
        dimensions = len(layer.shape) - 2
        if type(node).__name__ != "ConvolutionBackward0" or dimensions not in (1, 2) or tensor.ndim != dimensions + 2:
            return None
        names = ("stride", "padding", "dilation", "groups", "transposed")
        saved = {name: getattr(node, f"_saved_{name}") for name in names}
        if len(saved["padding"]) == 1:  # padding="valid" is one zero for all axes
            saved["padding"] *= dimensions
        geometry = ConvolutionGeometry(
            kernel=layer.shape[2:], stride=tuple(saved["stride"]), padding=tuple(saved["padding"]),
            dilation=tuple(saved["dilation"]), groups=int(saved["groups"]), transposed=bool(saved["transposed"]),
        )  # fmt: skip
        wide, narrow = (output, tensor) if geometry.transposed else (tensor, output)
        return geometry if geometry.steps(wide.shape[2:]) == tuple(narrow.shape[2:]) else None

    def steps(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return how many positions the kernel takes along each axis of ``sizes``."""
        walk = zip(sizes, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        return tuple((n + 2 * p - dil * (k - 1) - 1) // s + 1 for n, k, s, p, dil in walk)

    def inputs(self, x: torch.Tensor, chosen: torch.Tensor | None = None) -> torch.Tensor | None:
        """Return what the layer's matrix is multiplied with, ``[groups, positions of all samples, columns]``.

        ``x`` is the layer's input; ``chosen`` (int64) limits the positions.  None for a transposed convolution, whose
        positions overlap.
        """
        if self.transposed:
            return None
        axes = len(self.kernel)
        windows = self._windows(x).movedim(1, 1 + axes)
        rows = windows if chosen is None else windows[torch.unravel_index(chosen, windows.shape[: 1 + axes])]
        columns = math.prod(windows.shape[1 + axes :]) // self.groups
        return rows.reshape(-1, self.groups, columns).transpose(0, 1).contiguous()

    def positions(self, x: torch.Tensor) -> int:
        """Return how many positions all samples of ``x`` have together."""
        return x.shape[0] * math.prod(self.steps(x.shape[2:]))

    def _windows(self, wide: torch.Tensor) -> torch.Tensor:
        """Return the kernel's view of ``wide`` at every position, ``[samples, channels, *steps, *kernel]``."""
        wide = F.pad(wide, [padding for padding in reversed(self.padding) for _ in range(2)])
        for axis, (kernel, stride, dilation) in enumerate(zip(self.kernel, self.stride, self.dilation, strict=True), 2):
            wide = wide.unfold(axis, dilation * (kernel - 1) + 1, stride)[..., ::dilation]
        return wide

    def _patches(self, wide: torch.Tensor) -> torch.Tensor:
        """Return the kernel's view of ``wide`` as columns, ``[samples * groups, channels * kernel, positions]``."""
        windows, axes = self._windows(wide), len(self.kernel)
        steps, kernel = range(2, 2 + axes), range(2 + axes, 2 + 2 * axes)
        columns = wide.shape[1] // self.groups * math.prod(self.kernel)
        return windows.permute(0, 1, *kernel, *steps).reshape(len(wide) * self.groups, columns, -1)

    def weight_gradients(self, layer: Layer, x: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
        """Return each sample's gradient as the layer's matrix, ``[samples, rows, columns]``."""
        wide, narrow = (d, x) if self.transposed else (x, d)
        samples, groups = x.shape[0], self.groups
        flat = narrow.reshape(samples * groups, narrow.shape[1] // groups, -1)
        step = max(PATCH_CELLS // (flat.shape[2] * layer.parameters // flat.shape[1]), 1)
        parts = []
        for start in range(0, samples, step):
            own = flat[start * groups : (start + step) * groups]
            parts.append(torch.bmm(own, self._patches(wide[start : start + step]).transpose(1, 2)))
        stored = torch.cat(parts).reshape(samples, *layer.shape)
        return stored.permute(0, *(axis + 1 for axis in layer.axes)).reshape(samples, *layer.matrix)


def same_tensor(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether two tensors are the same view of the same memory."""
    return a.data_ptr() == b.data_ptr() and a.shape == b.shape and a.stride() == b.stride() and a.dtype == b.dtype


@dataclass(slots=True, kw_only=True)
class Sketches:
    """The input that was seen last, of each sample, in a few random directions: query, key and value share it.

    The squared length of ``x^T d_i``, a row of the gradient, is in expectation that of its sketch (the signs of
    Achlioptas, "Database-friendly random projections", PODS 2001).  ``generators`` are the samples' own.
    """

    generators: Sequence[torch.Generator]
    _signs: dict[int, torch.Tensor] = field(default_factory=dict)
    _of: torch.Tensor | None = None
    _version: int = 0
    _sketch: torch.Tensor = field(default_factory=lambda: torch.empty(0))

    def of(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sketch of ``x`` (samples x ... x columns), float32 ``[samples, SKETCH, positions]``."""
        if self._of is None or not (same_tensor(self._of, x) and self._version == x._version):
            flat = x.reshape(x.shape[0], -1, x.shape[-1]).float()
            self._sketch = torch.bmm(self._directions(flat.shape[-1]).to(flat.device), flat.transpose(1, 2))
            self._of, self._version = x, x._version
        return self._sketch

    def _directions(self, columns: int) -> torch.Tensor:
        """Return random signs of each sample, scaled so that lengths are kept, ``[samples, SKETCH, columns]``."""
        if columns not in self._signs:
            drawn = [torch.randint(2, (SKETCH, columns), generator=each) for each in self.generators]
            self._signs[columns] = (2 * torch.stack(drawn) - 1).float() / math.sqrt(SKETCH)
        return self._signs[columns]


def row_and_column_squares(
    layer: Layer, x: torch.Tensor, d: torch.Tensor, samples: int, geometry: ConvolutionGeometry | None,
    sketches: Sketches | None = None,
) -> Squares | None:  # fmt: skip
    """Return sums over samples of each sample's squared weight gradient, by row and by column, and each sample's own.

    ``x`` is the layer's input, ``d`` the gradient at its output.  None for a convolution whose geometry is not known.
    With ``sketches`` the gradient of a wide linear layer is not formed.  Its sums by row are ``d_i^T (x x^T) d_i``
    where samples have few positions, those of a sketch of the gradient where they have many; its sums by column take
    the positions as independent: they say how columns compare.
    """
    if layer.kind is LayerKind.EMBEDDING:
        return _embedding_squares(layer, x, d, samples)
    if layer.kind.is_convolution:
        if geometry is None:
            return None
        squares = geometry.weight_gradients(layer, x.float(), d.float()).square()
        return squares.sum(dim=(0, 2)).double(), squares.sum(dim=(0, 1)).double(), squares.sum(dim=(1, 2)).double()
    if x.shape[0] != samples:  # tokens of all samples in one row, as experts get them: taken as independent
        x, d = x.reshape(-1, x.shape[-1]).float(), d.reshape(-1, d.shape[-1]).float()
        by_row = d.square().T @ x.square().sum(dim=1)
        return by_row.double(), (x.square().T @ d.square().sum(dim=1)).double(), NO_SAMPLES.to(x.device)
    positions = x[0].numel() // x.shape[-1]
    cost = min(positions, SKETCH) * sum(layer.matrix)
    if sketches is not None and layer.kind is LayerKind.LINEAR and SAVING * cost < layer.parameters:
        flat = (tensor.reshape(samples, positions, -1) for tensor in (x, d))
        return _squares_by_row(sketches.of(x) if positions > SKETCH else None, *flat)
    step = max(GRADIENT_CELLS // layer.parameters, 1)
    rows, columns = (torch.zeros(size, dtype=torch.float64, device=x.device) for size in layer.matrix)
    each = []
    for part_x, part_d in zip(torch.split(x, step), torch.split(d, step), strict=True):
        squares = linear_gradients(part_x.float(), part_d.float()).square_()
        by_row = squares.sum(dim=2)
        rows, columns = rows + by_row.sum(dim=0), columns + squares.sum(dim=(0, 1))
        each.append(by_row.sum(dim=1).double())
    return rows, columns, torch.cat(each)


def _squares_by_row(sketch: torch.Tensor | None, x: torch.Tensor, d: torch.Tensor) -> Squares:
    """Return the sums for ``d`` ``[samples, positions, rows]``, tile by tile; exact without a ``sketch`` of ``x``."""
    step = max(PRODUCT_CELLS // (d.shape[0] * d.shape[1]), 1)
    products = torch.bmm(x.float(), x.float().transpose(1, 2)) if sketch is None else sketch
    tiles = []
    for tile in torch.split(d, step, dim=2):
        seen = torch.bmm(products, tile.float())
        tiles.append((seen.square_() if sketch is not None else seen.mul_(tile)).sum(dim=1))
    by_row = torch.cat(tiles, dim=1).clamp_(min=0).double()
    weights = torch.linalg.vector_norm(d.float(), dim=2).square()  # three times quicker than a sum of squares
    by_column = torch.mv(x.float().square().flatten(0, 1).T, weights.flatten()).double()
    return by_row.sum(dim=0), by_column, by_row.sum(dim=1)


def _embedding_squares(layer: Layer, ids: torch.Tensor, d: torch.Tensor, samples: int) -> Squares:
    """Return the same for an embedding.

    Ids that all samples share (positions, ``[1, tokens]``) have the sum of the samples' gradients.  Its square is used
    as it is: gradients of different samples are independent with mean 0, so in expectation it is the sum of squares.
    """
    rows, columns = (torch.zeros(size, dtype=torch.float64, device=d.device) for size in layer.matrix)
    groups, each = samples if ids.shape[0] == samples else 1, list[float]()
    ids, d = ids.reshape(groups, -1), d.reshape(groups, -1, d.shape[-1]).float()
    for own, gradient in zip(ids, d, strict=True):
        used, place = own.unique(return_inverse=True)
        squares = torch.zeros(used.numel(), d.shape[-1], device=d.device).index_add_(0, place, gradient).square()
        rows[used] += squares.sum(dim=1)
        columns += squares.sum(dim=0)
        each.append(float(squares.sum()))
    return rows, columns, torch.tensor(each if groups == samples else [], dtype=torch.float64, device=d.device)

"""Codebooks learned for each channel or group by k-means in one dimension (Lloyd's algorithm), as in SqueezeLLM.

    value[r, c] = codebooks[r, g, codes[r, c]],     2**bits levels, ascending, float16 unless the name says otherwise

The start is the optimal density for small errors, proportional to (weighted density)**(1/3) of the sorted values; each
step moves a level to the importance-weighted mean of the values nearest to it.  Everything is a sum over sorted values,
so it is fast, the same for every order of the columns, and the same on every run.  A level without values stays.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from workbench.errors import NonFiniteError, SchemeError, nearest
from workbench.numerics.bands import of_band, row_tiles
from workbench.numerics.formats import scaled
from workbench.numerics.granularity import (
    Granularity,
    Grid,
    PerChannel,
    PerGroup,
    PerTensor,
    check_granularity,
    granularity_name,
    grid,
)
from workbench.numerics.packing import pack, packed_width, unpack
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.scale_format import FP16, ScaleFormat, scale_format
from workbench.numerics.scheme import Parameters, Scheme, check_static_range

if TYPE_CHECKING:
    import torch

STEPS = 40
"""The most Lloyd steps; on normal weights the error then falls by less than 0.01 dB a step."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodebookParameters(Parameters):
    """``codebook``: float32 ``[rows, groups, levels]`` or ``[1, 1, levels]``, ascending; ``scale`` is 1."""

    codebook: torch.Tensor

    def columns(self, start: int, stop: int) -> Parameters:
        if self.codebook.shape[1] == 1:
            return self
        return replace(self, codebook=self.codebook[:, start // self.width : -(-stop // self.width)])


@dataclass(frozen=True, slots=True, kw_only=True)
class KmeansScheme(Scheme):
    """``2**width`` learned values for each channel or group: ``kmeans3-channel``."""

    family: ClassVar[str] = "codebook"
    width: int
    sharing: Granularity
    value_format: ScaleFormat = FP16

    def __post_init__(self) -> None:
        check_granularity(self.sharing)

    @property
    def name(self) -> str:
        """``kmeans3-channel``; the format of the values follows where it is not float16."""
        suffix = "" if self.value_format == FP16 else f"-s{self.value_format.name}"
        return f"kmeans{self.width}-{granularity_name(self.sharing)}{suffix}"

    @property
    def granularity(self) -> Granularity:
        return self.sharing

    @property
    def levels(self) -> int:
        """Values of a codebook."""
        return 1 << self.width

    def bits(self, shape: tuple[int, int]) -> int:
        cut = grid(self.sharing, shape)
        books = self.value_format.bits * self.levels * cut.bands * cut.groups
        return 8 * cut.rows * packed_width(cut.columns, self.width) + books

    def grids(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return the evenly spaced codebooks of static ranges, as :meth:`fit_range` makes them."""
        steps = np.arange(self.levels) / (self.levels - 1)
        exact = low[:, None] * (1 - steps) + high[:, None] * steps
        stored: np.ndarray = self.value_format.nearest(exact.astype(np.float32))
        return stored.astype(np.float64)

    def fit(
        self, weight: torch.Tensor, importance: torch.Tensor | None = None, *, clip_search: bool = False
    ) -> Parameters:
        """Learn the codebooks; there is no range to search, so ``clip_search`` changes nothing."""
        import torch

        weight = weight.detach()
        cut = self._grid(weight)
        weights = None if importance is None else importance.detach().to(weight.device).expand(weight.shape)
        if self.sharing == PerTensor():
            flat = None if weights is None else weights.reshape(1, 1, -1)
            book = _learn(*_sorted(weight.reshape(1, 1, -1), flat), self.levels)
            return self._parameters(book, cut)
        books = torch.zeros(cut.rows, cut.groups, self.levels, device=weight.device)
        for part in row_tiles(cut.rows, cut.columns):
            for columns, groups in _even_parts(cut):
                values = _split(weight[part, columns], groups)
                mass = None if weights is None else _split(weights[part, columns], groups)
                books[part, groups] = _learn(*_sorted(values, mass), self.levels)
        return self._parameters(books, cut)

    def fit_range(self, low: float, high: float) -> Parameters:
        """Return one codebook that spans the range evenly; zero is kept inside, not on a level."""
        import torch

        check_static_range(low, high)
        book = torch.from_numpy(self.grid(low, high).astype(np.float32)).reshape(1, 1, -1)
        return CodebookParameters(scale=torch.ones(1, 1), zero_point=None, width=sys.maxsize, codebook=book)

    def _parameters(self, books: torch.Tensor, cut: Grid) -> Parameters:
        import torch

        stored = self.value_format.nearest(books.float())
        scale = torch.ones(1, 1, device=books.device)
        return CodebookParameters(scale=scale, zero_point=None, width=cut.width, codebook=stored)

    def round(self, weight: torch.Tensor, parameters: Parameters) -> torch.Tensor:
        """Return the nearest values of the codebooks, the lower of two equally near; see the contract."""
        import torch

        weight = weight.detach()
        cut = self._grid(weight)
        assert isinstance(parameters, CodebookParameters)
        if _compiled(weight):
            from workbench.numerics.formats.compiled.codecs import book_codec, rounded

            return rounded(weight, book_codec(parameters.codebook, parameters.width, self.width))
        out = torch.empty(cut.rows, cut.columns, dtype=torch.float32, device=weight.device)
        for part in row_tiles(cut.rows, cut.columns):
            exact = weight[part].to(torch.float32)
            book, codes = self._nearest(exact, parameters, part)
            out[part] = torch.where(exact.isnan(), exact, _looked_up(book, codes, parameters.width))
        return out

    def encode(self, weight: torch.Tensor, parameters: Parameters) -> QuantizedTensor:
        """Return ``codes`` uint8 ``[rows, packed]`` and ``codebooks`` ``[bands, groups, levels]``."""
        weight = weight.detach()
        cut = self._grid(weight)
        assert isinstance(parameters, CodebookParameters)
        if _compiled(weight):
            from workbench.numerics.formats.compiled.codecs import book_codec, encode

            codes, bad = encode(weight, book_codec(parameters.codebook, parameters.width, self.width))
        else:
            codes, bad = self._packed(weight, parameters)
        if bad:
            raise NonFiniteError(f"a matrix of shape {cut.rows} x {cut.columns} holds NaN; it has no code")
        books = parameters.codebook.expand(cut.bands, cut.groups, self.levels)
        arrays = {"codes": codes, "codebooks": self.value_format.store(books.contiguous())}
        return QuantizedTensor(scheme=self.name, shape=(cut.rows, cut.columns), arrays=arrays)

    def _packed(self, weight: torch.Tensor, parameters: Parameters) -> tuple[np.ndarray, int]:
        """Return packed codes, uint8 ``[rows, packed width]``, and how many weights are NaN."""
        import torch

        rows, columns = weight.shape
        codes, bad = torch.empty(rows, packed_width(columns, self.width), dtype=torch.uint8), 0
        for part in row_tiles(rows, columns):
            exact = weight[part].to(torch.float32)
            bad += int(exact.isnan().sum())
            codes[part] = pack(self._nearest(exact, parameters, part)[1], self.width)
        return codes.numpy(), bad

    def decode(self, stored: QuantizedTensor) -> torch.Tensor:
        import torch

        cut = grid(self.sharing, stored.shape)
        sizes = {"codes": (cut.rows, packed_width(cut.columns, self.width)),
                 "codebooks": (cut.bands, cut.groups, self.levels)}  # fmt: skip
        for name, shape in sizes.items():
            if stored.arrays[name].shape != shape:
                raise ValueError(f"it has {name} of {stored.arrays[name].shape}, and {shape} were expected")
        books = torch.from_numpy(self.value_format.load(stored.arrays["codebooks"]))
        if cut.rows * cut.columns >= scaled.COMPILED_FROM:
            from workbench.numerics.formats.compiled.codecs import book_codec, decode

            return decode(stored.arrays["codes"], stored.shape, book_codec(books, cut.width, self.width))
        codes = unpack(stored.arrays["codes"], cut.columns, self.width)
        out = torch.empty(stored.shape, dtype=torch.float32)
        for part in row_tiles(cut.rows, cut.columns):
            out[part] = _looked_up(of_band(books, part), codes[part], cut.width)
        return out

    def _nearest(self, exact: torch.Tensor, parameters: Parameters, part: slice) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the codebooks of a band of rows and the codes, uint8 ``[rows, columns]``, of its float32 weights."""
        import torch

        assert isinstance(parameters, CodebookParameters)
        book = of_band(parameters.codebook, part)
        middles = book[..., :-1] / 2 + book[..., 1:] / 2
        limits = _spread(middles, exact.shape[1], parameters.width)
        codes = torch.zeros(exact.shape, dtype=torch.uint8, device=exact.device)
        for level in range(self.levels - 1):
            codes += exact > limits[..., level]
        return book, codes

    def _grid(self, weight: torch.Tensor) -> Grid:
        return grid(self.sharing, self.matrix_shape(weight))


def _compiled(weight: torch.Tensor) -> bool:
    """Return whether ``weight`` is large enough for the compiled kernels."""
    return weight.numel() >= scaled.COMPILED_FROM and weight.device.type == "cpu"


def _even_parts(cut: Grid) -> Iterable[tuple[slice, slice]]:
    """Yield the columns and groups of all full groups, then those of the short last one."""
    full = cut.columns // cut.width
    if full:
        yield slice(0, full * cut.width), slice(0, full)
    if full < cut.groups:
        yield slice(full * cut.width, cut.columns), slice(full, cut.groups)


def _split(tile: torch.Tensor, groups: slice) -> torch.Tensor:
    """Return ``[rows, columns]`` as ``[rows, groups, columns of a group]``."""
    count = groups.stop - groups.start
    return tile.reshape(tile.shape[0], count, tile.shape[1] // count)


def _spread(book: torch.Tensor, columns: int, width: int) -> torch.Tensor:
    """Return ``[rows, groups, levels]`` as ``[rows, columns or 1, levels]``."""
    return book if book.shape[1] == 1 else book.repeat_interleave(min(width, columns), dim=1)[:, :columns]


def _looked_up(book: torch.Tensor, codes: torch.Tensor, width: int) -> torch.Tensor:
    """Return ``book[row, group of column, code]``, float32 ``[rows, columns]``."""
    import torch

    rows, columns = codes.shape
    group = torch.arange(columns, device=codes.device) // width if book.shape[1] > 1 else 0
    row = torch.arange(rows, device=codes.device).unsqueeze(1) if book.shape[0] > 1 else 0
    levels = book.shape[-1]
    index = (row * book.shape[1] + group) * levels + codes.to(torch.int64)
    return (book + 0.0).reshape(-1).take(index)


def _sorted(values: torch.Tensor, mass: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return values and importance in ascending order of values, float64 ``[..., n]``."""
    import torch

    ordered, order = values.to(torch.float64).contiguous().sort(dim=-1, stable=True)
    if not bool(ordered.isfinite().all()) or bool((ordered.abs() > torch.finfo(torch.float32).max).any()):
        raise NonFiniteError(f"a matrix of shape {tuple(values.shape)} holds NaN or infinite values")
    if mass is None:
        return ordered, torch.ones_like(ordered)
    weight = mass.to(torch.float64).gather(-1, order)
    return ordered, torch.where(weight.sum(dim=-1, keepdim=True) > 0, weight, 1.0)


def _learn(values: torch.Tensor, mass: torch.Tensor, levels: int) -> torch.Tensor:
    """Return the levels, float64 ``[..., levels]``, of sorted ``values`` with weights ``mass``."""
    import torch

    if not values.shape[-1]:
        return values.new_zeros(*values.shape[:-1], levels)
    pad = torch.nn.functional.pad
    masses, moments = pad(mass.cumsum(-1), (1, 0)), pad((mass * values).cumsum(-1), (1, 0))
    book = _start(values, mass, levels)
    for _ in range(STEPS):
        middles = book[..., :-1] / 2 + book[..., 1:] / 2
        inner = torch.searchsorted(values, middles.contiguous(), right=True)
        edges = torch.cat(
            [torch.zeros_like(inner[..., :1]), inner, torch.full_like(inner[..., :1], values.shape[-1])], -1
        )
        weight, moment = masses.gather(-1, edges).diff(dim=-1), moments.gather(-1, edges).diff(dim=-1)
        moved = torch.where(weight > 0, moment / weight.clamp(min=torch.finfo(torch.float64).tiny), book)
        moved = torch.maximum(torch.minimum(moved, values[..., -1:]), values[..., :1]).cummax(dim=-1).values
        if torch.equal(moved, book):
            break
        book = moved
    return book


def _start(values: torch.Tensor, mass: torch.Tensor, levels: int) -> torch.Tensor:
    """Return quantiles of the density to the power 1/3 (Panter and Dite, 1951), estimated from neighbours' gaps."""
    import torch

    count = values.shape[-1]
    reach = max(count // (4 * levels), 1)
    index = torch.arange(count, device=values.device)
    upper, lower = (index + reach).clamp(max=count - 1), (index - reach).clamp(min=0)
    gap = (values[..., upper] - values[..., lower]) / (upper - lower).clamp(min=1)
    weight = (mass.clamp(min=0) ** (1 / 3) * gap ** (2 / 3)).cumsum(-1)
    total = weight[..., -1:]
    even = torch.arange(1, count + 1, device=values.device, dtype=torch.float64).expand(values.shape)
    share = torch.where(total > 0, weight / total.clamp(min=torch.finfo(torch.float64).tiny), even / count)
    shares = (torch.arange(levels, device=values.device, dtype=torch.float64) + 0.5) / levels
    at = torch.searchsorted(share.contiguous(), shares.expand(*share.shape[:-1], levels).contiguous())
    return values.gather(-1, at.clamp(max=count - 1))


_NAME = re.compile(
    r"kmeans(?P<width>[2-4])(?:-(?P<word>channel|tensor)|-g(?P<size>\d{1,9}))?(?:-s(?P<values>fp16|bf16|fp32))?"
)


def parse(name: str, examples: tuple[str, ...]) -> Scheme | None:
    """Return the scheme called ``name``, None unless it begins with ``kmeans``; SchemeError if malformed."""
    if not name.startswith("kmeans"):
        return None
    match = _NAME.fullmatch(name)
    if match is None:
        raise SchemeError(
            f"{name!r} is not understood; expected kmeans<2|3|4>[-channel|-tensor|-g<N>][-sfp16|-sbf16|-sfp32]"
            f"{nearest(name, examples)}"
        )
    sharing: Granularity = PerTensor() if match["word"] == "tensor" else PerChannel()
    sharing = PerGroup(int(match["size"])) if match["size"] else sharing
    return KmeansScheme(
        width=int(match["width"]), sharing=sharing, value_format=scale_format(match["values"] or "") or FP16
    )

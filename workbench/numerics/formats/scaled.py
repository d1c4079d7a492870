"""Every format whose value is a scale times an entry of a small table: one implementation for all of them.

    value[r, c] = scales[r, g] * table[codes[r, c]]                      symmetric
    value[r, c] = scales[r, g] * (codes[r, c] - zero_points[r, g])       asymmetric

Scales of a full range ``[low, high]`` (zero always inside), rounded to the scale format:

- asymmetric: ``scale = (high - low) / (2**b - 1)``, ``zero_point = round(-low / scale)`` within ``0 .. 2**b - 1``;
- symmetric, one scale a group: ``scale = extreme / lowest``, where ``extreme`` is ``low`` or ``high``, whichever is
  farther from zero, so the scale takes the opposite sign of the extreme, which lands on the code ``-2**(b-1)``
  exactly, and the other end saturates at ``2**(b-1) - 1`` (the rule of Q4_0).  Measured on normal weights in groups
  of 32, SQNR against ``absmax / (2**(b-1) - 1)``: 8.8 against 3.6 dB at 2 bits, 15.2 against 12.9 at 3, 21.3 against
  20.3 at 4, 27.4 against 26.9 at 5, equal at 8;
- symmetric, coarser: ``scale = max(low / lowest, high / highest)``, always positive and without saturation, because
  integer kernels and the operators of most runtimes that take one scale a channel or a tensor want it positive.
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import NonFiniteError, RangeError, SchemeError, nearest
from workbench.numerics.element import Element
from workbench.numerics.granularity import Granularity, PerBlock, PerChannel, PerGroup, PerTensor, PerToken
from workbench.numerics.grouping import Grid, check_granularity, granularity_name, grid, grouped, pooled
from workbench.numerics.packing import pack, packed_width, unpack
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.scale_format import FP16, FP32, Array, ScaleFormat, scale_format
from workbench.numerics.scheme import Parameters, Scheme
from workbench.numerics.tiles import row_tiles

if TYPE_CHECKING:
    import torch

SHRINK_FACTORS = tuple(1.0 - 0.03 * step for step in range(21))
"""The clip search's candidates: the shares of the full range, 1 down to 0.4.

Both ends of an asymmetric range shrink together: a square of 21 x 21 candidates gained less than 0.1 dB (normal,
Laplace and Student-t weights, 2 to 5 bits), three times as many steps less than 0.08 dB.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledScheme(Scheme):
    """An element format, a granularity, symmetric or not, and how scales are stored."""

    element: Element
    granularity: Granularity = field()
    symmetric: bool = True
    scale_format: ScaleFormat

    def __post_init__(self) -> None:
        check_granularity(self.granularity)
        if not self.symmetric and not self.element.shiftable:
            raise SchemeError(f"{self.element.name} takes no zero point; only integers can be asymmetric")

    @property
    def name(self) -> str:
        """The canonical name; the scale format appears when it is not the granularity's usual one."""
        parts = [self.element.name, granularity_name(self.granularity)]
        if not self.symmetric:
            parts.append("asym")
        if self.scale_format != default_scale_format(self.granularity):
            parts.append(f"s{self.scale_format.name}")
        return "-".join(parts)

    @property
    def family(self) -> str:
        """``integer`` or ``floating``: whether codes are evenly spaced."""
        return "integer" if self.element.shiftable else "floating"

    def bits(self, shape: tuple[int, int]) -> int:
        """Return the exact bits of codes, scales and zero points: always ``8 * encode(...).nbytes``."""
        cut = grid(self.granularity, shape)
        entries = cut.bands * cut.groups
        octets = cut.rows * packed_width(cut.columns, self.element.bits)
        if not self.symmetric:
            octets += packed_width(entries, self.element.bits)
        return 8 * octets + self.scale_format.bits * entries

    def values(self) -> np.ndarray:
        """Return the element's values at scale 1, ascending; ``0 .. 2**b - 1`` when asymmetric."""
        values = self.element.values()
        return values if self.symmetric else values - values[0]

    def grids(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return the representable values of many static ranges, ``[n, levels]``; see the contract."""
        scale, zero_point = self._parameters(low[:, None], high[:, None], signed=False)
        values = self.values().astype(np.float64)[None]
        grids: np.ndarray = scale.astype(np.float64) * (values if zero_point is None else values - zero_point)
        return grids

    def fit(
        self, weight: torch.Tensor, importance: torch.Tensor | None = None, *, clip_search: bool = False
    ) -> Parameters:
        """Choose scales from the extremes of each group, or by a search over smaller ranges; see the contract."""
        weight = weight.detach()
        cut = self._grid(weight)
        low, high = self._extremes(weight, cut)
        if clip_search and weight.numel():
            factor = self._search(weight, cut, low, high, importance)
            low, high = low * factor, high * factor
        scale, zero_point = self._parameters(low, high, signed=self._signed)
        spread = None if zero_point is None else cut.spread(zero_point)
        return Parameters(scale=cut.spread(scale), zero_point=spread, width=cut.width)

    def fit_range(self, low: float, high: float) -> Parameters:
        """Return one scale (positive) and zero point, ``[1, 1]``, for the static range ``[low, high]``."""
        import torch

        scale, zero_point = self._static(low, high)
        shift = None if zero_point is None else torch.from_numpy(zero_point)
        return Parameters(scale=torch.from_numpy(scale), zero_point=shift, width=sys.maxsize)

    def round(self, weight: torch.Tensor, parameters: Parameters) -> torch.Tensor:
        """Return the nearest representable values, float32; see the contract."""
        import torch

        weight = weight.detach()
        rows, columns = self._grid(weight).rows, weight.shape[1]
        out = torch.empty(rows, columns, dtype=torch.float32, device=weight.device)
        for part in row_tiles(rows, columns):
            scale, zero_point = _slice(parameters, part)
            snapped = self._snap(weight[part], parameters.width, scale, zero_point)
            out[part] = snapped.mul_(scale).flatten(1)[:, :columns]
        return out

    def encode(self, weight: torch.Tensor, parameters: Parameters) -> QuantizedTensor:
        """Return ``codes`` uint8 ``[rows, packed]``, ``scales`` and ``zero_points`` (packed as one row of codes)."""
        import torch

        weight = weight.detach()
        cut = self._grid(weight)
        bits = self.element.bits
        codes = torch.empty(cut.rows, packed_width(cut.columns, bits), dtype=torch.uint8)
        for part in row_tiles(cut.rows, cut.columns):
            scale, zero_point = _slice(parameters, part)
            snapped = self._snap(weight[part], parameters.width, scale, zero_point)
            if not bool(snapped.isfinite().all()):
                raise NonFiniteError(f"a matrix of shape {cut.rows} x {cut.columns} holds NaN; it has no code")
            unpacked = self.element.codes(snapped, zero_point).flatten(1)[:, : cut.columns]
            codes[part] = pack(unpacked, bits)
        arrays = {"codes": codes.numpy(), "scales": self.scale_format.store(cut.stored(parameters.scale))}
        if parameters.zero_point is not None:
            shifts = cut.stored(parameters.zero_point).to(torch.uint8).reshape(1, -1)
            arrays["zero_points"] = pack(shifts, bits).reshape(-1).cpu().numpy()
        return QuantizedTensor(scheme=self.name, shape=(cut.rows, cut.columns), arrays=arrays)

    def decode(self, stored: QuantizedTensor) -> torch.Tensor:
        """Return the float32 matrix; bit for bit what ``round`` returned."""
        import torch

        cut = grid(self.granularity, stored.shape)
        codes, scales, zero_points = self.unpacked(stored)
        scales = cut.spread(scales)
        parameters = Parameters(
            scale=scales, zero_point=None if zero_points is None else cut.spread(zero_points), width=cut.width
        )
        out = torch.empty(stored.shape, dtype=torch.float32)
        for part in row_tiles(cut.rows, cut.columns):
            scale, zero_point = _slice(parameters, part)
            value = self.element.decode(grouped(codes[part], cut.width), zero_point)
            out[part] = value.mul_(scale).flatten(1)[:, : cut.columns]
        return out

    def unpacked(self, stored: QuantizedTensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Return stored codes uint8 ``[rows, columns]``, scales float32 and zero points float32 ``[bands, groups]``.

        Symmetric integers are stored with ``2**(b-1)`` added; floats as their bit patterns.
        """
        import torch

        cut = grid(self.granularity, stored.shape)
        codes = unpack(stored.arrays["codes"], cut.columns, self.element.bits)
        scales = torch.from_numpy(self.scale_format.load(stored.arrays["scales"]))
        if self.symmetric:
            return codes, scales, None
        packed = stored.arrays["zero_points"].reshape(1, -1)
        shifts = unpack(packed, cut.bands * cut.groups, self.element.bits)
        return codes, scales, shifts.reshape(cut.bands, cut.groups).to(torch.float32)

    @property
    def _signed(self) -> bool:
        """Whether scales may be negative: with one scale a group, where the table reaches farther below zero."""
        return isinstance(self.granularity, PerGroup) and -self.element.lowest > self.element.highest

    def _grid(self, weight: torch.Tensor) -> Grid:
        if weight.dim() != 2 or not weight.is_floating_point():
            raise SchemeError(
                f"{self.name} stores a floating-point matrix; got {weight.dtype} of shape {tuple(weight.shape)}"
            )
        return grid(self.granularity, (weight.shape[0], weight.shape[1]))

    def _static(self, low: float, high: float) -> tuple[np.ndarray, np.ndarray | None]:
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise RangeError(f"expected a finite range with low <= high; got [{low}, {high}]")
        scale, zero_point = self._parameters(np.array([[min(low, 0.0)]]), np.array([[max(high, 0.0)]]), signed=False)
        return scale, zero_point

    def _parameters(self, low: Array, high: Array, *, signed: bool) -> tuple[Array, Array | None]:
        """Return scale and zero point, float32, of ranges ``low <= 0 <= high``: numpy arrays or tensors alike."""
        lowest, highest = self.element.lowest, self.element.highest
        if self.symmetric:
            farther = (-low > high) * low + (-low <= high) * high
            scale = farther / lowest if signed else (low / lowest).clip(high / highest)
            return self.scale_format.storable(scale, -lowest), None
        levels = highest - lowest
        scale = self.scale_format.storable(high / levels - low / levels, levels)
        shift = (-low / (scale + (scale == 0))).round().clip(0.0, levels)
        return scale, shift.astype(np.float32) if isinstance(shift, np.ndarray) else shift

    def _extremes(self, weight: torch.Tensor, cut: Grid) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the least and greatest value of each tile, zero included, float32 ``[bands, groups]``."""
        import torch

        shape = (cut.rows, cut.groups)
        low = torch.zeros(shape, dtype=torch.float32, device=weight.device)
        high = torch.zeros_like(low)
        for part in row_tiles(cut.rows, cut.columns):
            least, greatest = grouped(weight[part], cut.width).aminmax(dim=-1)
            low[part], high[part] = least.to(torch.float32), greatest.to(torch.float32)
        if not bool((low.isfinite() & high.isfinite()).all()):
            bad = weight.numel() - int(weight.to(torch.float32).isfinite().sum())
            raise NonFiniteError(
                f"{bad} of {weight.numel()} values of a {cut.rows} x {cut.columns} matrix are NaN, infinite or beyond "
                f"float32; {self.name} stores finite values only"
            )
        return pooled(low, cut.height, "min").clamp_(max=0.0), pooled(high, cut.height, "max").clamp_(min=0.0)

    def _search(
        self, weight: torch.Tensor, cut: Grid, low: torch.Tensor, high: torch.Tensor, importance: torch.Tensor | None
    ) -> torch.Tensor:
        """Return, for each tile, the share of the full range with the least weighted squared error."""
        import torch

        factors = torch.tensor(SHRINK_FACTORS, dtype=torch.float32, device=weight.device)
        weights = None if importance is None else importance.detach().to(weight.device).expand(weight.shape)
        whole = cut.height >= cut.rows > 1
        total = torch.zeros(len(factors), 1, cut.groups, dtype=torch.float64, device=weight.device)
        best = torch.zeros(cut.bands, cut.groups, dtype=torch.int64, device=weight.device)
        for part in row_tiles(cut.rows, cut.columns, 1 if whole else cut.height):
            bands = slice(0, 1) if whole else slice(part.start // cut.height, -(-part.stop // cut.height))
            tile_weights = None if weights is None else weights[part].to(torch.float32)
            errors = self._errors(weight[part], cut, low[bands], high[bands], tile_weights)
            if whole:
                total += errors
            else:
                best[bands] = errors.argmin(dim=0)
        return factors[total.argmin(dim=0) if whole else best]

    def _errors(
        self, tile: torch.Tensor, cut: Grid, low: torch.Tensor, high: torch.Tensor, weights: torch.Tensor | None
    ) -> torch.Tensor:
        """Return the weighted squared error for every shrink factor, ``[factors, bands of the tile, groups]``."""
        import torch

        local = Grid(tile.shape[0], cut.columns, min(cut.height, tile.shape[0]), cut.width)
        tile = tile.to(torch.float32)
        exact = grouped(tile, cut.width)
        spread = None if weights is None else grouped(weights, cut.width)
        found = []
        for factor in SHRINK_FACTORS:
            scale, zero_point = self._parameters(low * factor, high * factor, signed=self._signed)
            scale = local.spread(scale).unsqueeze(-1)
            shift = None if zero_point is None else local.spread(zero_point).unsqueeze(-1)
            error = self._snap(tile, cut.width, scale, shift).mul_(scale).sub_(exact).square_()
            per_row = (error if spread is None else error.mul_(spread)).sum(dim=-1)
            found.append(pooled(per_row, local.height, "sum"))
        return torch.stack(found)

    def _snap(
        self, tile: torch.Tensor, width: int, scale: torch.Tensor, zero_point: torch.Tensor | None
    ) -> torch.Tensor:
        """Return the representable values at scale 1, float32 ``[rows, groups, width]``; 0 where the scale is 0."""
        import torch

        divisor = scale + (scale == 0)
        return self.element.snap_(grouped(tile.to(torch.float32), width) / divisor, zero_point)


def _slice(parameters: Parameters, part: slice) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return the scale and zero point of a band of rows, ``[rows or 1, groups, 1]``."""
    rows = part if parameters.scale.shape[0] > 1 else slice(None)
    zero_point = parameters.zero_point
    return parameters.scale[rows].unsqueeze(-1), None if zero_point is None else zero_point[rows].unsqueeze(-1)


def default_scale_format(granularity: Granularity) -> ScaleFormat:
    """Return float16 for groups and float32 for anything coarser.

    Groups are many, so their scales weigh; coarse scales are few, and a float16 scale of ``absmax / 448`` of a layer
    with small weights is subnormal, which costs more accuracy than two bytes a channel are worth.
    """
    return FP16 if isinstance(granularity, PerGroup) else FP32


_GRANULARITY = re.compile(r"(?P<word>tensor|channel|token)|g(?P<size>\d{1,9})|b(?P<rows>\d{1,9})x(?P<columns>\d{1,9})")
_WORDS: dict[str, Granularity] = {"tensor": PerTensor(), "channel": PerChannel(), "token": PerToken()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledFamily:
    """The schemes of some elements: ``<element>[-<granularity>][-asym][-s<fp16|bf16|fp32>]``."""

    name: str
    title: str
    elements: tuple[Element, ...]
    examples: tuple[str, ...]

    def parse(self, name: str) -> Scheme | None:
        """Return the scheme called ``name`` (lower case), or None if its element is of another family."""
        for element in self.elements:
            if name == element.name or name.startswith(element.name + "-"):
                return self._parse_rest(name, element)
        return None

    def _parse_rest(self, name: str, element: Element) -> Scheme:
        parts = name[len(element.name) :].split("-")[1:]
        granularity: Granularity = PerChannel()
        found = _GRANULARITY.fullmatch(parts[0]) if parts else None
        if found:
            granularity = _granularity(found)
            parts = parts[1:]
        symmetric = parts[:1] != ["asym"]
        parts = parts if symmetric else parts[1:]
        stored = scale_format(parts[0][1:]) if parts and parts[0].startswith("s") else None
        if stored is not None:
            parts = parts[1:]
        if parts:
            raise SchemeError(
                f"'-{'-'.join(parts)}' in {name!r} is not understood; expected "
                f"{element.name}[-tensor|-channel|-token|-g<N>|-b<R>x<C>][-asym][-sfp16|-sbf16|-sfp32]"
                f"{nearest(name, self.examples)}"
            )
        return ScaledScheme(
            element=element,
            granularity=granularity,
            symmetric=symmetric,
            scale_format=stored or default_scale_format(granularity),
        )


def _granularity(found: re.Match[str]) -> Granularity:
    if found["word"]:
        return _WORDS[found["word"]]
    if found["size"]:
        return PerGroup(int(found["size"]))
    return PerBlock(int(found["rows"]), int(found["columns"]))

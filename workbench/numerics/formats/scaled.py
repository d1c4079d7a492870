"""Every format whose value is a scale times an entry of a small table: one implementation for all of them.

    value[r, c] = scales[r, g] * table[codes[r, c]]                      symmetric
    value[r, c] = scales[r, g] * (codes[r, c] - zero_points[r, g])       asymmetric
    value[r, c] = scales[r, g] * codes[r, c] + offsets[r, g]             asymmetric, floating zero points

Scales of a full range ``[low, high]`` (zero always inside, but for floating zero points), rounded to the scale format:

- asymmetric: ``scale = (high - low) / (2**b - 1)``, ``zero_point = round(-low / scale)`` within ``0 .. 2**b - 1``;
- floating zero points: ``offset = low``, ``scale = (high - offset) / (2**b - 1)`` (as in HQQ and torchao's tiled int4
  layout, whose zero point is ours plus ``2**(b-1) * scale``); zero itself is then seldom representable;
- symmetric, one scale a group: ``scale = extreme / lowest``, where ``extreme`` is ``low`` or ``high``, whichever is
  farther from zero, so the scale takes the opposite sign of the extreme, which lands on the code ``-2**(b-1)``
  exactly, and the other end saturates at ``2**(b-1) - 1`` (the rule of Q4_0);
- symmetric, coarser: ``scale = max(low / lowest, high / highest)``, always positive and without saturation, because
  integer kernels and the operators of most runtimes that take one scale a channel or a tensor want it positive.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import NonFiniteError, SchemeError
from workbench.numerics.bands import row_tiles, tile_elements
from workbench.numerics.element import Element
from workbench.numerics.formats.affine import OFFSET_REACH, Rule, band
from workbench.numerics.formats.affine import Affine as Affine
from workbench.numerics.formats.clip_search import least_error
from workbench.numerics.formats.extremes import extremes
from workbench.numerics.granularity import (
    Granularity,
    Grid,
    PerChannel,
    PerGroup,
    check_granularity,
    granularity_name,
    grid,
    grouped,
)
from workbench.numerics.packing import pack, packed_width, unpack
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.scale_format import FP16, FP32, SCALE_FORMATS, Array, ScaleFormat
from workbench.numerics.scheme import Parameters, Scheme, check_static_range

if TYPE_CHECKING:
    import torch

SHRINK_FACTORS = tuple(1.0 - 0.03 * step for step in range(21))
"""The clip search's candidates: the shares of the full range, 1 down to 0.4; both ends of a range shrink together."""

COMPILED_FROM = 1 << 16
"""Elements from which compiled kernels work on a matrix; below, importing and threads cost more than they save."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledScheme(Scheme):
    """An element format, a granularity, symmetric or not, how scales and (if floating) zero points are stored."""

    element: Element
    granularity: Granularity
    symmetric: bool = True
    scale_format: ScaleFormat
    offset_format: ScaleFormat | None = None

    def __post_init__(self) -> None:
        check_granularity(self.granularity)
        if not self.symmetric and not self.element.shiftable:
            raise SchemeError(f"{self.element.name} takes no zero point; only integers can be asymmetric")
        if self.symmetric and self.offset_format is not None:
            raise SchemeError(
                f"a symmetric {self.element.name} has no zero point, so none in {self.offset_format.name}"
            )

    @property
    def name(self) -> str:
        """The canonical name; the scale format appears when it is not the granularity's usual one."""
        parts = [self.element.name, granularity_name(self.granularity)]
        if not self.symmetric:
            parts.append("asym")
        if self.offset_format is not None:
            parts.append(f"z{self.offset_format.name}")
        if self.scale_format != default_scale_format(self.granularity):
            parts.append(f"s{self.scale_format.name}")
        return "-".join(parts)

    @property
    def family(self) -> str:
        return "integer" if self.element.shiftable else "floating"

    @property
    def rows_apart(self) -> bool:
        return isinstance(self.granularity, PerGroup | PerChannel)

    def bits(self, shape: tuple[int, int]) -> int:
        cut = grid(self.granularity, shape)
        entries = cut.bands * cut.groups
        nbytes = cut.rows * packed_width(cut.columns, self.element.bits)
        if self.offset_format is not None:
            nbytes += self.offset_format.bits * entries // 8
        elif not self.symmetric:
            nbytes += packed_width(entries, self.element.bits)
        return 8 * nbytes + self._scale_bits(entries)

    def _scale_bits(self, entries: int) -> int:
        return self.scale_format.bits * entries

    def values(self) -> np.ndarray:
        """Return the element's values at scale 1, ascending; ``0 .. 2**b - 1`` when asymmetric."""
        values = self.element.values()
        return values if self.symmetric else values - values[0]

    def grids(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        affine = self._static_rule(low[:, None], high[:, None])
        values = self.values().astype(np.float64)[None]
        shifted = values if affine.zero_point is None else values - affine.zero_point
        grids: np.ndarray = affine.scale.astype(np.float64) * shifted
        return grids if affine.offset is None else grids + affine.offset

    def fit(
        self, weight: torch.Tensor, importance: torch.Tensor | None = None, *, clip_search: bool = False
    ) -> Parameters:
        """Choose scales from the extremes of each group, or by a search over smaller ranges; see the contract."""
        import torch

        weight = weight.detach()
        cut = self._grid(weight)
        low, high = self._extremes(weight, cut)
        rule = self._rule(low, high)
        if clip_search and weight.numel():
            best = self._best(weight, cut, rule, (low, high), importance)
            low, high = self._shrunk(low, high, torch.tensor(self._factors, device=weight.device)[best])
        return self._settled(rule(low, high), cut)

    def _best(
        self, weight: torch.Tensor, cut: Grid, rule: Rule, ends: tuple[torch.Tensor, torch.Tensor],
        importance: torch.Tensor | None,
    ) -> torch.Tensor:  # fmt: skip
        """Return the number of the factor that rounds each tile with the least error, int64 ``[bands, groups]``."""
        import torch

        if not self.is_compiled(weight):
            candidates = [rule(*self._shrunk(*ends, factor)) for factor in self._factors]
            return least_error(weight, cut, candidates, importance, self._snap)
        from workbench.numerics.formats.compiled import clip_compiled

        factors = torch.tensor(self._factors)

        def candidates_of(bands: slice) -> Affine:
            low, high = self._shrunk(ends[0][bands, :, None], ends[1][bands, :, None], factors)
            flat = rule(low.flatten(1), high.flatten(1))
            return flat.apply(lambda member: member.reshape(low.shape))

        return clip_compiled.least_error(weight, cut, candidates_of, importance, self.element, ends)

    def parameters(self, shape: tuple[int, int], affine: Affine) -> Parameters:
        """Return the parameters nearest to those that an algorithm has found, ``[bands, groups]`` each.

        Scales and offsets are rounded to their formats, zero points to whole numbers within the codes.
        """
        levels = self.element.highest - self.element.lowest
        scale = self.scale_format.storable(affine.scale, max(levels, -self.element.lowest))
        shift = None if affine.zero_point is None else affine.zero_point.round().clip(0.0, levels)
        offset = None if self.offset_format is None else self.offset_format.nearest(affine.offset)
        return self._settled(Affine(scale, shift, offset), grid(self.granularity, shape))

    def _settled(self, affine: Affine, cut: Grid) -> Parameters:
        """Return the parameters of storable ``[bands, groups]`` members."""
        scale, zero_point, offset, shared = affine.apply(cut.spread)
        return Parameters(scale=scale, zero_point=zero_point, width=cut.width, offset=offset, shared=shared)

    def fit_range(self, low: float, high: float) -> Parameters:
        """Return one scale (positive) and zero point, ``[1, 1]``, for the static range ``[low, high]``."""
        import torch

        check_static_range(low, high)
        affine = self._static_rule(np.array([[min(low, 0.0)]]), np.array([[max(high, 0.0)]]))
        scale, zero_point, offset, shared = (
            None if member is None else torch.from_numpy(member.astype(np.float32)) for member in affine
        )
        assert scale is not None
        return Parameters(scale=scale, zero_point=zero_point, width=sys.maxsize, offset=offset, shared=shared)

    def round(self, weight: torch.Tensor, parameters: Parameters) -> torch.Tensor:
        import torch

        weight = weight.detach()
        rows, columns = self._grid(weight).rows, weight.shape[1]
        if self.is_compiled(weight):
            from workbench.numerics.formats.compiled import codecs

            return codecs.rounded(weight, codecs.element_codec(parameters, self.element))
        out = torch.empty(rows, columns, dtype=torch.float32, device=weight.device)
        for part in row_tiles(rows, columns, elements=tile_elements(weight.device)):
            affine = band(parameters, part)
            snapped = self._snap(weight[part], parameters.width, affine)
            out[part] = affine.values(snapped).flatten(1)[:, :columns]
        return out

    def encode(self, weight: torch.Tensor, parameters: Parameters) -> QuantizedTensor:
        """Return ``codes`` uint8 ``[rows, packed]``, ``scales`` and ``zero_points`` (packed as one row of codes).

        Floating zero points are ``offsets``, of the shape of the scales.
        """
        import torch

        weight = weight.detach()
        cut = self._grid(weight)
        arrays = {"codes": self._codes(weight, parameters), **self._scale_arrays(parameters, cut)}
        if parameters.offset is not None and self.offset_format is not None:
            arrays["offsets"] = self.offset_format.store(cut.stored(parameters.offset))
        if parameters.zero_point is not None:
            shifts = cut.stored(parameters.zero_point).to(torch.uint8).reshape(1, -1)
            arrays["zero_points"] = pack(shifts, self.element.bits).reshape(-1).cpu().numpy()
        return QuantizedTensor(scheme=self.name, shape=(cut.rows, cut.columns), arrays=arrays)

    def _codes(self, weight: torch.Tensor, parameters: Parameters) -> np.ndarray:
        """Return the packed codes, uint8 ``[rows, packed width]``; NonFiniteError if ``weight`` holds NaN."""
        import torch

        rows, columns = weight.shape
        bits = self.element.bits
        message = f"a matrix of shape {rows} x {columns} holds NaN; it has no code"
        if self.is_compiled(weight):
            from workbench.numerics.formats.compiled import codecs

            packed, bad = codecs.encode(weight, codecs.element_codec(parameters, self.element))
            if bad:
                raise NonFiniteError(message)
            return np.asarray(packed)
        codes = torch.empty(rows, packed_width(columns, bits), dtype=torch.uint8)
        for part in row_tiles(rows, columns, elements=tile_elements(weight.device)):
            affine = band(parameters, part)
            snapped = self._snap(weight[part], parameters.width, affine)
            if not bool(snapped.isfinite().all()):
                raise NonFiniteError(message)
            unpacked = self.element.codes(snapped, affine.zero_point).flatten(1)[:, :columns]
            codes[part] = pack(unpacked, bits)
        return codes.numpy()

    def is_compiled(self, weight: torch.Tensor, times: int = 1) -> bool:
        """Return whether the compiled kernels know the scheme and serve ``weight``, which is rounded so many ``times``.

        They do on the CPU and for large matrices.
        """
        return weight.device.type == "cpu" and self.is_compilable(weight, times)

    def is_compilable(self, weight: torch.Tensor, times: int = 1) -> bool:
        """Return whether the compiled kernels would serve ``weight`` if it were on the CPU."""
        known = self.element.shiftable or self.element.bits <= 4 or self.element.binary is not None
        return known and weight.numel() * times >= COMPILED_FROM

    def _scale_arrays(self, parameters: Parameters, cut: Grid) -> dict[str, np.ndarray]:
        return {"scales": self.scale_format.store(cut.stored(parameters.scale))}

    def _loaded_scales(self, stored: QuantizedTensor) -> np.ndarray:
        """Return the effective scales, float32 ``[bands, groups]``."""
        return self.scale_format.load(stored.arrays["scales"])

    def require_arrays(self, stored: QuantizedTensor) -> None:
        """Raise ValueError where an array is not as :meth:`encode` makes it: compiled decoders trust their sizes."""
        cut = grid(self.granularity, stored.shape)
        expected: dict[str, tuple[int, ...]] = {"codes": (cut.rows, packed_width(cut.columns, self.element.bits))}
        expected |= dict.fromkeys({"scales", "offsets"} & stored.arrays.keys(), (cut.bands, cut.groups))
        if "zero_points" in stored.arrays:
            expected["zero_points"] = (packed_width(cut.bands * cut.groups, self.element.bits),)
        for name, shape in expected.items():
            if stored.arrays[name].shape != shape:
                raise ValueError(f"it has {name} of {stored.arrays[name].shape}, and {shape} were expected")

    def decode(self, stored: QuantizedTensor) -> torch.Tensor:
        import torch

        self.require_arrays(stored)
        cut = grid(self.granularity, stored.shape)
        parameters = self._settled(self._stored_affine(stored, cut), cut)
        if cut.rows * cut.columns >= COMPILED_FROM:
            from workbench.numerics.formats.compiled import codecs

            codec = codecs.element_codec(parameters, self.element)
            return codecs.decode(stored.arrays["codes"], stored.shape, codec)
        codes = unpack(stored.arrays["codes"], cut.columns, self.element.bits)
        out = torch.empty(stored.shape, dtype=torch.float32)
        for part in row_tiles(cut.rows, cut.columns):
            affine = band(parameters, part)
            value = self.element.decode(grouped(codes[part], cut.width), affine.zero_point)
            out[part] = affine.values(value).flatten(1)[:, : cut.columns]
        return out

    def unpacked(self, stored: QuantizedTensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Return stored codes uint8 ``[rows, columns]``, scales float32 and zero points float32 ``[bands, groups]``.

        Symmetric integers are stored with ``2**(b-1)`` added; floats as their bit patterns.
        """
        self.require_arrays(stored)
        cut = grid(self.granularity, stored.shape)
        codes = unpack(stored.arrays["codes"], cut.columns, self.element.bits)
        affine = self._stored_affine(stored, cut)
        return codes, affine.scale, affine.zero_point

    def zero_points(self, stored: QuantizedTensor) -> torch.Tensor | None:
        """Return the zero points alone, float32 ``[bands, groups]``; None where there are none."""
        return self._stored_affine(stored, grid(self.granularity, stored.shape)).zero_point

    def _stored_affine(self, stored: QuantizedTensor, cut: Grid) -> Affine:
        """Return scales, zero points and offsets, float32 ``[bands, groups]``."""
        import torch

        scales = torch.from_numpy(self._loaded_scales(stored))
        if self.offset_format is not None:
            return Affine(scales, None, torch.from_numpy(self.offset_format.load(stored.arrays["offsets"])))
        if self.symmetric:
            return Affine(scales)
        packed = stored.arrays["zero_points"].reshape(1, -1)
        shifts = unpack(packed, cut.bands * cut.groups, self.element.bits)
        return Affine(scales, shifts.reshape(cut.bands, cut.groups).to(torch.float32))

    @property
    def _signed(self) -> bool:
        """Whether scales may be negative: with one scale a group, where the table reaches farther below zero."""
        return isinstance(self.granularity, PerGroup) and -self.element.lowest > self.element.highest

    def _grid(self, weight: torch.Tensor) -> Grid:
        return grid(self.granularity, self.matrix_shape(weight))

    def _rule(self, low: torch.Tensor, high: torch.Tensor) -> Rule:
        """Return how this matrix, whose groups span ``low`` to ``high``, gets parameters from ranges within."""
        return lambda least, greatest: self._affine(least, greatest, signed=self._signed)

    def _static_rule(self, low: np.ndarray, high: np.ndarray) -> Affine:
        """Return the parameters of independent static ranges, in numpy; scales are positive."""
        return self._affine(low, high, signed=False)

    def _affine(self, low: Array, high: Array, *, signed: bool) -> Affine:
        """Return the parameters, float32, of ranges ``low <= 0 <= high``: numpy arrays or tensors alike."""
        lowest, highest = self.element.lowest, self.element.highest
        if self.scale_format in SCALE_FORMATS and are_many(low):
            from workbench.numerics.formats.compiled import scaled_compiled

            return scaled_compiled.affine(
                low, high, (lowest, highest), self.scale_format, self.offset_format,
                symmetric=self.symmetric, signed=signed,
            )  # fmt: skip
        if self.symmetric:
            farther = (-low > high) * low + (-low <= high) * high
            scale = farther / lowest if signed else (low / lowest).clip(high / highest)
            return Affine(self.scale_format.storable(scale, -lowest))
        levels = highest - lowest
        if self.offset_format is not None:
            offset = self.offset_format.nearest(low.clip(-OFFSET_REACH, OFFSET_REACH))
            span = high.clip(-OFFSET_REACH, OFFSET_REACH) / levels - offset / levels
            return Affine(self.scale_format.storable(span.clip(0.0), levels), None, offset)
        scale = self.scale_format.storable(high / levels - low / levels, levels)
        shift = (-low / (scale + (scale == 0))).round().clip(0.0, levels) + 0.0  # -0 becomes +0
        return Affine(scale, shift.astype(np.float32) if isinstance(shift, np.ndarray) else shift)

    @property
    def _factors(self) -> tuple[float, ...]:
        """What the clip search multiplies ranges with; the full range comes first and wins ties."""
        return SHRINK_FACTORS

    def _shrunk(self, low: Array, high: Array, factor: Array) -> tuple[Array, Array]:
        """Return the smaller range: around zero, or around its middle where zero has no code of its own."""
        if self.offset_format is None:
            return low * factor, high * factor
        cut = (high / 2 - low / 2) * (1 - factor)
        return low + cut, high - cut

    def _extremes(self, weight: torch.Tensor, cut: Grid) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the ends of each tile's range, float32 ``[bands, groups]``; zero inside unless zero points float."""
        compiled = weight.numel() >= COMPILED_FROM and weight.device.type == "cpu"
        low, high = extremes(weight, cut, self.name, compiled=compiled)
        return (low, high) if self.offset_format is not None else (low.clamp_(max=0.0), high.clamp_(min=0.0))

    def _snap(self, tile: torch.Tensor, width: int, affine: Affine) -> torch.Tensor:
        """Return the representable values at scale 1, float32 ``[rows, groups, width]``; 0 where the scale is 0."""
        import torch

        scale, zero_point, offset, _ = affine
        exact = grouped(tile.to(torch.float32), width, "edge")
        shifted = exact if offset is None else exact - offset
        return self.element.snap_(shifted / (scale + (scale == 0)), zero_point)


def are_many(ends: Array) -> bool:
    """Return whether compiled rules serve the ends of so many groups: tensors on the CPU."""
    return not isinstance(ends, np.ndarray) and ends.device.type == "cpu" and ends.numel() * 32 >= COMPILED_FROM


def default_scale_format(granularity: Granularity) -> ScaleFormat:
    """Return float16 for groups and float32 for anything coarser.

    Groups are many, so their scales weigh; coarse scales are few, and a float16 scale of ``absmax / 448`` of a layer
    with small weights is subnormal, which costs more accuracy than two bytes a channel are worth.
    """
    return FP16 if isinstance(granularity, PerGroup) else FP32

"""Fixed codebooks of 16 values with a scale for each block, as in bitsandbytes, and codebooks that are learned.

    value[r, c] = scales[r, g] * levels[codes[r, c]],     scale = largest magnitude of the block

NF4 (QLoRA, arXiv 2305.14314) has the quantiles of a normal distribution as levels, FP4 a float with two bits of
exponent and one of mantissa whose least level is 1/192.  ``-dq`` quantizes the scales too (``DoubleScheme``).  Blocks
lie along a row and a row may end in a shorter one; bitsandbytes counts them through the flattened tensor, which is the
same where the block divides the row.  Our even columns are low nibbles, those of bitsandbytes high ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from workbench.errors import SchemeError, nearest
from workbench.numerics.formats.kmeans import parse as parse_kmeans
from workbench.numerics.formats.scaled import ScaledScheme
from workbench.numerics.formats.table_element import TableElement
from workbench.numerics.granularity import Grid, PerGroup, grid
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.scale_format import FP32, scale_format
from workbench.numerics.scheme import Parameters, Scheme

if TYPE_CHECKING:
    import torch

NF4 = TableElement(
    "nf4",
    (
        -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
        -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
        0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
    ),
)  # fmt: skip

_FP4_TWELFTHS = (0.0, 0.0625, 8.0, 12.0, 4.0, 6.0, 2.0, 3.0)
FP4_BNB = TableElement("fp4-bnb", tuple(sign * level / 12 for sign in (1.0, -1.0) for level in _FP4_TWELFTHS))

ELEMENTS = (NF4, FP4_BNB)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodebookScheme(ScaledScheme):
    """A fixed codebook with one scale for each block of a row: ``nf4-b64``."""

    family: ClassVar[str] = "codebook"
    granularity: PerGroup

    @property
    def name(self) -> str:
        """``nf4-b64``, or ``nf4-b64-sfp16`` where scales are not float32."""
        suffix = "" if self.scale_format == FP32 else f"-s{self.scale_format.name}"
        return f"{self.element.name}-b{self.granularity.size}{suffix}"


_BLOCK = 256


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DoubleParameters(Parameters):
    """``scale = dynamic_map[code] * largest[entry // 256] + mean``, entries counted row by row.

    ``code`` uint8 ``[rows, groups]``, ``largest`` float32 ``[blocks of 256 entries]``, ``mean`` float32 ``[1]``.
    """

    code: torch.Tensor
    largest: torch.Tensor
    mean: torch.Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubleScheme(CodebookScheme):
    """Scales, less their mean, are stored in 8 bits of bitsandbytes' dynamic map, in blocks of 256: ``nf4-b64-dq``.

    Unlike bitsandbytes, weights are rounded with the scales that will be decoded.  One mean serves the whole matrix, so
    fit once and then round by columns.
    """

    @property
    def name(self) -> str:
        return f"{self.element.name}-b{self.granularity.size}-dq"

    @property
    def rows_apart(self) -> bool:
        return False  # which share the mean of the scales

    def _scale_bits(self, entries: int) -> int:
        return 8 * entries + 32 * -(-entries // _BLOCK) + 32

    def fit(
        self, weight: torch.Tensor, importance: torch.Tensor | None = None, *, clip_search: bool = False
    ) -> Parameters:
        first = super(DoubleScheme, self).fit(weight, importance, clip_search=clip_search)
        cut = grid(self.granularity, (weight.shape[0], weight.shape[1]))
        code, largest, mean = _compressed(cut.stored(first.scale).reshape(-1))
        scale = _expanded(code, largest, mean).reshape(cut.rows, cut.groups)
        return DoubleParameters(
            scale=scale, zero_point=None, width=first.width, code=code.reshape(scale.shape), largest=largest, mean=mean
        )

    def fit_range(self, low: float, high: float) -> Parameters:
        """Return one scale, which is the mean of all; see the contract."""
        import torch

        first = super(DoubleScheme, self).fit_range(low, high)
        code = torch.full((1, 1), int(dynamic_map().searchsorted(0.0)), dtype=torch.uint8)
        return DoubleParameters(
            scale=first.scale, zero_point=None, width=first.width,
            code=code, largest=torch.zeros(1), mean=first.scale.reshape(1),
        )  # fmt: skip

    def _scale_arrays(self, parameters: Parameters, cut: Grid) -> dict[str, np.ndarray]:
        assert isinstance(parameters, DoubleParameters)
        blocks = -(-cut.rows * cut.groups // _BLOCK)
        return {
            "scales": cut.stored(parameters.code).cpu().numpy(),
            "scales_largest": parameters.largest.expand(blocks).contiguous().cpu().numpy(),
            "scales_mean": parameters.mean.cpu().numpy(),
        }

    def _loaded_scales(self, stored: QuantizedTensor) -> np.ndarray:
        import torch

        names = ("scales", "scales_largest", "scales_mean")
        code, largest, mean = (torch.from_numpy(stored.arrays[name]) for name in names)
        scales: np.ndarray = _expanded(code.reshape(-1), largest, mean).numpy()
        return scales.reshape(stored.arrays["scales"].shape)


def dynamic_map() -> np.ndarray:
    """Return bitsandbytes' signed 8-bit dynamic map (arXiv 1511.04561), ascending, float32 ``[256]``."""
    levels = [0.0, 1.0]
    for exponent in range(7):
        bounds = _evenly(2**exponent + 1)
        middles = (bounds[1:] + bounds[:-1]) / np.float32(2)
        power = np.float32(10.0 ** (exponent - 6))
        levels += [*(power * middles), *(-power * middles)]
    return np.sort(np.array(levels, np.float32))


def _evenly(count: int) -> np.ndarray:
    """Return ``count`` numbers from 0.1 to 1 in float32, from either end to the middle, as torch.linspace does."""
    first, last = np.float32(0.1), np.float32(1.0)
    step = (last - first) / np.float32(count - 1)
    index = np.arange(count, dtype=np.float64)
    return np.where(index < count // 2, first + step * index, last - step * index[::-1]).astype(np.float32)


def _compressed(scales: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return codes uint8 ``[n]``, the largest magnitude of each block of 256 and the mean of positive ``scales``."""
    import torch

    mean = scales.double().mean().float().reshape(1) if scales.numel() else scales.new_zeros(1)
    centred = torch.nn.functional.pad(scales - mean, (0, -scales.numel() % _BLOCK)).reshape(-1, _BLOCK)
    largest = centred.abs().amax(dim=1)
    levels = torch.from_numpy(dynamic_map()).to(scales.device)
    middles = (levels[1:] + levels[:-1]) / 2
    code = torch.bucketize(centred / (largest + (largest == 0)).unsqueeze(1), middles)
    return code.to(torch.uint8).reshape(-1)[: scales.numel()], largest, mean


def _expanded(code: torch.Tensor, largest: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    """Return the scales, float32 ``[n]``, kept finite."""
    import torch

    levels = torch.from_numpy(dynamic_map()).to(code.device)
    spread = largest.repeat_interleave(_BLOCK)[: code.numel()]
    scales = levels.take(code.to(torch.int64)).mul_(spread).add_(mean)
    return scales.clamp_(-torch.finfo(torch.float32).max, torch.finfo(torch.float32).max)


_OPTIONS = re.compile(r"(?:-b(?P<size>\d{1,9}))?(?:-(?P<dq>dq)|-s(?P<scale>fp16|bf16|fp32))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodebookFamily:
    """``<nf4|fp4-bnb>[-b<N>][-dq|-sfp16|-sbf16|-sfp32]`` and ``kmeans<2|3|4>...``."""

    name: str
    title: str
    elements: tuple[TableElement, ...]
    examples: tuple[str, ...]

    def parse(self, name: str) -> Scheme | None:
        """Return the scheme called ``name`` (lower case), or None if it is of another family."""
        for element in self.elements:
            if name == element.name or name.startswith(element.name + "-"):
                return self._parse_options(name, element)
        return parse_kmeans(name, self.examples)

    def _parse_options(self, name: str, element: TableElement) -> Scheme:
        match = _OPTIONS.fullmatch(name[len(element.name) :])
        if match is None:
            raise SchemeError(
                f"{name!r} is not understood; expected {element.name}[-b<N>][-dq|-sfp16|-sbf16|-sfp32]"
                f"{nearest(name, self.examples)}"
            )
        block = PerGroup(int(match["size"] or 64))
        if match["dq"]:
            return DoubleScheme(element=element, granularity=block, scale_format=FP32)
        stored = scale_format(match["scale"] or "fp32")
        assert stored is not None
        return CodebookScheme(element=element, granularity=block, scale_format=stored)


FAMILY = CodebookFamily(
    name="codebook", title="Codebooks", elements=ELEMENTS,
    examples=(
        "nf4-b64", "nf4-b64-dq", "fp4-bnb-b64", "fp4-bnb-b64-dq", "kmeans2-channel", "kmeans3-channel",
        "kmeans4-channel", "kmeans3-g256", "kmeans4-g256",
    ),
)  # fmt: skip

"""The block formats of GGUF files (llama.cpp): Q4_0 to Q8_0, the K-quants, IQ4_NL and IQ4_XS, MXFP4, TQ1_0 and TQ2_0.

    value[r, c] = scale[r, g] * level[code[r, c]] - minimum[r, g]

``scale`` and ``minimum`` of a group (16, 32 or 256 columns) are float32 products of what the block's header stores: a
float16 unit times a 4- to 8-bit sub-block scale in the K-quants.  What is stored is ``blocks`` uint8 ``[rows, bytes]``,
exactly the bytes of the tensor in a GGUF file.  The sizes and bit layouts are data in :mod:`gguf_blocks`.

Rows whose width is not a multiple of the block (32 or 256): a scheme fills the last block up with zeros, counts them in
``bits`` and drops them again when decoding.  llama.cpp itself stores no such row; :meth:`GgufScheme.fallback` names the
format that it takes instead.

Odd blocks.  All zero: scale 0, decoded to -0 where llama.cpp gives such a block a negative zero as its scale.
Constant: exact up to the rounding of the float16 scale or minimum.  Values so small that the float16 scale vanishes
decode to 0.  Values beyond the reach of a float16 scale saturate.  NaN and infinity raise NonFiniteError.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from workbench.errors import SchemeError, nearest
from workbench.numerics.bands import row_tiles, tile_elements
from workbench.numerics.formats.cast import FAMILY as CASTS
from workbench.numerics.formats.families import ListedFamily
from workbench.numerics.formats.gguf.blocks import BLOCKS, Block
from workbench.numerics.granularity import Granularity, PerGroup, grouped
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.scheme import BlockParameters, Parameters, Scheme

if TYPE_CHECKING:
    import torch

_ARRAYS = ("scale", "minimum", "origin", "factor", "header")
_COMPILED_FROM = 1 << 14  # fewer elements are rounded faster by plain tensor operations


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GgufParameters(BlockParameters):
    """Block headers and what follows from them: ``value = scale * level[code] - minimum`` (``zero_point`` is None).

    ``scale`` and ``minimum`` (None for 0) are float32 ``[rows, groups]``, ``width`` the columns of a group.  ``header``
    is uint8 ``[rows, blocks, bytes]``; None for columns that cut a block, which can be rounded but not encoded.
    ``block`` is the columns of a block and ``owner`` the name of the scheme that fitted.
    ``origin`` and ``factor``, float32 ``[rows, groups]``, make a code of a weight, ``(weight - origin) * factor``: the
    scale and minimum before they were rounded to float16, which the reference encoders use.
    """

    minimum: torch.Tensor | None = None
    origin: torch.Tensor | None = None
    factor: torch.Tensor | None = None
    header: torch.Tensor | None = None
    owner: str

    def columns(self, start: int, stop: int) -> GgufParameters:
        first, last = start // self.width, -(-stop // self.width)
        parts: dict[str, Any] = {name: entries[:, first:last] for name, entries in self.arrays().items()}
        aligned = start % self.block == 0 and last * self.width % self.block == 0
        blocks = slice(start // self.block, -(-stop // self.block))
        header = self.header[:, blocks] if aligned and self.header is not None else None
        return replace(self, **{**parts, "header": header})

    def joined(self, others: Sequence[Parameters]) -> GgufParameters:
        import torch

        def join(name: str) -> Any:
            entries = [getattr(part, name) for part in (self, *others)]
            return None if any(entry is None for entry in entries) else torch.cat(entries, dim=1)

        return replace(self, **{name: join(name) for name in _ARRAYS})

    def arrays(self) -> dict[str, torch.Tensor]:
        """Return the fields that are tensors, by name."""
        entries = {name: getattr(self, name) for name in _ARRAYS}
        return {name: entry for name, entry in entries.items() if entry is not None}


@dataclass(frozen=True, slots=True)
class GgufScheme(Scheme):
    """One block format of GGUF."""

    family: ClassVar[str] = "gguf"
    block: Block

    @property
    def name(self) -> str:
        return self.block.name

    @property
    def ggml_type(self) -> str:
        """The member of ``GGMLQuantizationType``, as an exporter needs it: ``Q4_0``, ``MXFP4``, ..."""
        return self.block.ggml

    @property
    def granularity(self) -> Granularity:
        """One block: the columns whose parameters are found together (a K-quant's groups are narrower)."""
        return PerGroup(self.block.width)

    @property
    def rows_apart(self) -> bool:
        return True

    def fallback(self, shape: tuple[int, int]) -> Scheme:
        """Return the scheme that llama.cpp's quantizer takes for a matrix of ``shape``: this one if its rows fit.

        K-quants and ternary formats fall back to a format of blocks of 32 and about the same size, those to fp16.
        """
        if shape[1] % self.block.width == 0:
            return self
        other = FAMILY.parse(self.block.fallback)
        if other is not None:
            return other.fallback(shape)
        cast = CASTS.parse(self.block.fallback)
        assert cast is not None
        return cast

    def bits(self, shape: tuple[int, int]) -> int:
        """Return the bits of whole blocks: a row's last block is stored, and counted, in full."""
        rows, columns = shape
        return 8 * self.block.nbytes * rows * -(-columns // self.block.width)

    def values(self) -> np.ndarray:
        """Return the levels at scale 1, ascending, float32 (MXFP4's are doubled, its scale halved, as in ggml)."""
        return self.block.used_levels()

    def grids(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return the values of blocks that span ``[low, high]``, ascending, float64 ``[n, levels]``.

        For drawing: the scale is taken as exact and is that of the full range, though some fits choose a smaller one.
        """
        levels = self.values().astype(np.float64)
        low, high = np.minimum(low, 0.0)[:, None], np.maximum(high, 0.0)[:, None]
        if levels[0] == 0:
            return np.asarray(low + (high - low) / levels[-1] * levels)
        farther = np.where(-low > high, low, high)
        scale = np.abs(farther) / -levels[0] if self.block.rounding == "away" else farther / levels[0]
        return np.sort(scale * levels, axis=1)

    def fit(
        self, weight: torch.Tensor, importance: torch.Tensor | None = None, *, clip_search: bool = False
    ) -> GgufParameters:
        """Choose the headers of all blocks.

        Plain: llama.cpp's own choice without an importance matrix.  With ``importance`` (usually one value a column):
        its choice with one, for the formats where it uses one (Q8_0, MXFP4 and the ternary ones ignore it).
        ``clip_search`` keeps, block by block, whichever of several candidates, the plain one among them, has the least
        squared error weighted by ``importance`` alone.  Raises NonFiniteError.
        """
        self.matrix_shape(weight)
        from workbench.numerics.formats.gguf import codec as gguf_codec

        fitted = gguf_codec.fit(self.block, self.name, weight.detach(), importance, clip_search=clip_search)
        import torch

        tensors: dict[str, Any] = {name: torch.from_numpy(entry).to(weight.device) for name, entry in fitted.items()}
        width, block = self.block.group, self.block.width
        return GgufParameters(zero_point=None, width=width, block=block, owner=self.name, **tensors)

    def round(self, weight: torch.Tensor, parameters: Parameters) -> torch.Tensor:
        """Return what decoding the encoded ``weight`` gives, float32, bit for bit; any columns of one group or more."""
        known = self._own(parameters)
        rows, columns = self.matrix_shape(weight)
        weight = weight.detach()
        if weight.device.type == "cpu" and rows * columns >= _COMPILED_FROM and self._whole(known, rows, columns):
            from workbench.numerics.formats.gguf import codec as gguf_codec

            return gguf_codec.rounded(self.block, self.name, weight, _fitted(known))
        return self.round_plainly(weight, known)

    def round_plainly(self, weight: torch.Tensor, known: GgufParameters) -> torch.Tensor:
        """Return ``round`` in readable tensor operations on any device: the specification of the compiled kernels."""
        import torch

        rows, columns = weight.shape
        out = torch.empty(rows, columns, dtype=torch.float32, device=weight.device)
        for part in row_tiles(rows, columns, elements=tile_elements(weight.device)):
            x = grouped(weight[part].to(torch.float32), known.width)
            groups = slice(0, x.shape[1])
            scale = known.scale[part, groups].unsqueeze(-1)
            value = self._levels(x, part, groups, known).mul_(scale)
            if known.minimum is not None:
                value = value.sub_(known.minimum[part, groups].unsqueeze(-1))
            out[part] = value.flatten(1)[:, :columns]
        return out

    def encode(self, weight: torch.Tensor, parameters: Parameters) -> QuantizedTensor:
        """Return ``blocks`` uint8 ``[rows, bytes]`` as a GGUF file holds them."""
        known = self._own(parameters)
        rows, columns = self.matrix_shape(weight)
        count = -(-columns // self.block.width)
        if known.header is None or not self._whole(known, rows, columns):
            present = "none" if known.header is None else f"{known.header.shape[0]} x {known.header.shape[1]}"
            raise SchemeError(
                f"a {rows} x {columns} matrix in {self.name} needs the headers of {rows} x {count} blocks; the "
                f"parameters hold {present}. Fit whole blocks of {self.block.width} columns"
            )
        from workbench.numerics.formats.gguf import codec as gguf_codec

        blocks = gguf_codec.encode(self.block, self.name, weight.detach(), _fitted(known))
        return QuantizedTensor(scheme=self.name, shape=(rows, columns), arrays={"blocks": blocks})

    def decode(self, stored: QuantizedTensor) -> torch.Tensor:
        """Return the float32 matrix; SchemeError if the bytes do not have the length that the shape needs."""
        from workbench.numerics.formats.gguf import codec as gguf_codec

        blocks = stored.arrays["blocks"]
        expected = self.bits(stored.shape) // 8
        if blocks.dtype != np.uint8 or blocks.size != expected:
            raise SchemeError(
                f"a {stored.shape[0]} x {stored.shape[1]} matrix in {self.name} takes {expected} bytes; "
                f"got {blocks.size} of {blocks.dtype}"
            )
        rows, columns = stored.shape
        return gguf_codec.decode(self.block, blocks.reshape(rows, self.bits((1, columns)) // 8), columns)

    def _whole(self, known: GgufParameters, rows: int, columns: int) -> bool:
        """Whether the parameters have a header for each block of the matrix."""
        count = -(-columns // self.block.width)
        return known.header is not None and tuple(known.header.shape[:2]) == (rows, count)

    def _own(self, parameters: Parameters) -> GgufParameters:
        if not isinstance(parameters, GgufParameters) or parameters.owner != self.name:
            raise SchemeError(f"{self.name} rounds with the parameters of its own fit; got those of another scheme")
        return parameters

    def _levels(self, x: torch.Tensor, part: slice, groups: slice, known: GgufParameters) -> torch.Tensor:
        """Return ``level[code]`` of ``x`` float32 ``[rows, groups, width]``: the specification of every encoder."""
        import torch

        def entry(entries: torch.Tensor | None) -> torch.Tensor | float:
            return 0.0 if entries is None else entries[part, groups].unsqueeze(-1)

        first, last = self.block.codes
        zero = -self.block.levels[0]
        if self.block.rounding == "even":
            scale = known.scale[part, groups].unsqueeze(-1)
            code = ((x + entry(known.minimum)) / (scale + (scale == 0))).clamp_(-256, 256).round_().add_(zero)
            return torch.where(scale == 0, 0.0, code.clamp_(0, last).sub_(zero))
        t = (x - entry(known.origin)) * entry(known.factor)
        if self.block.rounding == "up":
            return (t + (zero + 0.5)).clamp_(0, last).trunc_().sub_(zero)
        if self.block.rounding == "away":
            size = t.abs().clamp_(max=last - zero)
            whole = size.floor()
            whole += (size - whole) >= 0.5
            return torch.where(t > 0, whole, -whole).add_(0.0)  # -0 becomes +0
        edges = torch.from_numpy(self.block.ranked()[0]).to(x.device)
        levels = torch.from_numpy(self.values()).to(x.device)
        return levels[torch.bucketize(t, edges, right=True)]


def _fitted(known: GgufParameters) -> dict[str, np.ndarray]:
    return {name: entries.detach().cpu().contiguous().numpy() for name, entries in known.arrays().items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufFamily(ListedFamily[GgufScheme]):
    """The schemes by name: exactly the names of the block formats."""

    def ggml(self, name: str) -> GgufScheme:
        """Return the scheme of a GGML type (``Q4_K``); SchemeError for one that is not supported."""
        for scheme in self.schemes:
            if scheme.ggml_type == name:
                return scheme
        supported = [scheme.ggml_type for scheme in self.schemes]
        raise SchemeError(f"the GGML type {name} is not supported{nearest(name, supported)}")


FAMILY = GgufFamily(name="gguf", title="GGUF blocks", schemes=tuple(GgufScheme(block) for block in BLOCKS))

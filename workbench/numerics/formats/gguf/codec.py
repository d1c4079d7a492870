"""Between torch matrices and the compiled kernels: bands of rows, padding, threads.

Imported when a GGUF scheme first computes, because it brings numba.  Nothing here keeps a float32 copy of a whole
tensor: bands of about a megabyte are converted, padded with zeros to whole blocks and handed to a kernel, several at a
time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import NonFiniteError
from workbench.numerics.bands import in_parallel, row_tiles
from workbench.numerics.formats.compiled import output_memory
from workbench.numerics.formats.gguf import codes as gguf_codes
from workbench.numerics.formats.gguf import fit as gguf_fit
from workbench.numerics.formats.gguf import headers as gguf_headers
from workbench.numerics.formats.gguf import pack as gguf_pack
from workbench.numerics.formats.gguf.blocks import BLOCKS, Block

if TYPE_CHECKING:
    import torch

Array = Any


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """A block format's constants in the shape that kernels take."""

    levels: Array
    edges: Array
    ranked: Array
    places: Array
    factors: Array
    segments: Array
    fields: Array
    stored_at: Array
    header_at: Array
    fifth: int


@cache
def tables(name: str) -> Tables:
    """Return the constants of the block format called ``name``."""
    block = next(block for block in BLOCKS if block.name == name)
    edges, ranked = block.ranked() if block.rounding == "table" else (np.zeros(0, np.float32), np.zeros(0, np.uint8))
    places, factors = gguf_pack.unpack_runs(block)
    sizes = [size for _, size in block.fields]
    return Tables(
        levels=np.array(block.levels, np.float32), edges=edges, ranked=ranked, places=places, factors=factors,
        segments=gguf_pack.pack_segments(block), fields=np.array(block.fields, np.int64),
        stored_at=np.array([offset for offset, _ in block.fields], np.int64),
        header_at=np.cumsum([0, *sizes[:-1]], dtype=np.int64),
        fifth=next((plane.offset for plane in block.planes if plane.stride == 1), -1),
    )  # fmt: skip


@cache
def _patterns(kind: str) -> Array:
    return gguf_headers.e8m0_table() if kind == "e8m0" else gguf_headers.half_table()


def blocks_in(block: Block, columns: int) -> int:
    """Return the blocks that a row of ``columns`` takes, the last one filled up with zeros."""
    return -(-columns // block.width)


def padded(block: Block, tile: torch.Tensor) -> Array:
    """Return a band of a matrix as float32 blocks ``[n, width]``, without a copy where it has that form already."""
    import torch

    tile = tile.to(device="cpu", dtype=torch.float32)
    missing = -tile.shape[1] % block.width
    if missing:
        tile = torch.nn.functional.pad(tile, (0, missing))
    return tile.contiguous().numpy().reshape(-1, block.width)


Fitted = dict[str, Array]
"""Those fields of GgufParameters that are arrays and that the format has, by name; numpy, ``[rows, ...]``."""


def fit(block: Block, name: str, weight: torch.Tensor, importance: torch.Tensor | None, *, clip_search: bool) -> Fitted:
    """Choose the headers of ``weight``; raises NonFiniteError."""
    rows, columns = weight.shape
    count = blocks_in(block, columns)
    fitted = _allocate(block, rows, count)
    spread = None if importance is None else importance.detach().expand(weight.shape)

    def band(part: slice) -> None:
        x = padded(block, weight[part])
        peak, bad = gguf_fit.peaks(x)
        if bad:
            raise NonFiniteError(
                f"{bad} blocks in rows {part.start} to {part.stop} of a {rows} x {columns} matrix hold values that are "
                f"NaN, infinite or beyond float32; {name} stores finite values only"
            )
        weights = None if spread is None else padded(block, spread[part])
        _store(block, fitted, part, _choose(block, x, peak, weights, count, clip_search))

    in_parallel(band, row_tiles(rows, columns))
    return fitted


def _allocate(block: Block, rows: int, count: int) -> Fitted:
    used = {
        "scale": True, "minimum": block.header in ("half_minimum", "k2", "k4"), "origin": block.fitting == "bounds",
        "factor": block.rounding != "even",
    }  # fmt: skip
    entries = {name: np.zeros((rows, count * block.groups), np.float32) for name, needed in used.items() if needed}
    return {"header": np.zeros((rows, count, block.header_octets), np.uint8), **entries}


def _store(block: Block, fitted: Fitted, part: slice, best: gguf_fit.Fit) -> None:
    scale, minimum = effective(block, best.header)
    band = {"header": best.header, "scale": scale, "minimum": minimum, "origin": best.origin, "factor": best.factor}
    for name, entries in fitted.items():
        entries[part] = band[name].reshape(entries[part].shape)


def _choose(
    block: Block, x: Array, peak: Array, weights: Array | None, row_blocks: int, clip_search: bool
) -> gguf_fit.Fit:
    if clip_search:
        return _least_error(block, x, peak, np.ones_like(x) if weights is None else weights)
    if weights is None or not gguf_fit.searches(block):
        return gguf_fit.plain(block, x, peak)
    return gguf_fit.searched(block, x, gguf_fit.imatrix_weights(block, x, weights, row_blocks))


def _least_error(block: Block, x: Array, peak: Array, weights: Array) -> gguf_fit.Fit:
    """Return, block by block, the candidate with the least weighted squared error."""
    levels = tables(block.name).levels
    best, least = None, np.full(len(x), np.inf)
    for other in gguf_fit.candidates(block, x, peak, weights):
        scale, minimum = effective(block, other.header)
        codes = to_codes(block, x, scale, minimum, other.origin, other.factor)
        error = np.empty(len(x), np.float64)
        gguf_codes.block_errors(x, weights, codes, levels, scale, minimum, error)
        better = error < least
        least = np.where(better, error, least)
        best = other if best is None else _mixed(better, other, best)
    assert best is not None
    return best


def _mixed(chosen: Array, first: gguf_fit.Fit, second: gguf_fit.Fit) -> gguf_fit.Fit:
    pairs = (first.origin, second.origin), (first.factor, second.factor)
    origin, factor = (
        None if a is None or b is None else np.where(chosen.reshape(-1, *(1,) * (a.ndim - 1)), a, b) for a, b in pairs
    )
    header = np.where(chosen[:, None], first.header, second.header)
    return gguf_fit.Fit(header=header, origin=origin, factor=factor)


def effective(block: Block, header: Array, at: Array | None = None) -> tuple[Array, Array]:
    """Return scale and minimum, float32 ``[n, groups]``, of headers (or whole blocks: ``at`` the stored offsets)."""
    scale = np.empty((len(header), block.groups), np.float32)
    minimum = np.empty_like(scale)
    reader = gguf_headers.READERS[block.header]
    reader(header, tables(block.name).header_at if at is None else at, _patterns(block.header), scale, minimum)
    return scale, minimum


def to_codes(block: Block, x: Array, scale: Array, minimum: Array, origin: Array | None, factor: Array | None) -> Array:
    """Return the codes, uint8 ``[n, width]``; scale, minimum ``[n, groups]``, origin ``[n]``, factor
    ``[n]`` or (IQ4_XS) ``[n, groups]``."""
    codes = np.empty(x.shape, np.uint8)
    first, last = block.codes
    zero = -block.levels[0]
    if block.rounding == "even":
        gguf_codes.codes_even(x, -minimum, scale, np.float32(zero), np.float32(last), codes)
        return codes
    assert factor is not None
    factor = factor.reshape(-1, 1)
    if block.rounding == "up":
        start = np.zeros_like(factor) if origin is None else origin.reshape(-1, 1)
        gguf_codes.codes_up(x, start, factor, np.float32(zero + 0.5), np.float32(last), codes)
    elif block.rounding == "away" and last - zero == 1:
        gguf_codes.codes_ternary(x, factor, codes)
    elif block.rounding == "away":
        gguf_codes.codes_away(x, factor, int(zero), np.float32(last - zero), codes)
    else:
        constants = tables(block.name)
        whole, by_group = x.reshape(-1, block.group), codes.reshape(-1, block.group)
        gguf_codes.codes_table(whole, factor, constants.edges, constants.ranked, by_group)
    return codes


def to_values(block: Block, codes: Array, scale: Array, minimum: Array, out: Array) -> None:
    """Write ``scale * level - minimum`` of codes into ``out``, float32 ``[n, width]``."""
    if block.evenly_spaced:
        gguf_codes.values_even(codes, np.float32(block.levels[0]), scale, minimum, out)
    else:
        shape = (-1, block.group)
        entries = scale.reshape(-1, 1), minimum.reshape(-1, 1)
        gguf_codes.values_table(codes.reshape(shape), tables(block.name).levels, *entries, out.reshape(shape))


def _coded(block: Block, name: str, weight: torch.Tensor, known: Fitted, part: slice) -> tuple[Array, Array, Array]:
    """Return codes ``[n, width]``, scale and minimum ``[n, groups]`` of a band of rows."""
    x = padded(block, weight[part])
    if gguf_codes.nonfinite(x.view(np.int32)):
        rows, columns = weight.shape
        raise NonFiniteError(
            f"rows {part.start} to {part.stop} of a {rows} x {columns} matrix hold NaN or infinite values; "
            f"{name} has no code for them"
        )
    band = {name: entries[part] for name, entries in known.items()}
    scale = band["scale"].reshape(-1, block.groups)
    minimum = band["minimum"].reshape(-1, block.groups) if "minimum" in band else np.zeros_like(scale)
    return to_codes(block, x, scale, minimum, band.get("origin"), band.get("factor")), scale, minimum


def encode(block: Block, name: str, weight: torch.Tensor, known: Fitted) -> Array:
    """Return the packed rows, uint8 ``[rows, blocks * bytes]``; raises NonFiniteError for NaN or infinity."""
    rows, columns = weight.shape
    out = np.empty((rows, blocks_in(block, columns) * block.nbytes), np.uint8)

    def band(part: slice) -> None:
        codes, _, _ = _coded(block, name, weight, known, part)
        header = known["header"][part].reshape(-1, block.header_octets)
        pack(block, codes, header, out[part].reshape(-1, block.nbytes))

    in_parallel(band, row_tiles(rows, columns))
    return out


def pack(block: Block, codes: Array, header: Array, out: Array) -> None:
    """Write whole blocks, uint8 ``[n, bytes]``, of codes ``[n, width]`` and headers.

    ``pack_blocks`` could write the simple layouts too, but the whole encoding then takes longer: 1.8 times in Q4_0, 1.3
    in TQ2_0, 1.2 in IQ4_NL and MXFP4.
    """
    constants, words, plane = tables(block.name), codes.view(np.uint64), block.planes[0] if block.planes else None
    if plane is not None and len(block.planes) == 1 and (plane.bits, plane.stride, plane.shift) == (2, 32, 0):
        gguf_codes.pack_quarters(codes, header, constants.fields, plane.offset, out)
    elif plane is None or block.width != 32:
        gguf_codes.pack_blocks(codes, words, header, constants.fields, constants.segments, out)
    elif constants.fifth >= 0:
        gguf_codes.pack_fifths(words, header, constants.fifth, plane.offset, out)
    elif plane.bits == 8:
        gguf_codes.pack_octets(codes, header, plane.offset, block.flip, out)
    else:
        gguf_codes.pack_nibbles(words, header, plane.offset, out)


def rounded(block: Block, name: str, weight: torch.Tensor, known: Fitted) -> torch.Tensor:
    """Return what decoding ``encode(...)`` gives, without packing; float32 on the CPU."""

    def band(part: slice, out: Array) -> None:
        to_values(block, *_coded(block, name, weight, known, part), out)

    return _by_bands(block, int(weight.shape[0]), int(weight.shape[1]), band)


def decode(block: Block, stored: Array, columns: int) -> torch.Tensor:
    """Return the float32 matrix of packed rows ``[rows, blocks * bytes]``."""

    def band(part: slice, out: Array) -> None:
        _unpack(block, np.ascontiguousarray(stored[part]).reshape(-1, block.nbytes), out)

    return _by_bands(block, len(stored), columns, band)


def _by_bands(block: Block, rows: int, columns: int, write: Callable[[slice, Array], None]) -> torch.Tensor:
    """Return a float32 matrix that ``write`` fills band by band, seen as blocks ``[n, width]``."""
    import torch

    count = blocks_in(block, columns)
    out = output_memory.uninitialised(rows, columns)
    whole = columns == count * block.width

    def band(part: slice) -> None:
        if whole:
            write(part, out[part].reshape(-1, block.width))
            return
        wide = np.empty((part.stop - part.start, count * block.width), np.float32)
        write(part, wide.reshape(-1, block.width))
        out[part] = wide[:, :columns]

    in_parallel(band, row_tiles(rows, columns))
    return torch.from_numpy(out)


def _unpack(block: Block, raw: Array, out: Array) -> None:
    constants = tables(block.name)
    scale, minimum = effective(block, raw, constants.stored_at)
    first = np.float32(block.levels[0])
    if block.rounding == "table":
        at = block.planes[0].offset
        if block.groups > 1:  # codes follow codes: 16 bytes for each group
            raw, at = np.ascontiguousarray(raw[:, at:]).reshape(-1, block.group // 2), 0
            out, scale, minimum = out.reshape(-1, block.group), scale.reshape(-1, 1), minimum.reshape(-1, 1)
        gguf_pack.unpack_table(raw, at, constants.levels, scale, minimum, out)
    elif not block.planes:
        gguf_pack.unpack_ternary(raw, first, scale, minimum, out)
    elif constants.fifth >= 0:
        gguf_pack.unpack_fifth(raw, block.planes[0].offset, constants.fifth, first, scale, minimum, out)
    else:
        unpack = gguf_pack.unpack_single if len(block.planes) == 1 else gguf_pack.unpack_double
        unpack(raw, constants.places, constants.factors, block.flip, first, scale, minimum, out)

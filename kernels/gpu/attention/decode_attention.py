"""Attention of one query against an INT8 or FP8 cache: ``out[h] = softmax(q[h] K[:, g]^T / sqrt(D)) V[:, g]``."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ...build.source import CudaSource
from ..contract import check_choice, check_multiple, check_tensor
from ..launch import CudaOp, Executor, Float, Int, Launch, Problem, ceil_div, drawn, nbytes

SIZES = (64, 128)
CODES = {torch.int8: "int8", torch.float8_e4m3fn: "e4m3"}
LEAST = 64
"""Tokens of a split, at least."""
SOURCE = CudaSource(
    file="decode_attention.cu",
    entries=(
        *(f"attend_{code}_{size}" for code in CODES.values() for size in SIZES), *(f"join_{size}" for size in SIZES)
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cache:
    """``keys`` and ``values`` are codes ``[tokens, G, D]``, int8 or float8_e4m3fn; ``key_scales`` and ``value_scales``
    float32 ``[tokens, G]``; value = scale * code."""

    keys: torch.Tensor
    values: torch.Tensor
    key_scales: torch.Tensor
    value_scales: torch.Tensor

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Return keys, values and their scales."""
        return self.keys, self.values, self.key_scales, self.value_scales

    def first(self, tokens: int | None) -> Cache:
        """Return the cache of the first ``tokens``."""
        keys, values, key_scales, value_scales = (tensor[:tokens] for tensor in self.tensors())
        return Cache(keys=keys, values=values, key_scales=key_scales, value_scales=value_scales)


def check_cache(query: torch.Tensor, cache: Cache, on: Executor) -> None:
    """Raise ArgumentError unless query and cache fit each other."""
    check_tensor("query", query, on, (torch.float16,), (None, None))
    heads, size = query.shape
    check_choice("D, the columns of query,", size, SIZES)
    check_tensor("keys", cache.keys, on, tuple(CODES), (None, None, size))
    tokens, groups, _ = cache.keys.shape
    check_multiple("the heads of query", heads, groups)
    check_tensor("values", cache.values, on, (cache.keys.dtype,), (tokens, groups, size))
    check_tensor("key_scales", cache.key_scales, on, (torch.float32,), (tokens, groups))
    check_tensor("value_scales", cache.value_scales, on, (torch.float32,), (tokens, groups))


def attend(query: torch.Tensor, cache: Cache, length: torch.Tensor | None = None, *, on: Executor) -> torch.Tensor:
    """Return float16 ``[H, D]`` for a float16 ``query`` ``[H, D]``; H is a multiple of G.

    ``length``, int32 ``[1]`` on the device, says how many of the cache's tokens are in use, at least 1 (None: all), so
    that a recorded graph serves a growing cache.  Raises ArgumentError.
    """
    check_cache(query, cache, on)
    if length is not None:
        check_tensor("length", length, on, (torch.int32,), (1,))
    heads, size = query.shape
    tokens, groups, _ = cache.keys.shape
    most = max(1, min(ceil_div(tokens, LEAST), ceil_div(8 * on.processors, heads)))
    per_split = ceil_div(tokens, most)
    splits = ceil_div(tokens, per_split)
    part = on.empty((heads, splits, size + 2), torch.float32)
    out = on.empty((heads, size), torch.float16)
    on.run(SOURCE, Launch(
        entry=f"attend_{CODES[cache.keys.dtype]}_{size}", grid=(heads, splits, 1), block=128,
        arguments=(query, cache.keys, cache.values, cache.key_scales, cache.value_scales, length, part,
                   Float(1 / math.sqrt(size)), Int(tokens), Int(groups), Int(per_split)),
    ))  # fmt: skip
    on.run(SOURCE, Launch(entry=f"join_{size}", grid=(heads, 1, 1), block=32, arguments=(part, out, Int(splits))))
    return out


def reference(query: torch.Tensor, cache: Cache, used: int | None = None) -> torch.Tensor:
    """Compute the same in float64 over the first ``used`` tokens."""
    cache = cache.first(used)
    repeat = query.shape[0] // cache.keys.shape[1]
    keys = (cache.keys.double() * cache.key_scales.double()[..., None]).repeat_interleave(repeat, 1)
    values = (cache.values.double() * cache.value_scales.double()[..., None]).repeat_interleave(repeat, 1)
    scores = torch.einsum("hd,thd->ht", query.double(), keys) / math.sqrt(query.shape[1])
    return torch.einsum("ht,thd->hd", scores.softmax(1), values)


def _coded(x: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    largest = 127.0 if dtype == torch.int8 else 448.0
    scale = x.abs().amax(2) / largest
    scaled = x / scale[..., None]
    return (scaled.round() if dtype == torch.int8 else scaled).to(dtype), scale


def prepare(
    on: Executor, seed: int, *, heads: int, groups: int, tokens: int, size: int, dtype: torch.dtype,
    used: int | None = None,
) -> Problem:  # fmt: skip
    """Draw a query and a cache; the query is large, so that a few tokens get most of the weight."""
    length = None if used is None else torch.full((1,), used, dtype=torch.int32, device=on.device)
    query = (drawn(on, seed, heads, size) * 3).half()
    keys, key_scales = _coded(drawn(on, seed + 1, tokens, groups, size), dtype)
    values, value_scales = _coded(drawn(on, seed + 2, tokens, groups, size), dtype)
    cache = Cache(keys=keys, values=values, key_scales=key_scales, value_scales=value_scales)
    return Problem(
        launch=lambda: (attend(query, cache, length, on=on),), reference=lambda: (reference(query, cache, used),),
        read=nbytes(query, keys, values, key_scales, value_scales), written=nbytes(query),
        operations=4 * heads * tokens * size,
    )  # fmt: skip


OP = CudaOp(
    name="decode attention", source=SOURCE, tolerance=2e-3, prepare=prepare,
    note="one query, INT8 or FP8 keys and values with a scale for each token and head, float16 result",
    variants=tuple(
        {"heads": h, "groups": g, "tokens": t, "size": d, "dtype": dtype}
        for dtype in CODES for h, g, t, d in ((1, 1, 1, 64), (4, 2, 67, 64), (6, 2, 203, 128))
    ) + ({"heads": 2, "groups": 1, "tokens": 300, "size": 64, "dtype": torch.int8, "used": 70},),
    sizes=tuple({"heads": 32, "groups": 8, "tokens": t, "size": 128, "dtype": dtype}
                for dtype in CODES for t in (1024, 8192, 65536)),
)  # fmt: skip

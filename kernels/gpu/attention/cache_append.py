"""One new token into a quantized cache: rotary position of query and key, codes with a scale for each head."""

from __future__ import annotations

import torch

from ...build.source import CudaSource
from ..contract import check_tensor, check_vectors
from ..launch import CudaOp, Executor, Int, Launch, Problem, drawn, nbytes
from ..quantize.norm_quantize import quantized_rows
from .decode_attention import CODES, SIZES, Cache, check_cache

SOURCE = CudaSource(
    file="cache_append.cu", entries=tuple(f"append_{code}_{size}" for code in CODES.values() for size in SIZES)
)


def rotations(tokens: int, size: int, base: float = 10000.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return cosine and sine, float32 ``[tokens, size / 2]``, of the rotary positions (Su et al., RoFormer, 2021)."""
    turns = base ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    angles = torch.arange(tokens, dtype=torch.float64)[:, None] * turns
    return angles.cos().float(), angles.sin().float()


def append(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, turns: tuple[torch.Tensor, torch.Tensor],
    length: torch.Tensor, cache: Cache, *, on: Executor,
) -> torch.Tensor:  # fmt: skip
    """Write key and value, float16 ``[G, D]``, into token ``length - 1`` of the cache; return the turned query.

    ``query`` is float16 ``[H, D]``; ``turns`` are cosine and sine, float32 ``[tokens, D / 2]``; ``length`` int32
    ``[1]`` on the device, from 1 to the tokens of the cache.  Raises ArgumentError.
    """
    check_cache(query, cache, on)
    heads, size = query.shape
    tokens, groups, _ = cache.keys.shape
    check_vectors(on, torch.float16, {"key": (key, (groups, size)), "value": (value, (groups, size))})
    half = tokens, size // 2
    check_vectors(on, torch.float32, {"cosine": (turns[0], half), "sine": (turns[1], half)})
    check_tensor("length", length, on, (torch.int32,), (1,))
    turned = on.empty((heads, size), torch.float16)
    on.run(SOURCE, Launch(
        entry=f"append_{CODES[cache.keys.dtype]}_{size}", grid=(heads + 2 * groups, 1, 1), block=32,
        arguments=(query, key, value, *turns, length, turned, *cache.tensors(), Int(heads), Int(groups), Int(tokens)),
    ))  # fmt: skip
    return turned


def turned(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Return ``x`` float32 ``[heads, D]`` rotated by one token's ``cosine`` and ``sine`` ``[D / 2]``."""
    first, second = x.chunk(2, 1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], 1)


def reference(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, turns: tuple[torch.Tensor, torch.Tensor],
    place: int, cache: Cache,
) -> tuple[torch.Tensor, Cache]:  # fmt: skip
    """Compute the turned query and a new cache with torch in float32, as the kernel does."""
    at = turns[0][place], turns[1][place]
    keys, values, key_scales, value_scales = (tensor.clone() for tensor in cache.tensors())
    keys[place], key_scales[place] = quantized_rows(turned(key.float(), *at), keys.dtype)
    values[place], value_scales[place] = quantized_rows(value.float(), keys.dtype)
    made = Cache(keys=keys, values=values, key_scales=key_scales, value_scales=value_scales)
    return turned(query.float(), *at).half(), made


def empty_cache(on: Executor, tokens: int, groups: int, size: int, dtype: torch.dtype) -> Cache:
    """Return a cache of zeros."""
    codes = [torch.zeros(tokens, groups, size, dtype=torch.uint8, device=on.device).view(dtype) for _ in range(2)]
    scales = [torch.zeros(tokens, groups, device=on.device) for _ in range(2)]
    return Cache(keys=codes[0], values=codes[1], key_scales=scales[0], value_scales=scales[1])


def prepare(on: Executor, seed: int, *, heads: int, groups: int, tokens: int, size: int, dtype: torch.dtype) -> Problem:
    """Draw a token for the last place; the first head of its key is zero."""
    query, key, value = (drawn(on, seed + i, h, size).half() for i, h in enumerate((heads, groups, groups)))
    key[0] = 0
    cosine, sine = rotations(tokens, size)
    turns = cosine.to(on.device), sine.to(on.device)
    length = torch.full((1,), tokens, dtype=torch.int32, device=on.device)
    cache, before = (empty_cache(on, tokens, groups, size, dtype) for _ in range(2))

    def launch() -> tuple[torch.Tensor, ...]:
        return (append(query, key, value, turns, length, cache, on=on), *_plain(cache))

    def expected() -> tuple[torch.Tensor, ...]:
        made, after = reference(query, key, value, turns, tokens - 1, before)
        return (made, *_plain(after))

    read = nbytes(query, key, value) + 4 * size
    return Problem(
        launch=launch, reference=expected, read=read, written=read, operations=6 * (heads + 2 * groups) * size
    )


def _plain(cache: Cache) -> tuple[torch.Tensor, ...]:
    return cache.keys.view(torch.uint8), cache.values.view(torch.uint8), cache.key_scales, cache.value_scales


OP = CudaOp(
    name="cache append", source=SOURCE, tolerance=0, prepare=prepare,
    note="rotary position and quantization of one token into an INT8 or FP8 cache",
    variants=tuple(
        {"heads": h, "groups": g, "tokens": t, "size": d, "dtype": dtype}
        for dtype in CODES for h, g, t, d in ((1, 1, 1, 64), (6, 2, 33, 128))
    ),
    sizes=tuple({"heads": 32, "groups": 8, "tokens": 8192, "size": 128, "dtype": dtype} for dtype in CODES),
)  # fmt: skip

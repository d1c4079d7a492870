"""What the CUDA kernels are timed beside: torch's own products, and torch.compile for what works element by element."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

from .launch import Baseline

Launch = Callable[[], object]
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def drawn(device: torch.device, seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return normal random numbers, drawn on the device."""
    generator = torch.Generator(device).manual_seed(seed)
    return torch.randn(*shape, generator=generator, device=device).to(dtype)


def _linear(device: torch.device, m: int, n: int, k: int, dtype: torch.dtype, seed: int) -> Launch:
    x, weight = drawn(device, seed, m, k, dtype=dtype), drawn(device, seed + 1, n, k, dtype=dtype)
    return functools.partial(torch.nn.functional.linear, x, weight)


def linear(device: torch.device, *, m: int, n: int, k: int) -> tuple[Baseline, ...]:
    """Return cuBLAS's products of ``[m, k]`` and ``[n, k]`` in FP32, FP16 and BF16."""
    return tuple(
        Baseline(
            name=f"torch {name}", make=functools.partial(_linear, device, m, n, k, dtype),
            read=(m + n) * k * dtype.itemsize,
        )
        for name, dtype in DTYPES.items()
    )  # fmt: skip


def _int_mm(device: torch.device, m: int, n: int, k: int, seed: int) -> Launch:
    a, b = (drawn(device, seed + i, r, k).mul_(40).clamp_(-127, 127).to(torch.int8) for i, r in enumerate((m, n)))
    return functools.partial(torch._int_mm, a, b.T)


def _scaled_mm(device: torch.device, m: int, n: int, k: int, seed: int) -> Launch:
    a, b = (drawn(device, seed + i, r, k).to(torch.float8_e4m3fn) for i, r in enumerate((m, n)))
    left, right = torch.ones(m, 1, device=device), torch.ones(1, n, device=device)
    return lambda: torch._scaled_mm(a, b.T, scale_a=left, scale_b=right, out_dtype=torch.bfloat16)


def eight_bit(device: torch.device, *, m: int, n: int, k: int, dtype: torch.dtype) -> tuple[Baseline, ...]:
    """Return torch's own product of the dtype, ``_int_mm`` (from 17 rows on) or ``_scaled_mm``, and BF16."""
    own = functools.partial(_int_mm if dtype == torch.int8 else _scaled_mm, device, m, n, k)
    name = "torch._int_mm" if dtype == torch.int8 else "torch._scaled_mm"
    able = dtype != torch.int8 or m > 16
    baselines = (Baseline(name=name, make=own, read=(m + n) * k),) if able else ()
    return (*baselines, *(b for b in linear(device, m=m, n=n, k=k) if b.name == "torch bf16"))


def compiled(
    function: Callable[..., object], draw: Callable[[int], tuple[object, ...]], read: int
) -> tuple[Baseline, ...]:
    """Return ``torch.compile`` of ``function``, whose arguments ``draw(seed)`` makes; ``read`` is their bytes."""
    fast = torch.compile(function)
    return (Baseline(name="torch.compile", make=lambda seed: functools.partial(fast, *draw(seed)), read=read),)


def block(
    device: torch.device, *, hidden: int, heads: int, groups: int, size: int, intermediate: int, tokens: int
) -> tuple[Baseline, ...]:
    """Return a transformer block of torch's own operations in BF16, one token, with a BF16 cache."""
    rows = {
        "qkv": (heads + 2 * groups) * size, "output": hidden, "gate_up": 2 * intermediate, "down": hidden,
    }  # fmt: skip
    columns = {"qkv": hidden, "output": heads * size, "gate_up": hidden, "down": intermediate}

    def make(seed: int) -> Launch:
        w = {
            name: drawn(device, seed + i, rows[name], columns[name], dtype=torch.bfloat16) / columns[name] ** 0.5
            for i, name in enumerate(rows)
        }  # fmt: skip
        keys, values = (drawn(device, seed + i, 1, groups, tokens, size, dtype=torch.bfloat16) for i in (5, 6))
        norm = torch.ones(hidden, dtype=torch.bfloat16, device=device)
        x = drawn(device, seed + 7, 1, hidden, dtype=torch.bfloat16)
        turn = torch.ones(1, size // 2, dtype=torch.bfloat16, device=device)
        return lambda: _block_step(x, w, norm, keys, values, turn, heads)

    read = 2 * (sum(rows[name] * columns[name] for name in rows) + 2 * groups * tokens * size)
    return (Baseline(name="torch bf16 block", make=make, read=read),)


def _block_step(
    x: torch.Tensor, w: dict[str, torch.Tensor], norm: torch.Tensor, keys: torch.Tensor, values: torch.Tensor,
    turn: torch.Tensor, heads: int,
) -> torch.Tensor:  # fmt: skip
    functional, (_, groups, _, size) = torch.nn.functional, keys.shape
    qkv = functional.linear(functional.rms_norm(x, norm.shape, norm), w["qkv"]).view(-1, size)
    query, key, value = qkv[:heads], qkv[heads : heads + groups], qkv[heads + groups :]
    query, key = (torch.cat([a * turn - b * turn, b * turn + a * turn], 1) for a, b in (
        query.chunk(2, 1), key.chunk(2, 1)))  # fmt: skip
    keys[0, :, -1], values[0, :, -1] = key, value
    attended = functional.scaled_dot_product_attention(query[None, :, None], keys, values, enable_gqa=True)
    h = x + functional.linear(attended.reshape(1, -1), w["output"])
    gate, up = functional.linear(functional.rms_norm(h, norm.shape, norm), w["gate_up"]).chunk(2, 1)
    return h + functional.linear(functional.silu(gate) * up, w["down"])

"""Q4_K, Q3_K and Q6_K written with torch, one operation after another: what the kernels of ``k_quants.cu`` must give.

The searches are those of llama.cpp's ``ggml-quants.c`` without an importance matrix (``make_qkx2_quants``,
``make_q3_quants``, ``make_qx_quants``) in float32, every sum in the order of its values; ``x`` is float32
``[n, size]``.
"""

from __future__ import annotations

import torch

from ..exact import divided

Tensor = torch.Tensor

TINY = 1e-15
HALF_MAX = 65504.0


def _bounded(x: Tensor, low: float, high: float) -> Tensor:
    return x.round().clamp(low, high).nan_to_num(low)


def _sum(terms: Tensor) -> Tensor:
    """Add the columns one after another."""
    total = terms[:, 0].clone()
    for column in range(1, terms.shape[1]):
        total += terms[:, column]
    return total


def affine(x: Tensor, top: float, first: float, step: float, steps: int) -> tuple[Tensor, Tensor]:
    """Return scale and least value (at most 0), ``[n]``, of ``x ~ scale * code + low`` with codes 0 to ``top``."""
    spread = (_sum(x * x) / x.shape[1]).double().sqrt().float()  # in float32 torch's root can be off by one bit
    weight = spread[:, None] + x.abs()
    total, moment = _sum(weight), _sum(weight * x)
    low, high = x.amin(1).clamp_max(0), x.amax(1)

    def codes(inverse: Tensor) -> Tensor:
        return _bounded(inverse[:, None] * (x - low[:, None]), 0, top)

    def error(code: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        off = scale[:, None] * code + shift[:, None] - x
        return _sum(weight * (off * off))

    inverse = divided(top, high - low)
    chosen = 1 / inverse
    best = error(codes(inverse), chosen, low)
    single = torch.tensor([first, step, top], device=x.device)
    for attempt in range(steps + 1):
        code = codes((single[0] + single[1] * attempt + single[2]) / (high - low))
        s1, s2, sx = _sum(weight * code), _sum(weight * code * code), _sum(weight * code * x)
        determinant = total * s2 - s1 * s1
        shift = (s2 * moment - s1 * sx) / determinant
        scale = torch.where(shift > 0, sx / s2, (total * sx - moment * s1) / determinant)
        shift = torch.where(shift > 0, 0, shift)
        candidate = error(code, scale, shift)
        better = (determinant > 0) & (candidate < best)
        changes = ((candidate, best), (scale, chosen), (shift, low))
        best, chosen, low = (torch.where(better, new, old) for new, old in changes)
    return chosen, low


def _peak(x: Tensor) -> Tensor:
    return x.gather(1, x.abs().argmax(1, keepdim=True))


def symmetric(x: Tensor, top: float) -> Tensor:
    """Return the scale ``[n]`` of ``x ~ scale * code``, codes ``-top`` to ``top - 1``: the best of 19 attempts."""
    peak = _peak(x)
    best, scale = torch.full_like(x[:, 0], -1), torch.zeros_like(x[:, 0])
    tenth = torch.tensor(0.1, device=x.device)
    for attempt in (0, *range(-9, 0), *range(1, 10)):
        code = _bounded(-(top + tenth * attempt) / peak * x, -top, top - 1)
        sx, s2 = _sum(x * x * x * code), _sum(x * x * code * code)
        better = (s2 > 0) & (sx * sx > best * s2)
        scale = torch.where(better, sx / s2, scale)
        best = torch.where(better, scale * sx, best)
    return torch.where((peak[:, 0].abs() < TINY) | (best < 0), 0, scale)


def refined(x: Tensor, top: float) -> Tensor:
    """Return the scale ``[n]`` as ``symmetric`` does, by five rounds that move one code after another."""
    peak = _peak(x)
    code = _bounded(divided(-top, peak) * x, -top, top - 1)
    sx, s2 = _sum(x * x * x * code), _sum(x * x * code * code)
    for _ in range(5):
        for i in range(x.shape[1]):
            value, weight, old = x[:, i], x[:, i] * x[:, i], code[:, i]
            rest_x, rest_2 = sx - weight * value * old, s2 - weight * old * old
            new = _bounded(value * rest_2 / rest_x, -top, top - 1)
            new_x, new_2 = rest_x + weight * value * new, rest_2 + weight * new * new
            gains = (rest_x > 0) & (new_2 > 0) & (new_x * new_x * s2 > sx * sx * new_2)
            better = gains & (new != old)  # sums of the same code differ by rounding
            code[:, i] = torch.where(better, new, old)
            sx, s2 = torch.where(better, new_x, sx), torch.where(better, new_2, s2)
    return torch.where((peak[:, 0].abs() < TINY) | ~(s2 > 0), 0, sx / s2)


def positive_units(values: Tensor, top: float) -> tuple[Tensor, Tensor]:
    """Return the unit ``[n]`` and the multiples of it, 0 to ``top``, of values ``[n, groups]``."""
    most = values.amax(1).clamp_min(0) + 0.0  # never minus zero, whose sign would be stored
    per_unit = torch.where(most > TINY, divided(top, most), 0)
    return divided(most, top), (per_unit[:, None] * values).round().clamp(0, top)


def signed_units(values: Tensor, top: float) -> tuple[Tensor, Tensor]:
    """Return the unit ``[n]`` that gives the value of largest magnitude the code ``-top``, and all codes."""
    most = _peak(values)[:, 0]
    per_unit = torch.where(most.abs() >= TINY, divided(-top, most), 0)
    unit = 1 / per_unit
    return torch.where(unit.isfinite(), unit, 0), (per_unit[:, None] * values).round().clamp(-top, top - 1)


def _half(unit: Tensor) -> Tensor:
    return unit.clamp(-HALF_MAX, HALF_MAX).half()


def _octets(half: Tensor) -> Tensor:
    return half[:, None].view(torch.uint8)


def _codes(x: Tensor, scale: Tensor, minimum: Tensor | None, zero: int, top: int) -> Tensor:
    """Return the codes uint8 ``[n, groups, size]`` of ``x`` of that shape; ``scale``, ``minimum`` ``[n, groups]``."""
    scale = scale[..., None]
    shifted = x if minimum is None else x + minimum[..., None]
    code = (shifted / torch.where(scale == 0, 1, scale)).clamp(-256, 256).round() + zero
    return torch.where(scale == 0, zero, code.clamp(0, top)).to(torch.uint8)


def q4_k(x: Tensor) -> Tensor:
    """Return the blocks uint8 ``[n, 144]`` of ``x`` float32 ``[n, 256]``."""
    limit = HALF_MAX * 63 * 15
    fitted = affine(x.clamp(-limit, limit).reshape(-1, 32), 15, -1.0, 0.1, 20)
    unit, scales = positive_units(fitted[0].reshape(-1, 8), 63)
    step, minima = positive_units(-fitted[1].reshape(-1, 8), 63)
    scale, minimum = _half(unit).float()[:, None] * scales, _half(step).float()[:, None] * minima
    codes = _codes(x.reshape(-1, 8, 32), scale, minimum, 0, 15)
    s, m = scales.to(torch.uint8), minima.to(torch.uint8)
    packed = (s[:, :4] | s[:, 4:] >> 4 << 6, m[:, :4] | m[:, 4:] >> 4 << 6, s[:, 4:] & 15 | (m[:, 4:] & 15) << 4)
    nibbles = (codes[:, 0::2] | codes[:, 1::2] << 4).flatten(1)
    return torch.cat([_octets(_half(unit)), _octets(_half(step)), *packed, nibbles], 1)


def q3_k(x: Tensor) -> Tensor:
    """Return the blocks uint8 ``[n, 110]`` of ``x`` float32 ``[n, 256]``."""
    limit = HALF_MAX * 32 * 4
    scale = refined(x.clamp(-limit, limit).reshape(-1, 16), 4)
    unit, scales = signed_units(scale.reshape(-1, 16), 32)
    s = torch.where(unit[:, None] == 0, 0, scales + 32).to(torch.uint8)
    codes = _codes(x.reshape(-1, 16, 16), _half(unit).float()[:, None] * (s.float() - 32), None, 4, 7)
    parts = codes.reshape(-1, 2, 4, 32)
    low = sum((parts[:, :, k] & 3) << 2 * k for k in range(4))
    high = sum((parts[:, k // 4, k % 4] >> 2) << k for k in range(8))
    pairs = sum((s[:, 4 * k : 4 * k + 4] >> 4) << 2 * k for k in range(4))
    assert isinstance(low, Tensor) and isinstance(high, Tensor) and isinstance(pairs, Tensor)
    return torch.cat([high, low.flatten(1), s[:, :8] & 15 | (s[:, 8:] & 15) << 4, pairs, _octets(_half(unit))], 1)


def q6_k(x: Tensor) -> Tensor:
    """Return the blocks uint8 ``[n, 210]`` of ``x`` float32 ``[n, 256]``."""
    limit = HALF_MAX * 128 * 32
    unit, scales = signed_units(symmetric(x.clamp(-limit, limit).reshape(-1, 16), 32).reshape(-1, 16), 128)
    codes = _codes(x.reshape(-1, 16, 16), _half(unit).float()[:, None] * scales, None, 32, 63)
    halves, quarters = codes.reshape(-1, 2, 2, 64), codes.reshape(-1, 2, 4, 32)
    low = halves[:, :, 0] & 15 | (halves[:, :, 1] & 15) << 4
    high = sum((quarters[:, :, k] >> 4) << 2 * k for k in range(4))
    assert isinstance(high, Tensor)
    signed = scales.to(torch.int8).view(torch.uint8)
    return torch.cat([low.flatten(1), high.flatten(1), signed, _octets(_half(unit))], 1)

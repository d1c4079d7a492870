"""Seeded bugs: each is one change of a kernel's source that the emulated checks must notice.

    python -m tests.kernels.shim.mutants NAME ...       prints one JSON object: name -> what noticed it, or null

Every bug runs in a process of its own, as it may crash.  A bug counts as noticed when a result is wrong, or the shim
complains, for any variant of any op of that source in any lane order.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from workbench_kernels.bench.cuda import check_results
from workbench_kernels.catalog import CUDA_OPS
from workbench_kernels.errors import WrongResultError

from .emulator import EmulatedFault, Emulator

ORDERS = ("forward", "greedy", "reverse", "random")
MOST = 60000
"""Bytes of an answer: what a pipe holds while nobody reads."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """``old`` becomes ``new`` in ``file``; ``ops`` keeps to the ops whose names begin so."""

    name: str
    file: str
    old: str
    new: str
    ops: str = ""
    explained: str = ""
    """Why this one cannot be noticed here; empty if it must be."""


MUTANTS = (
    Mutant(name="statistics: not finite values are summed", file="statistics.cu",
           old="if (is_finite(x)) {", new="if (true) {"),
    Mutant(name="statistics: the tail of a row is left out", file="statistics.cu",
           old="for (long long i = packs * COUNT + first; i < columns;",
           new="for (long long i = packs * COUNT + first; i < 0;"),
    Mutant(name="statistics: sum and squares exchanged", file="statistics.cu",
           old="reduce_lanes<Sum>(m.squares), (double)", new="reduce_lanes<Sum>(m.sum), (double)"),
    Mutant(name="statistics: a barrier is missing before warps are joined", file="statistics.cu",
           old="parts[i][warp] = own[i];\n    __syncthreads();", new="parts[i][warp] = own[i];"),
    Mutant(name="statistics: one copy of the histogram is forgotten", file="statistics.cu",
           old="for (int copy = 0; copy < COPIES; ++copy)", new="for (int copy = 0; copy < COPIES - 1; ++copy)"),
    Mutant(name="statistics: histogram keeps the sign", file="statistics.cu",
           old="(__float_as_uint(x) & 0x7fffffffu) >> 20", new="(__float_as_uint(x) >> 20) & 2047u & ~8u"),
    Mutant(name="reduction: half of the lanes", file="statistics.cu",
           old="for (int offset = lanes / 2; offset > 0; offset /= 2)",
           new="for (int offset = lanes / 4; offset > 0; offset /= 2)"),
    Mutant(name="groups: a subnormal scale is inverted", file="integer_groups.cu", ops="quantize int8",
           old="if (!(scale >= SMALLEST_NORMAL)) return {0.f, 0.f, zero};", new=""),
    Mutant(name="groups: group of the wrong thread", file="integer_groups.cu", ops="dequantize int4",
           old="const long long group = at / size;", new="const long long group = at / size / 2;"),
    Mutant(name="int8: truncated instead of rounded", file="integer_groups.cu", ops="quantize int8",
           old="return clamp(__float2int_rn(x * f.inverse), LOW, HIGH) + OFFSET;",
           new="return clamp(int(x * f.inverse), LOW, HIGH) + OFFSET;"),
    Mutant(name="int4: nibbles exchanged", file="integer_groups.cu", ops="quantize int4",
           old="word |= uint32_t(Levels::code(x[i], f)) << (4 * i);",
           new="word |= uint32_t(Levels::code(x[i], f)) << (4 * (i ^ 1));"),
    Mutant(name="asymmetric: zero point not limited", file="integer_groups.cu", ops="quantize int8_asym",
           old="clamp(__float2int_rn(-low * f.inverse), 0, HIGH)};", new="__float2int_rn(-low * f.inverse) + 1};"),
    Mutant(name="fp8: no saturation", file="float8_groups.cu", ops="quantize e4m3",
           old="__NV_SATFINITE, KIND)", new="__NV_NOSAT, KIND)"),
    Mutant(name="fp4: a middle goes up", file="fp4_blocks.cu", ops="quantize", old="(a > 2.5f)", new="(a >= 2.5f)"),
    Mutant(name="fp4: minus zero", file="fp4_blocks.cu", ops="quantize",
           old="return code && x < 0.f", new="return x < 0.f"),
    Mutant(name="mxfp4: exponent one too large", file="fp4_blocks.cu", ops="quantize mxfp4",
           old="__float_as_uint(largest) >> 23) - 2", new="__float_as_uint(largest) >> 23) - 1"),
    Mutant(name="q4_0: the last of equal magnitudes", file="gguf_blocks.cu", ops="quantize q4_0",
           old="(other == largest && (lane & offset))", new="(other == largest && !(lane & offset))"),
    Mutant(name="q4_0: shuffle without its width", file="gguf_blocks.cu", ops="quantize q4_0",
           old="__shfl_down_sync(ALL_LANES, codes, 4, 8)", new="__shfl_down_sync(ALL_LANES, codes, 4)",
           explained="lanes 0 to 3 of a block read lanes 4 to 7 either way; the others are not used"),
    Mutant(name="q8_0: halves to even", file="gguf_blocks.cu", ops="quantize q8_0",
           old="round_away(v.at[i] * inverse)", new="__float2int_rn(v.at[i] * inverse)"),
    Mutant(name="q4_k: scale's high bits from the wrong byte", file="gguf_blocks.cu", ops="dequantize q4_k",
           old="(packed[i - 4] >> 6) << 4;", new="(packed[i] >> 6) << 4;"),
    Mutant(name="q3_k: high bit inverted", file="gguf_blocks.cu", ops="dequantize q3_k",
           old="& 1 ? 0 : 4)", new="& 1 ? 4 : 0)"),
    Mutant(name="q6_k: scale of the neighbour", file="gguf_blocks.cu", ops="dequantize q6_k",
           old="block[192 + 8 * half + 2 * part + place / 16]", new="block[192 + 8 * half + 2 * part + place / 17]"),
    Mutant(name="k-quants: sums off in the last bit", file="k_quants.cu", ops="quantize q4_k",
           old="{ return __fadd_rn(a.value, b.value); }",
           new="{ return float(double(a.value) + b.value * (1 + 1e-7)); }"),
    Mutant(name="k-quants: an accepted least value is not used further", file="k_quants.cu", ops="quantize q4_k",
           old="kept = fit, low = fit.low;", new="kept = fit;"),
    Mutant(name="k-quants: the last of equal magnitudes", file="k_quants.cu", ops="quantize q3_k",
           old="(other == largest && (threadIdx.x & offset))", new="(other == largest && !(threadIdx.x & offset))",
           explained="the scales of two sub-blocks are equal in magnitude only where the values are: not drawn"),
    Mutant(name="k-quants: one round of moves", file="k_quants.cu", ops="quantize q3_k",
           old="round < 5 && moved", new="round < 1 && moved"),
    Mutant(name="k-quants: high bits of the neighbour", file="k_quants.cu", ops="quantize q3_k",
           old="high[w] >> (16 * (lane >> 1 & 1))", new="high[w] >> (16 * (lane & 1))"),
    Mutant(name="k-quants: minimum of the neighbour", file="k_quants.cu", ops="quantize q4_k",
           old="next_least >> 4 << 6", new="next_scale >> 4 << 6"),
    Mutant(name="k-quants: half of the attempts left out", file="k_quants.cu", ops="quantize q6_k",
           old="attempt < 10; ++attempt", new="attempt < 1; ++attempt"),
    Mutant(name="w4a16: logic table", file="w4a16.cu",
           old="(0xf0 & 0xcc) | 0xaa", new="(0xf0 & 0xcc) ^ 0xaa",
           explained="the masked bits and the constant never overlap, so or and exclusive or agree"),
    Mutant(name="w4a16: bias of the low nibbles", file="w4a16.cu", old="0x64086408", new="0x64076407"),
    Mutant(name="w4a16: a stage is overwritten while it is read", file="w4a16.cu",
           old="wait_copies<STAGES - 2>();\n            __syncthreads();", new="wait_copies<STAGES - 2>();"),
    Mutant(name="w4a16: waits for one copy too few", file="w4a16.cu",
           old="wait_copies<STAGES - 2>();", new="wait_copies<STAGES - 1>();"),
    Mutant(name="w4a16: chunks are not exchanged on reading", file="w4a16.cu",
           old="shared + chunk(16 * i + lane % 16, 2 * s + lane / 16)",
           new="shared + chunk(16 * i + lane % 16, 2 * s + 1 - lane / 16)"),
    Mutant(name="w4a16: zero point of the neighbour", file="w4a16.cu",
           old="p.zero[j] = twice(w.zeros + at + 8 * j);",
           new="p.zero[j] = twice(w.zeros + at + 8 * (j ^ 1));"),
    Mutant(name="w4a16: scales of small groups are kept for 64 columns", file="w4a16.cu",
           old="if (FINE || s == 0) load_parameters", new="if (s == 0) load_parameters"),
    Mutant(name="w4a16: a group's sum goes into the next", file="w4a16.cu",
           old="sum[t][0] = sum[t][1] = 0.f;\n        }\n    }", new="sum[t][0] = 0.f;\n        }\n    }"),
    Mutant(name="w4a16: dequantized rows of the neighbour", file="w4a16.cu",
           old="(n0 + row) * w.columns + k0 + at, load", new="(n0 + (row ^ 1)) * w.columns + k0 + at, load"),
    Mutant(name="w4a16: no barrier before the warps' sums are joined", file="w4a16.cu",
           old="8 * t + lane() % 4 * 2 + i] = total[t][i];\n        __syncthreads();",
           new="8 * t + lane() % 4 * 2 + i] = total[t][i];"),
    Mutant(name="w4a16: bias per token", file="w4a16.cu",
           old="__half2float(bias[column]) : 0.f;", new="__half2float(bias[row]) : 0.f;"),
    Mutant(name="gemm: fragments of b exchanged", file="gemm_int8.cu",
           old="b[j][0] = pair[0], b[j][1] = pair[1]", new="b[j][0] = pair[1], b[j][1] = pair[0]"),
    Mutant(name="gemm: K beyond the end is not zero", file="gemm_int8.cu",
           old="const bool valid = first + row < rows && k + at * 16 < columns;",
           new="const bool valid = first + row < rows;"),
    Mutant(name="gemm: waits for one copy too few", file="gemm_int8.cu",
           old="wait_copies<STAGES - 2>();", new="wait_copies<STAGES - 1>();"),
    Mutant(name="gemm: no barrier in the ring", file="gemm_int8.cu",
           old="wait_copies<STAGES - 2>();\n            __syncthreads();", new="wait_copies<STAGES - 2>();"),
    Mutant(name="gemm: loads before the barrier", file="gemm_int8.cu",
           old="wait_copies<STAGES - 2>();\n            __syncthreads();\n"
               "            const int next = t + STAGES - 1;\n"
               "            if (next < steps) fetch(shared + next % STAGES * 2 * TILE_BYTES, o, next * K);\n"
               "            commit_copies();",
           new="const int next = t + STAGES - 1;\n"
               "            if (next < steps) fetch(shared + next % STAGES * 2 * TILE_BYTES, o, next * K);\n"
               "            commit_copies();\n            wait_copies<STAGES - 1>();\n            __syncthreads();"),
    Mutant(name="gemm: scale of the neighbouring channel", file="gemm_fp8.cu",
           old="* left * o.right[column]", new="* left * o.right[o.n - 1 - column]"),
    Mutant(name="gemv: the second output is the first", file="gemv_int8.cu",
           old="o.b + (long long)(first + j) * o.k + k", new="o.b + (long long)first * o.k + k"),
    Mutant(name="gemv: lanes overlap", file="gemv_int8.cu", old="k += 32 * BYTES", new="k += 16 * BYTES"),
    Mutant(name="gemv: high codes of the low ones", file="gemv_fp8.cu", ops="w8a8 fp8",
           old="pair(codes >> 16)", new="pair(codes >> 8)"),
    Mutant(name="norm: squares of the last pass only", file="norm_quantize.cu",
           old="squares += v[i] * v[i];\n            largest", new="squares = v[i] * v[i];\n            largest"),
    Mutant(name="norm: no barrier between the warps", file="norm_quantize.cu",
           old="shared[threadIdx.x / 32] = value;\n    __syncthreads();", new="shared[threadIdx.x / 32] = value;"),
    Mutant(name="norm: the sum is normalized before it is rounded", file="norm_quantize.cu",
           old="v[i] = to_float(from_float<T>(v[i] + more[i]));", new="v[i] = v[i] + 1.01f * more[i];"),
    Mutant(name="norm: the second pass forgets the residual", file="norm_quantize.cu",
           old="load_eight(delta ? sum + at : x + at, v);", new="load_eight(x + at, v);"),
    Mutant(name="gate: sigmoid of the other sign", file="gate_quantize.cu", ops="gate quantize",
           old="__expf(-g[i])", new="__expf(g[i])"),
    Mutant(name="append: the query is not turned", file="cache_append.cu", ops="cache append",
           old="if (head < t.groups) {", new="if (head >= 0 && head < t.groups) {"),
    Mutant(name="append: the place after", file="cache_append.cu", ops="cache append",
           old="min(max(*t.length, 1), t.tokens) - 1;", new="min(max(*t.length - 1, 1), t.tokens) - 1;"),
    Mutant(name="append: scale of the key for the value", file="cache_append.cu", ops="cache append",
           old="(key ? key_scales : value_scales) + at", new="(key ? value_scales : key_scales) + at"),
    Mutant(name="attention: tokens beyond the length", file="decode_attention.cu",
           old="return length ? min(*length, tokens) : tokens;", new="return tokens;"),
    Mutant(name="attention: sums are not rescaled", file="decode_attention.cu",
           old="sum = sum * mine + other_sum * theirs;", new="sum = sum + other_sum * theirs;"),
    Mutant(name="attention: a token beyond the split", file="decode_attention.cu",
           old="if (token + t >= last) continue;", new="if (token + t > last) continue;"),
    Mutant(name="attention: value scale of the key", file="decode_attention.cu",
           old="Code::value(values[t], i) * c.value_scales[at]", new="Code::value(values[t], i) * c.key_scales[at]"),
    Mutant(name="attention: head of the wrong group", file="decode_attention.cu",
           old="group = head / (gridDim.x / c.groups)", new="group = head % c.groups"),
)  # fmt: skip


def noticed(mutant: Mutant) -> str | None:
    """Return what noticed the bug, None if nothing did."""
    ops = [op for op in CUDA_OPS if op.source.file == mutant.file and op.name.startswith(mutant.ops) and op.variants]
    if not ops:
        raise ValueError(f"no op of {mutant.file} begins with {mutant.ops!r}")
    for order in ORDERS:
        for op in ops:
            for shape in op.variants:
                emulator = Emulator(order=order, seed=2, changes=((mutant.old, mutant.new),))
                problem = op.prepare(emulator, 7, **shape)
                try:
                    check_results(op, problem.launch(), problem.reference())
                except (WrongResultError, EmulatedFault) as error:
                    if "does not build" in str(error):
                        raise
                    return f"{order}: {error}"
    return None


def begin(mutant: Mutant) -> tuple[int, int]:
    """Run a bug in a child process; returns its id and the end of a pipe that will hold the answer."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = json.dumps(noticed(mutant))
        except Exception as error:
            answer = json.dumps(f"ERROR {error!r}")
        os.write(writer, answer.encode()[:MOST])
        os._exit(0)
    os.close(writer)
    return child, reader


def answer_of(reader: int, status: int) -> str | None:
    """Return what a child that has ended noticed; a crash is noticed too."""
    with os.fdopen(reader, "rb") as file:
        answer = file.read()
    if not answer:
        return f"the process ended with status {status}"
    result: str | None = json.loads(answer)
    return result


def notice(mutants: Sequence[Mutant]) -> dict[str, str | None]:
    """Return what noticed each bug; as many children run as there are cores."""
    result: dict[str, str | None] = {}
    running: dict[int, tuple[Mutant, int]] = {}
    waiting = list(mutants)
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            mutant = waiting.pop(0)
            child, reader = begin(mutant)
            running[child] = mutant, reader
        child, status = os.wait()
        mutant, reader = running.pop(child)
        result[mutant.name] = answer_of(reader, status)
    return result


def main(names: list[str]) -> None:
    """Run the named bugs."""
    torch.set_num_threads(1)
    print(json.dumps(notice([mutant for mutant in MUTANTS if mutant.name in names])))


if __name__ == "__main__":
    main(sys.argv[1:])

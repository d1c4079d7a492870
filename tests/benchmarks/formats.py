"""How fast every number format encodes and decodes, in GB/s of the float32 matrix.

    python tests/benchmarks/formats.py [--rows 4096] [--columns 4096] [--schemes q4_0 q4_k int4-g128] [--repeats 5]

Beside each format stand the ``gguf`` package, where it has the same conversion, and a plain memory copy, timed in turn
so that a busy machine slows all alike.  ``encode`` is fit and encode together; every result is checked before it is
timed.  The table shows the best of the repeats; the last line is the same as JSON.

``decode`` writes into the memory of the result before it, which nobody holds any more, as when one goes through a model
layer by layer; ``fresh`` is the same when the system first has to clear new pages, as it has for every result of the
``gguf`` package and for the first of ours.

Two ratios follow the peer's rate: ``wall`` of elapsed time, and ``cpu`` of processor time shared out over all threads,
which is what ``wall`` becomes when nothing else runs (on a busy machine a single thread finds a free core sooner than
several do).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.compiled import output_memory
from workbench.numerics.formats.gguf.family import FAMILY, GgufScheme
from workbench.numerics.scheme import Scheme

DEFAULT_SCHEMES = (
    *FAMILY.examples,
    *(f"int4-g{size}{shift}" for shift in ("", "-asym") for size in (16, 32, 64, 128, 256)),
    "int2-g32-asym", "int3-g32-asym", "int5-g64-asym", "int6-g64-asym", "int8-channel", "int4-b128x128",
    "int4-g64-asym-zfp16", "fp8-e4m3-tensor", "fp8-e4m3-channel", "fp8-e5m2-channel", "fp8-e4m3-b128x128",
    "fp6-e2m3-g32", "fp6-e3m2-channel", "fp4-e2m1-g32", "mxfp8-e4m3", "mxfp6-e2m3", "mxfp4", "mxint8", "nvfp4",
    "nf4-b64", "nf4-b64-dq", "fp4-bnb-b64", "bf16",
)  # fmt: skip
Timings = dict[str, float]


def best_of(repeats: int, actions: dict[str, Callable[[], Any]]) -> tuple[Timings, Timings]:
    """Return the least elapsed and least processor seconds of each action; they take turns, one round is untimed."""
    elapsed, used = dict.fromkeys(actions, float("inf")), dict.fromkeys(actions, float("inf"))
    for turn in range(repeats + 1):
        for name, action in actions.items():
            start, processor = time.perf_counter(), time.process_time()
            action()
            if turn:
                elapsed[name] = min(elapsed[name], time.perf_counter() - start)
                used[name] = min(used[name], time.process_time() - processor)
    return elapsed, used


def peer_actions(scheme: Scheme, weight: torch.Tensor, blocks: np.ndarray | None) -> dict[str, Callable[[], Any]]:
    """Return what the gguf package can do of the same; its bytes and values are compared with ours here."""
    import gguf

    if not isinstance(scheme, GgufScheme) or blocks is None:
        return {}
    kind = gguf.GGMLQuantizationType[scheme.ggml_type]
    actions: dict[str, Callable[[], Any]] = {}
    sample = weight[:16].numpy()
    decoded = gguf.dequantize(blocks[:16], kind)[:, : sample.shape[1]]
    stored = scheme.encode(weight[:16], scheme.fit(weight[:16]))
    if not np.array_equal(decoded, scheme.decode(stored).numpy()):
        raise SystemExit(f"{scheme.name} decodes differently from the gguf package; nothing is timed")
    actions["gguf decode"] = lambda: gguf.dequantize(blocks, kind)
    try:
        encoded = gguf.quantize(sample, kind)
    except NotImplementedError:
        return actions
    if not np.array_equal(encoded, stored.arrays["blocks"]):
        raise SystemExit(f"{scheme.name} encodes differently from the gguf package; nothing is timed")
    actions["gguf encode"] = lambda: gguf.quantize(weight.numpy(), kind)
    return actions


def measure(scheme: Scheme, weight: torch.Tensor, repeats: int) -> Timings:
    """Return GB/s of float32 for each action on ``weight``, and ``... cpu`` for one thread's processor time."""
    parameters = scheme.fit(weight)
    stored = scheme.encode(weight, parameters)
    if not torch.equal(scheme.decode(stored), scheme.round(weight, parameters)):
        raise SystemExit(f"{scheme.name} decodes something else than it rounds to; nothing is timed")
    target = torch.empty_like(weight)

    def fresh() -> torch.Tensor:
        output_memory._waiting.clear()
        return scheme.decode(stored)

    actions: dict[str, Callable[[], Any]] = {
        "copy": lambda: target.copy_(weight),
        "encode": lambda: scheme.encode(weight, scheme.fit(weight)),
        "decode": lambda: scheme.decode(stored),
        "fresh": fresh,
        "round": lambda: scheme.round(weight, parameters),
    }
    actions |= peer_actions(scheme, weight, stored.arrays.get("blocks"))
    elapsed, used = best_of(repeats, actions)
    seconds = elapsed | {f"{name} cpu": taken for name, taken in used.items()}
    return {name: weight.numel() * 4 / taken / 1e9 for name, taken in seconds.items()}


def line(name: str, rates: Timings) -> str:
    """Return one row of the table."""

    def beside(action: str) -> str:
        peer = rates.get(f"gguf {action}")
        if peer is None:
            return f"{'-':>6} {'-':>5} {'-':>5}"
        cpu = rates[f"{action} cpu"] / rates[f"gguf {action} cpu"] * torch.get_num_threads()
        return f"{peer:6.2f} {rates[action] / peer:4.1f}x {cpu:4.1f}x"

    return (
        f"{name:<18} {rates['encode']:7.2f} {beside('encode')} {rates['decode']:7.2f} {beside('decode')} "
        f"{rates['fresh']:7.2f} {rates['round']:7.2f} {rates['copy']:7.2f} {rates['encode'] / rates['copy']:7.1%}"
    )


def main() -> None:
    """Print the table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--columns", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--schemes", nargs="+", default=list(DEFAULT_SCHEMES))
    options = parser.parse_args()
    generator = torch.Generator().manual_seed(options.seed)
    weight = torch.randn(options.rows, options.columns, generator=generator)
    print(f"{options.rows} x {options.columns} float32, {torch.get_num_threads()} threads, GB/s of float32")
    peer = f"{'gguf':>6} {'wall':>5} {'cpu':>5}"
    print(f"{'scheme':<18} {'encode':>7} {peer} {'decode':>7} {peer} {'fresh':>7} {'round':>7} {'copy':>7} enc/copy")
    results = {}
    for name in options.schemes:
        results[name] = measure(parse_scheme(name), weight, options.repeats)
        print(line(name, results[name]), flush=True)
    size = {"rows": options.rows, "columns": options.columns, "threads": torch.get_num_threads()}
    print(json.dumps({**size, "GB/s": results}))


if __name__ == "__main__":
    main()

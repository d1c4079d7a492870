"""Exporting a large checkpoint: seconds, CPU and resident memory beside those of copying its bytes, in one run.

    python tests/benchmarks/export_size.py [--parameters 1B|8B] [--limit SIZE] [--folder] [--work FOLDER] [--kinds A,B]

Writes a random Llama in bfloat16 of Llama 3's shapes (1.1 B or 8.0 B weights), copies the file, then exports it in
plain rounding, each kind in a process of its own.  To reach: under 2 GB resident, at most twice the time of copying.
Every time includes what brings the bytes to the disk (``fsync``), and files are read from the disk where the system
allows to drop them from memory.  ``--folder`` opens the Hugging Face folder, else the bare file of weights.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT, SPEED = 2.0, 0.5
SHAPES = {"300M": (1024, 8), "1B": (2048, 14), "2B": (2048, 28), "8B": (4096, 32)}
"""Hidden size and blocks."""

SCHEMES = {"gguf": "q4_0", "compressed-tensors": "int4-g128-asym"}
VOCABULARY = 128_256


def shapes(hidden: int, blocks: int) -> dict[str, tuple[int, ...]]:
    """Return the tensors of a Llama 3: 3.5 times as wide inside, a quarter as many keys as queries."""
    inner, narrow = 7 * hidden // 2, hidden // 4
    tensors: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (VOCABULARY, hidden)}
    for number in range(blocks):
        block = f"model.layers.{number}."
        for name, rows in (("q", hidden), ("k", narrow), ("v", narrow), ("o", hidden)):
            tensors[f"{block}self_attn.{name}_proj.weight"] = (rows, hidden)
        tensors[f"{block}mlp.gate_proj.weight"] = tensors[f"{block}mlp.up_proj.weight"] = (inner, hidden)
        tensors[f"{block}mlp.down_proj.weight"] = (hidden, inner)
        tensors[f"{block}input_layernorm.weight"] = tensors[f"{block}post_attention_layernorm.weight"] = (hidden,)
    return tensors | {"model.norm.weight": (hidden,), "lm_head.weight": (VOCABULARY, hidden)}


def write_model(folder: Path, hidden: int, blocks: int) -> None:
    """Write the checkpoint; its numbers repeat after 64 MB, which no step can tell."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden,
        "num_hidden_layers": blocks, "intermediate_size": 7 * hidden // 2, "vocab_size": VOCABULARY,
        "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 8192,
        "tie_word_embeddings": False,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    header, end = {}, 0
    for name, shape in shapes(hidden, blocks).items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end := end + 2 * count]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    random = torch.empty(1 << 25).normal_(0, 0.02, generator=torch.Generator().manual_seed(0)).bfloat16()
    octets = random.view(torch.uint8).numpy().data
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for start in range(0, end, len(octets)):
            file.write(octets[: min(len(octets), end - start)])
        os.fsync(file.fileno())


def forget(path: Path) -> None:
    """Have the system drop a file from memory, so that reading it is reading the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def copying(source: Path, out: Path) -> float:
    """Return the seconds that copying takes."""
    forget(source)
    start = time.perf_counter()
    with source.open("rb") as read, out.open("wb") as written:
        shutil.copyfileobj(read, written, 1 << 24)
        os.fsync(written.fileno())
    seconds = time.perf_counter() - start
    out.unlink()
    return seconds


def run(kind: str, source: Path, out: Path, limit: str) -> dict[str, float]:
    """Export in this process; seconds count from before the model is opened, without the imports."""
    import workbench as wb

    start, before = time.perf_counter(), sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    with wb.memory_limit(limit):
        model = wb.open(source)
        opened = time.perf_counter()
        layers = [layer for layer in model.summary.stored if "layers" in layer.name]
        paths = wb.apply(model, wb.Plan.uniform(layers, SCHEMES[kind], algorithm="rtn"), kind, out)
    for path in paths:
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "wall": time.perf_counter() - start, "opening": opened - start, "cpu": sum(used[:2]) - before,
        "resident": used.ru_maxrss * 1024.0, "written": float(sum(path.stat().st_size for path in paths)),
    }  # fmt: skip


def child(kind: str, source: Path, out: Path, limit: str) -> dict[str, float]:
    """Return what exporting measures in a process of its own; nothing, with the reason on stderr, where it fails."""
    forget(source / "model.safetensors" if source.is_dir() else source)
    arguments = [sys.executable, __file__, "--child", kind, "--source", str(source), "--out", str(out)]
    ended = subprocess.run([*arguments, "--limit", limit], stdout=subprocess.PIPE, text=True, check=False)
    lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    shutil.rmtree(out) if out.is_dir() else out.unlink(missing_ok=True)
    return json.loads(lines[-1]) if lines and not ended.returncode else {}


def main() -> None:
    """Read the command line, write the model, copy it, export it, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parameters", default="1B", choices=SHAPES)
    parser.add_argument("--limit", default="1.2GB")
    parser.add_argument("--folder", action="store_true")
    parser.add_argument("--work", default="")
    parser.add_argument("--kinds", default=",".join(SCHEMES))
    for hidden in ("--child", "--source", "--out"):
        parser.add_argument(hidden, default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(run(options.child, Path(options.source), Path(options.out), options.limit)))
        return
    with tempfile.TemporaryDirectory() as made:
        work = Path(options.work or made)
        os.environ |= {"WORKBENCH_CACHE_FOLDER": "", "WORKBENCH_SCRATCH_FOLDER": str(work / "scratch")}
        folder = work / f"model-{options.parameters}"
        if not folder.exists():
            write_model(folder, *SHAPES[options.parameters])
        file = folder / "model.safetensors"
        rows = []
        print(f"{'kind':20} {'wall s':>8} {'opening':>8} {'CPU s':>7} {'copy s':>7} {'speed':>6} {'resident GB':>12}")
        for kind in options.kinds.split(","):
            copied = copying(file, work / "copy")
            figures = child(kind, folder if options.folder else file, work / f"written-{kind}", options.limit)
            if options.parameters != "8B":  # which takes minutes
                copied = (copied + copying(file, work / "copy")) / 2  # the disk's speed changes
            if not figures:
                continue
            speed, resident = copied / figures["wall"], figures["resident"] / 1e9
            over = " slow" * (speed < SPEED) + " large" * (resident >= LIMIT)
            print(
                f"{kind:20} {figures['wall']:8.1f} {figures['opening']:8.1f} {figures['cpu']:7.1f} {copied:7.1f} "
                f"{speed:6.2f} {resident:12.2f}{over}", flush=True,
            )  # fmt: skip
            rows.append({"kind": kind, "scheme": SCHEMES[kind], **figures, "copying": copied})
        print(json.dumps({"parameters": options.parameters, "bytes": file.stat().st_size, "rows": rows}))


if __name__ == "__main__":
    main()

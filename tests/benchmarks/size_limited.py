"""A model larger than the memory that it may take: each step's anonymous memory and time, with the limit and without.

    python tests/benchmarks/size_limited.py [--hidden N] [--layers N] [--limit SIZE] [--work FOLDER] [--steps A,B]

Writes a random Llama in bfloat16 (default: 1.1 B weights, 2.2 GB) and runs every step in a process of its own.  The
peak is of ``RssAnon``, sampled every 10 ms: what files back does not count.  Time is CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

VOCABULARY = 32_000
STEPS = ("open", "calibrate", "score", "evaluate", "gptq", "gguf", "safetensors")


def shapes(hidden: int, layers: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the tensors of a Llama whose queries have 32 heads and whose keys and values have 4."""
    inner, narrow = 11 * hidden // 4, hidden // 8
    yield "model.embed_tokens.weight", (VOCABULARY, hidden)
    for number in range(layers):
        block = f"model.layers.{number}."
        for name, rows in (("q", hidden), ("k", narrow), ("v", narrow), ("o", hidden)):
            yield f"{block}self_attn.{name}_proj.weight", (rows, hidden)
        yield f"{block}mlp.gate_proj.weight", (inner, hidden)
        yield f"{block}mlp.up_proj.weight", (inner, hidden)
        yield f"{block}mlp.down_proj.weight", (hidden, inner)
        yield f"{block}input_layernorm.weight", (hidden,)
        yield f"{block}post_attention_layernorm.weight", (hidden,)
    yield "model.norm.weight", (hidden,)
    yield "lm_head.weight", (VOCABULARY, hidden)


def write_model(folder: Path, hidden: int, layers: int) -> None:
    """Write the checkpoint, one tensor at a time."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden,
        "num_hidden_layers": layers, "intermediate_size": 11 * hidden // 4,
        "vocab_size": VOCABULARY, "num_attention_heads": 32, "num_key_value_heads": 4,
        "max_position_embeddings": 2048, "tie_word_embeddings": False,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    header: dict[str, Any] = {}
    end = 0
    for name, shape in shapes(hidden, layers):
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end := end + 2 * count]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    generator = torch.Generator().manual_seed(0)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, shape in shapes(hidden, layers):
            scale = 0.6 * shape[-1] ** -0.5
            random = torch.empty(shape).normal_(0, scale, generator=generator) if len(shape) > 1 else torch.ones(shape)
            file.write(random.bfloat16().view(torch.int16).numpy().tobytes())


def watched() -> Callable[[], int]:
    """Start to watch this process's anonymous memory and return what says its peak."""
    from workbench.memory import anonymous_memory

    peak = [0]

    def watch() -> None:
        while True:
            peak[0] = max(peak[0], anonymous_memory())
            time.sleep(0.01)

    threading.Thread(target=watch, daemon=True).start()
    return lambda: peak[0]


def run(step: str, work: Path, limit: str) -> dict[str, float]:
    """Run one step in this process."""
    from contextlib import nullcontext

    import workbench as wb

    peak, session_file = watched(), work / "session.qwb"
    with wb.memory_limit(limit) if limit else nullcontext():
        model = wb.open(work / "model")
        session = wb.Session.load(session_file) if session_file.exists() else None
        data: dict[str, Any] = {"samples": 2}
        if step == "calibrate":
            wb.calibrate(model, work / "tokens.npy", **data).save(session_file)
        elif step == "score" and session is not None:
            wb.score(session, model=model, schemes=("int4-g128-asym", "int8", "q4_0")).save(session_file)
        elif session is not None:
            linear = [layer for layer in session.model.stored if "layers" in layer.name]
            scheme, algorithm = "q4_0" if step == "gguf" else "int4-g128-asym", "gptq" if step == "gptq" else "rtn"
            plan = wb.Plan.uniform(linear, scheme, algorithm=algorithm)
            if step == "gptq":
                wb.quantize(model, plan, session=session)
            elif step == "evaluate":
                wb.evaluate(session, plan, model=model, data=work / "tokens.npy", **data)
            else:
                wb.apply(model, plan, step, work / f"written.{step}", session=session)
    return {"cpu": sum(resource.getrusage(resource.RUSAGE_SELF)[:2]), "anonymous": float(peak())}


def child(step: str, work: Path, limit: str) -> dict[str, float]:
    """Return what a step measures in a process of its own; nothing, with the reason on stderr, where it fails."""
    arguments = [sys.executable, __file__, "--child", step, "--work", str(work), "--limit", limit]
    ended = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=False)
    lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines and not ended.returncode else {}


def main() -> None:
    """Read the command line, write the model, run the steps, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=22)
    parser.add_argument("--limit", default="2GB")
    parser.add_argument("--work", default="")
    parser.add_argument("--steps", default=",".join(STEPS))
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(run(options.child, Path(options.work), options.limit)))
        return
    with tempfile.TemporaryDirectory() as made:
        import numpy as np

        work = Path(options.work or made)
        os.environ["WORKBENCH_CACHE_FOLDER"] = ""  # nothing of an earlier run is gone on with
        if not (work / "model").exists():
            write_model(work / "model", options.hidden, options.layers)
        np.save(work / "tokens.npy", np.random.default_rng(0).integers(0, VOCABULARY, (4, 128)))
        print(f"{'step':12} {'limited CPU s':>14} {'free CPU s':>11} {'ratio':>6} {'limited GB':>11} {'free GB':>8}")
        rows = []
        for step in options.steps.split(","):
            free, limited = (child(step, work, limit) for limit in ("", options.limit))
            ratio = limited.get("cpu", float("nan")) / free.get("cpu", float("nan"))
            figures = [limited.get("cpu"), free.get("cpu"), ratio]
            figures += [each.get("anonymous", float("nan")) / 1e9 for each in (limited, free)]
            print(f"{step:12} " + " ".join(f"{each or float('nan'):11.2f}" for each in figures), flush=True)
            rows.append({"step": step, "limited": limited, "free": free})
        print(json.dumps({"limit": options.limit, "hidden": options.hidden, "layers": options.layers, "rows": rows}))


if __name__ == "__main__":
    main()

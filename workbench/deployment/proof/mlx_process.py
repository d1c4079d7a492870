"""The process that runs a checkpoint in mlx-lm: a request (JSON) on standard input, arrays and figures to a file.

It imports nothing of the workbench.  Codes stay packed; everything else is float32.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def main() -> None:
    """Carry out one request: ``file``, ``out``, ``samples``, ``positions``, ``memory``, ``embeddings``, ``text``."""
    request = json.load(sys.stdin)
    os.environ["HF_HUB_OFFLINE"] = "1"  # settings of an untrusted folder went along
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (request["memory"], request["memory"]))
    import mlx.core as mx
    import mlx_lm
    from mlx_lm.utils import load_model

    if request["embeddings"]:
        raise SystemExit("Error: mlx-lm runs models of text alone, which give a distribution of the next token")
    network, _ = load_model(Path(request["file"]))
    network.set_dtype(mx.float32)
    began = time.perf_counter()
    values = np.stack([_log_probabilities(network, sample, request["positions"]) for sample in request["samples"]])
    figures = {
        "runtime": f"mlx-lm {mlx_lm.__version__} ({str(mx.default_device().type).rpartition('.')[2]})",
        "tokens": _tokens(request),
        "prompt_tokens_per_second": sum(map(len, request["samples"])) / (time.perf_counter() - began),
        "generated_tokens_per_second": _generation(network, request["samples"][0]),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    np.save(request["out"] + ".npy", values)
    with open(request["out"] + ".json", "w", encoding="utf-8") as file:
        json.dump(figures, file)
    os._exit(0)


def _log_probabilities(network: Any, sample: list[int], positions: list[int]) -> np.ndarray:
    """Return float32 ``[positions, vocabulary]``."""
    import mlx.core as mx

    logits = network(mx.array([sample]))[0][mx.array(positions)].astype(mx.float32)
    return np.array(logits - mx.logsumexp(logits, axis=-1, keepdims=True))


def _generation(network: Any, sample: list[int]) -> float:
    import mlx.core as mx
    from mlx_lm.generate import generate_step

    began = time.perf_counter()
    made = sum(1 for _ in generate_step(mx.array(sample[: len(sample) // 2]), network, max_tokens=16))
    return made / (time.perf_counter() - began)


def _tokens(request: dict[str, Any]) -> list[int]:
    from transformers import AutoTokenizer

    if not request["text"]:
        return []
    loader: Any = AutoTokenizer
    tokenizer = loader.from_pretrained(request["file"], local_files_only=True, trust_remote_code=False)
    return [int(token) for token in tokenizer.encode(request["text"])]


if __name__ == "__main__":
    main()

"""The process that runs a GGUF file in llama.cpp: a request (JSON) on standard input, arrays and figures to a file.

It imports nothing of the workbench but its name, and ends with its work: llama.cpp ends a process whose file it does
not like, and this one is made to be ended.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import urllib.request
from typing import Any

import numpy as np

GENERATED = 32
"""Tokens that are generated to time it."""


def main() -> None:
    """Carry out one request: ``file``, ``out``, ``samples``, ``positions``, ``threads``, ``memory``, ``embeddings``."""
    request = json.load(sys.stdin)
    os.environ["GGML_NO_BACKTRACE"] = "1"
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (request["memory"], request["memory"]))
    import xllamacpp

    length = max(map(len, request["samples"]))
    began = time.perf_counter()
    server = xllamacpp.Server(_parameters(xllamacpp, request, length))
    figures: dict[str, Any] = {"load_seconds": time.perf_counter() - began, "runtime": xllamacpp.__version__}
    if request["embeddings"]:
        values = _embeddings(server, request["samples"])
    else:
        values = _log_probabilities(server, request["samples"], request["positions"], request["vocabulary"])
        figures |= _speed(server, request["samples"][0])
    if request["text"]:
        answer = _post(server, "/tokenize", {"content": request["text"], "add_special": False})
        figures["tokens"] = answer["tokens"]
    figures["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    np.save(request["out"] + ".npy", values)
    with open(request["out"] + ".json", "w", encoding="utf-8") as file:
        json.dump(figures, file)
    os._exit(0)  # what was asked for is written; the server's threads are not waited for


def _parameters(library: Any, request: Any, length: int) -> Any:
    """Return llama.cpp's settings: one slot, keys and values in float32, plain attention: nothing rounded but weights.

    What llama.cpp itself rounds stays: the inputs of quantized matrices (to Q8_0 or Q8_K).
    """
    settings = library.CommonParams()
    settings.model.path = request["file"]
    settings.n_ctx = settings.n_batch = settings.n_ubatch = max(length + GENERATED + 8, 64)
    settings.n_parallel, settings.warmup, settings.fit_params, settings.verbosity = 1, False, False, 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = request["threads"]
    settings.cache_ram_mib = 0
    settings.cache_type_k = settings.cache_type_v = library.ggml_type.GGML_TYPE_F32
    settings.flash_attn_type = library.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    if request["embeddings"]:
        settings.embedding, settings.embd_normalize = True, -1
        if request["embeddings"] == "mean":  # the file does not say how tokens are pooled
            settings.pooling_type = library.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    return settings


def _log_probabilities(server: Any, samples: list[list[int]], positions: list[int], vocabulary: int) -> np.ndarray:
    """Return float32 ``[samples, positions, vocabulary]``: the token after each position, with the true tokens before.

    The server keeps what it has read, so that each request reads one position more.  It reports no probabilities where
    it generates a part of a character or the end, so it is made to generate the letter a; what it reports is unbiased.
    """
    letter = (_post(server, "/tokenize", {"content": "a", "add_special": False})["tokens"] or [1])[-1]
    out = np.full((len(samples), len(positions), vocabulary), -np.inf, np.float32)
    for row, sample in enumerate(samples):
        for column, position in enumerate(positions):
            answer = _complete(server, {
                "prompt": sample[: position + 1], "n_predict": 1, "n_probs": vocabulary, "temperature": 0.0,
                "cache_prompt": True, "logit_bias": [[letter, 1e9]],
            })  # fmt: skip
            for entry in answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]:
                out[row, column, entry["id"]] = entry["logprob"]
    return out


def _speed(server: Any, sample: list[int]) -> dict[str, float]:
    """Return tokens per second for reading and for generating: together no more than the sample, as the context may
    hold no more."""
    prompt = sample[: max(len(sample) - GENERATED, (len(sample) + 1) // 2)]
    answer = _complete(server, {
        "prompt": prompt, "n_predict": GENERATED, "temperature": 0.0, "ignore_eos": True, "cache_prompt": False,
    })  # fmt: skip
    timings = answer["timings"]
    return {
        "prompt_tokens_per_second": timings["prompt_per_second"],
        "generated_tokens_per_second": timings["predicted_per_second"],
    }


def _complete(server: Any, request: Any) -> Any:
    answer = server.handle_completions(request)
    if "choices" not in answer:
        raise RuntimeError(f"llama.cpp answers {str(answer)[:300]}")
    return answer


def _embeddings(server: Any, samples: list[list[int]]) -> np.ndarray:
    answer = _post(server, "/embedding", {"content": samples, "embd_normalize": -1})
    return np.array([each["embedding"][0] for each in answer], np.float32)


def _post(server: Any, path: str, body: Any) -> Any:
    request = urllib.request.Request(
        server.listening_address + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main()

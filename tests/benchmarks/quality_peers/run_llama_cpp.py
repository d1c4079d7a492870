"""llama.cpp's own quantizer and its forward pass, through ``llama-cpp-python``, in the peers' environment.

A request (JSON) on standard input, an answer (JSON) in the last line of the output:

    {"quantize": [{"source": F, "out": F, "type": 15, "pure": false, "types": {"blk.0.attn_q.weight": 2}}],
     "imatrix": I.npz}
    {"measure": [F, ...], "reference": F, "windows": W.npy, "threads": 2}

The importance matrix is an ``.npz`` with one float32 vector for each tensor: the mean of its squared inputs by column.
"""

from __future__ import annotations

import ctypes
import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import llama_cpp
import numpy as np


def main() -> None:
    """Carry out the request on standard input."""
    request = json.load(sys.stdin)
    silent = llama_cpp.llama_log_callback(_only_errors)
    llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    if "quantize" in request:
        importance = _importance(request.get("imatrix"))
        for job in request["quantize"]:
            quantize(job, importance)
        print(json.dumps({}))
    else:
        print(json.dumps(measure(request)))


def _only_errors(level: int, text: bytes, data: Any) -> None:
    if level >= 4:  # errors
        sys.stderr.write(text.decode(errors="replace"))


def _importance(path: str | None) -> Any:
    """Return llama.cpp's array of importance vectors, closed by an empty entry, and what keeps it alive."""
    if path is None:
        return None
    vectors = {name: np.ascontiguousarray(data, np.float32) for name, data in np.load(path).items()}
    entries = (llama_cpp.llama_model_imatrix_data * (len(vectors) + 1))()
    for entry, (name, data) in zip(entries, vectors.items(), strict=False):
        entry.name, entry.size = name.encode(), data.size
        entry.data = data.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    return entries, vectors


def quantize(job: dict[str, Any], importance: Any) -> None:
    """Write one file by llama.cpp's quantizer."""
    settings = llama_cpp.llama_model_quantize_default_params()
    settings.ftype, settings.pure, settings.nthread = job["type"], job.get("pure", False), 2
    types = job.get("types", {})
    overrides = (llama_cpp.llama_model_tensor_override * (len(types) + 1))()
    for entry, (name, kind) in zip(overrides, types.items(), strict=False):
        entry.pattern, entry.type = f"^{re.escape(name)}$".encode(), kind
    if types:
        settings.tt_overrides = overrides
    if "token_embd.weight" in types:
        settings.token_embedding_type = types["token_embd.weight"]
    if importance is not None:
        settings.imatrix = importance[0]
    if llama_cpp.llama_model_quantize(job["source"].encode(), job["out"].encode(), ctypes.byref(settings)):
        raise SystemExit(f"llama.cpp could not quantize to {job['out']}")


def measure(request: dict[str, Any]) -> dict[str, Any]:
    """Return KL(reference || file) in nats per token of each file, its standard error over windows, top-1 agreement."""
    windows = np.load(request["windows"])
    reference = list(_log_probabilities(request["reference"], windows, request["threads"]))
    answer = {}
    for file in request["measure"]:
        losses, agreeing = [], []
        for expected, observed in zip(reference, _log_probabilities(file, windows, request["threads"]), strict=True):
            losses.append(float((np.exp(expected) * (expected - observed)).sum(axis=1, dtype=np.float64).mean()))
            agreeing.append(float((expected.argmax(axis=1) == observed.argmax(axis=1)).mean()))
        error = float(np.std(losses, ddof=1) / len(losses) ** 0.5)
        answer[file] = {"kl": float(np.mean(losses)), "error": error, "agreement": float(np.mean(agreeing))}
    return answer


def _log_probabilities(file: str, windows: np.ndarray, threads: int) -> Iterator[np.ndarray]:
    """Yield float32 ``[tokens, vocabulary]`` for each window: the log-probabilities of every next token."""
    length = windows.shape[1]
    model = llama_cpp.Llama(
        file, n_ctx=length, n_batch=length, n_ubatch=length, logits_all=True, verbose=False, n_threads=threads,
        n_threads_batch=threads, type_k=llama_cpp.GGML_TYPE_F32, type_v=llama_cpp.GGML_TYPE_F32,
    )  # fmt: skip
    for window in windows:
        model.reset()
        model.eval([int(token) for token in window])
        logits = np.array(model.scores[:length], np.float32)
        logits -= logits.max(axis=1, keepdims=True)
        yield logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    model.close()


if __name__ == "__main__":
    main()

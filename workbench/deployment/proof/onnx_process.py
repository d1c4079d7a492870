"""The process that runs an ONNX file in ONNX Runtime or OpenVINO: a request (JSON) on standard input, arrays to a file.

It imports nothing of the workbench, and ends with its work: a runtime may end a process whose file it does not like.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]
Run = Callable[[Arrays], np.ndarray]
REPEATS = 3


def main() -> None:
    """Carry out one request: ``file``, ``arrays``, ``out``, ``runtime``, ``positions``, ``threads``, ``memory``."""
    request = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (request["memory"], request["memory"]))
    with np.load(request["arrays"], allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    opened = _openvino if request["runtime"] == "openvino" else _onnxruntime
    names, run, version = opened(request["file"], request["threads"], request["output"])
    missing = [name for name in names if name not in arrays]
    if missing:
        raise SystemExit(f"Error: the graph takes {', '.join(missing)}, which the samples do not have")
    arrays = {name: arrays[name] for name in names}
    output = run(arrays)  # the first is slower: memory is laid out
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        run(arrays)
        seconds.append(time.perf_counter() - began)
    if request["positions"]:
        output = output[:, request["positions"]]
    figures = {"runtime": version, "seconds": min(seconds), "peak_bytes": _peak()}
    np.save(request["out"] + ".npy", output.astype(np.float32))
    with open(request["out"] + ".json", "w", encoding="utf-8") as file:
        json.dump(figures, file)
    os._exit(0)  # what was asked for is written; the runtime's threads are not waited for


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _onnxruntime(file: str, threads: int, output: str) -> tuple[list[str], Run, str]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    first = output or session.get_outputs()[0].name

    def run(arrays: Arrays) -> np.ndarray:
        return np.asarray(session.run([first], arrays)[0])

    return [each.name for each in session.get_inputs()], run, f"ONNX Runtime {onnxruntime.__version__}"


def _openvino(file: str, threads: int, output: str) -> tuple[list[str], Run, str]:
    import openvino

    settings: dict[str, Any] = {
        "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    }  # fmt: skip
    try:
        compiled = openvino.Core().compile_model(file, "CPU", settings)
    except RuntimeError as error:  # of many lines; the first say in which of its sources
        lines = [line.strip() for line in str(error).splitlines()]
        words = [line for line in lines if line and not line.startswith(("Exception from", "Check "))]
        raise SystemExit(f"Error: {' '.join(words) or error}") from None
    names = [each.get_any_name() for each in compiled.inputs]

    def run(arrays: Arrays) -> np.ndarray:
        return np.array(compiled(arrays)[output or 0])

    return names, run, f"OpenVINO {openvino.__version__.split('-')[0]}"


if __name__ == "__main__":
    main()

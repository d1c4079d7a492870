"""The process that runs an ONNX file in ONNX Runtime or OpenVINO: a request (JSON) on standard input, arrays to a file.

It imports nothing of the workbench, and ends with its work: a runtime may end a process whose file it does not like.
"""

from __future__ import annotations

import json
import mmap
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

Arrays = dict[str, np.ndarray]
Run = Callable[[Arrays, list[str]], list[np.ndarray]]
"""Returns the outputs called so."""

Shapes = dict[str, list[Any]]
"""The sizes of every input: numbers for those that are fixed."""
REPEATS = 3

IN_FLOATING_POINT = ("session.disable_quant_qdq", "1")
"""The option of a session with which ONNX Runtime multiplies what DequantizeLinear gives, as the file says."""

OPENVINO_IN_FLOATING_POINT = ("LP_TRANSFORMS_MODE", False)
"""The same of OpenVINO's processor plugin."""

WITHOUT_VNNI = " (8-bit products in floating point: no VNNI here)"
"""What stands behind the version of a runtime that these options hold back."""


def main() -> None:
    """Carry out one request: ``file``, ``arrays``, ``out``, ``runtime``, ``positions``, ``threads``, ``memory``.

    Of several ``pieces``, arrays have the number of theirs before their names, and what these give is stacked.  Where
    it names ``taps``, these outputs go to ``out`` with the ending npz by their places, and nothing is timed.
    """
    request = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (request["memory"], request["memory"]))
    with np.load(request["arrays"], allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    opened = _openvino if request["runtime"] == "openvino" else _onnxruntime
    takes, first, run, version = opened(request["file"], request["threads"], bool(request["taps"]))
    pieces = [_taken(takes, arrays, f"{at}:") for at in range(request["pieces"])] or [_taken(takes, arrays, "")]
    if request["taps"]:
        values: Any = {str(at): value for at, value in enumerate(run(pieces[0], request["taps"]))}
        np.savez(request["out"] + ".npz", **values)
        _end(request, {"runtime": version})
    names = [request["output"] or first]
    outputs = [run(piece, names)[0] for piece in pieces]  # the first is slower: memory is laid out
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        for piece in pieces:
            run(piece, names)
        seconds.append(time.perf_counter() - began)
    if request["positions"]:
        outputs = [output[:, request["positions"]] for output in outputs]
    output = np.stack(outputs) if request["pieces"] else outputs[0]
    np.save(request["out"] + ".npy", output.astype(np.float32))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    _end(request, {"runtime": version, "seconds": min(seconds), "peak_bytes": peak})


def _taken(names: Shapes, arrays: Arrays, mark: str) -> Arrays:
    missing = [name for name in names if mark + name not in arrays]
    if missing:
        raise SystemExit(f"Error: the graph takes {', '.join(missing)}, which the samples do not have")
    for name, shape in names.items():
        came = arrays[mark + name].shape
        if any(isinstance(size, int) and 0 < size != there for size, there in zip(shape, came, strict=False)):
            raise SystemExit(f"Error: the graph takes {name} of {_by(shape)} alone, and the samples have {_by(came)}")
    return {name: arrays[mark + name] for name in names}


def _by(shape: Iterable[Any]) -> str:
    return " x ".join(str(size) if isinstance(size, int) else "any" for size in shape)


def _end(request: Any, figures: dict[str, Any]) -> NoReturn:
    with open(request["out"] + ".json", "w", encoding="utf-8") as file:
        json.dump(figures, file)
    os._exit(0)  # what was asked for is written; the runtime's threads are not waited for


def _onnxruntime(file: str, threads: int, tapped: bool) -> tuple[Shapes, str, Run, str]:
    """Open a file; a ``tapped`` one without optimizations, where these fail for the outputs that were added."""
    import onnxruntime

    options, version = onnxruntime.SessionOptions(), f"ONNX Runtime {onnxruntime.__version__}"
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    if rounds_inputs(file) and saturates():
        options.add_session_config_entry(*IN_FLOATING_POINT)
        version += WITHOUT_VNNI
    try:
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    except Exception:  # its errors have no common type
        if not tapped:
            raise
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

    def run(arrays: Arrays, names: list[str]) -> list[np.ndarray]:
        return [np.asarray(each) for each in session.run(names, arrays)]

    names = {each.name: each.shape for each in session.get_inputs()}
    return names, session.get_outputs()[0].name, run, version


def rounds_inputs(file: str) -> bool:
    """Return whether a file has QuantizeLinear, by its bytes; "DequantizeLinear" has another q."""
    with open(file, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(b"QuantizeLinear") >= 0


def saturates() -> bool:
    """Return whether products of 8-bit codes may saturate here, as ONNX Runtime's and OpenVINO's do without VNNI.

    Two products of codes are added in 16 bits on such an x86 processor, and what does not fit is cut
    (https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html).
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
            flags = next((line for line in stream if line.startswith("flags")), "")
    except OSError:
        return True  # not known: numbers in floating point are right everywhere
    return "vnni" not in flags


def _openvino(file: str, threads: int, tapped: bool) -> tuple[Shapes, str, Run, str]:
    import openvino

    settings: dict[str, Any] = {
        "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    }  # fmt: skip
    version = f"OpenVINO {openvino.__version__.split('-')[0]}"
    if rounds_inputs(file) and saturates():
        settings |= dict([OPENVINO_IN_FLOATING_POINT])
        version += WITHOUT_VNNI
    try:
        compiled = openvino.Core().compile_model(file, "CPU", settings)
    except RuntimeError as error:  # of many lines; the first say in which of its sources
        lines = [line.strip() for line in str(error).splitlines()]
        words = [line for line in lines if line and not line.startswith(("Exception from", "Check "))]
        raise SystemExit(f"Error: {' '.join(words) or error}") from None
    shapes = [(each.get_any_name(), each.partial_shape) for each in compiled.inputs]
    names = {
        name: [] if shape.rank.is_dynamic else [size.get_length() if size.is_static else None for size in shape]
        for name, shape in shapes
    }

    def run(arrays: Arrays, names: list[str]) -> list[np.ndarray]:
        values = compiled(arrays)
        return [np.array(values[name]) for name in names]

    return names, compiled.outputs[0].get_any_name(), run, version


if __name__ == "__main__":
    main()

"""A process of our own that runs one exported file in its runtime, and may end as it likes."""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from workbench.atomic import temporary_folder
from workbench.errors import BackendUnavailableError, ExportError
from workbench.installed import too_old
from workbench.memory import scratch_folder
from workbench.progress import Progress

SECONDS = 1800.0
MEMORY = 4.0
"""The process may hold this many times the file's bytes, and ``SPARE`` more."""
SPARE = 4 << 30

BEGIN = """
import ctypes, os, runpy, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != int(sys.argv[2]):
        os._exit(1)
runpy.run_path(sys.argv[1], run_name="__main__")
"""
"""What the process begins with: it ends with ours (prctl's 1 is PR_SET_PDEATHSIG), also where a signal ends that."""

PACKAGES = {
    "llama.cpp": (("xllamacpp",), "llama-cpp", "llama.cpp"),
    "transformers": (("compressed_tensors",), "compressed-tensors", "transformers"),
    "torchao": (("torchao",), "torchao", "torchao"),
    "mlx": (("mlx_lm", "mlx"), "mlx", "mlx-lm"),
    "onnxruntime": (("onnxruntime",), "onnx", "ONNX Runtime"),
    "openvino": (("openvino",), "openvino", "OpenVINO"),
}
"""Packages, the first of them with a least version, extra and title of every runtime that exported files are run in."""


def missing_package(runtime: str) -> str:
    """Return which package of a runtime is missing or too old, with the line that installs it; empty where none is."""
    packages, extra, title = PACKAGES[runtime]
    missing = next((package for package in packages if importlib.util.find_spec(package) is None), "")
    fault = f"the proof in {title} needs its package {missing}" if missing else too_old(packages[0].replace("_", "-"))
    upgrade = "" if missing else "--upgrade "
    return f"{fault}; install it: pip install {upgrade}'quantization-workbench[{extra}]'" if fault else ""


def require_package(runtime: str) -> None:
    """Raise BackendUnavailableError where a runtime's package is not installed."""
    if missing := missing_package(runtime):
        raise BackendUnavailableError(missing)


def threads_of_machine() -> int:
    """Return how many threads a runtime gets where nobody says: half the processors."""
    number = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # "4,2": of nested regions, too
    return (int(number) if number.isdecimal() else 0) or max((os.cpu_count() or 2) // 2, 1)


def bytes_of(file: Path) -> int:
    """Return the bytes of an exported file, with those of the tensors beside it."""
    beside = file.parent.glob(f"{glob.escape(file.name)}*[._]data*")  # ours, and model.onnx_data of other programs
    return sum(each.stat().st_size for each in (file, *beside) if each.is_file())


def memory_for(file: Path) -> int:
    """Return the bytes that a process which runs ``file`` may hold."""
    return int(MEMORY * bytes_of(file)) + SPARE


@contextlib.contextmanager
def proof_folder() -> Iterator[Path]:
    """Yield a folder for what a runtime runs and gives, on the disk for what is large, which is gone afterwards."""
    with temporary_folder(scratch_folder(), ExportError, "what the runtime is to run") as folder:
        yield folder


def carry_out(
    script: Path, request: Any, log: Path, runtime: str, seconds: float, progress: Progress, marks: Sequence[str]
) -> None:
    """Run ``script`` with a request (JSON) to its end; ExportError if it fails or takes more than ``seconds``.

    It writes files that begin with the request's ``out``.  The message is the first line of the log that holds one of
    ``marks``.
    """
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", BEGIN, str(script), str(os.getpid())],
            stdin=subprocess.PIPE, stdout=stream, stderr=stream, cwd=log.parent,
        )  # fmt: skip
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(request).encode())
            process.stdin.close()
            began = time.monotonic()
            while process.poll() is None:
                if time.monotonic() - began > seconds:
                    raise ExportError(f"{runtime} did not end within {seconds:.0f} seconds; give fewer samples")
                progress(min((time.monotonic() - began) / seconds, 0.99), f"running it in {runtime}")
                time.sleep(0.05)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
    if process.returncode != 0 or not glob.glob(glob.escape(request["out"]) + ".*"):
        words = _words(log.read_text("utf-8", "replace"), marks, process.returncode)
        raise ExportError(f"{runtime} does not run the file: {words}")


def _words(log: str, marks: Sequence[str], code: int) -> str:
    """Return the line of a log that says what went wrong, or how the process ended."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    for mark in marks:
        for line in lines:
            if mark in line:
                return line[:300]
    if code < 0:
        reason = "; the system does so where memory is short" if code == -signal.SIGKILL else ""
        return f"it was ended by the signal {signal.Signals(-code).name}{reason}"
    return lines[-1][-300:] if lines else "it ended without an answer"

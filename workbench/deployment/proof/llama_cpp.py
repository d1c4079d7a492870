"""A GGUF file run by llama.cpp, on tokens that we give it, in a process that may end as it likes."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.errors import BackendUnavailableError, ExportError
from workbench.progress import Progress, silent

SECONDS = 1800.0
MEMORY = 4.0
"""The process may hold this many times the file's bytes, and ``SPARE`` more."""
SPARE = 4 << 30


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """What llama.cpp gave: ``values`` are log-probabilities ``[samples, positions, vocabulary]``, or embeddings
    ``[samples, features]``; ``tokens`` those of the text that was asked about; bytes and speeds as it counts them."""

    values: np.ndarray
    version: str
    peak_bytes: int
    prompt_tokens_per_second: float = 0.0
    generated_tokens_per_second: float = 0.0
    tokens: tuple[int, ...] = ()


def require_llama_cpp() -> None:
    """Raise BackendUnavailableError, with the line that installs it, where llama.cpp is not installed."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise BackendUnavailableError(
            "the proof in llama.cpp needs its package xllamacpp; install it: "
            "pip install 'quantization-workbench[llama-cpp]'"
        )


def run(
    file: Path, samples: Sequence[Sequence[int]], positions: Sequence[int], vocabulary: int, *, text: str = "",
    embeddings: bool = False, threads: int | None = None, seconds: float = SECONDS, progress: Progress = silent,
) -> Run:  # fmt: skip
    """Run ``file`` on ``samples`` (token ids, all of one length) and return what it gives after ``positions``.

    Raises ExportError with llama.cpp's own words for a file that it does not run, BackendUnavailableError where it is
    not installed.
    """
    require_llama_cpp()
    with tempfile.TemporaryDirectory(prefix="workbench-proof-") as folder:
        out = str(Path(folder) / "out")
        request = {
            "file": str(file), "out": out, "samples": [list(map(int, sample)) for sample in samples],
            "positions": list(positions), "vocabulary": vocabulary, "text": text, "embeddings": embeddings,
            "threads": threads or _threads(), "memory": int(MEMORY * file.stat().st_size) + SPARE,
        }  # fmt: skip
        log = Path(folder) / "log"
        _carry_out(request, log, seconds, progress)
        figures = json.loads(Path(out + ".json").read_text(encoding="utf-8"))
        values = np.load(out + ".npy")
    return Run(
        values=values, version=figures["runtime"], peak_bytes=figures["peak_bytes"],
        prompt_tokens_per_second=figures.get("prompt_tokens_per_second", 0.0),
        generated_tokens_per_second=figures.get("generated_tokens_per_second", 0.0),
        tokens=tuple(figures.get("tokens", ())),
    )  # fmt: skip


def _threads() -> int:
    return int(os.environ.get("OMP_NUM_THREADS", 0)) or max((os.cpu_count() or 2) // 2, 1)


def _carry_out(request: Any, log: Path, seconds: float, progress: Progress) -> None:
    """Run the process to its end; raise ExportError if it fails or takes more than ``seconds``."""
    command = [sys.executable, str(Path(__file__).with_name("llama_cpp_process.py"))]
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=stream, stderr=stream, cwd=log.parent)
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(request).encode())
            process.stdin.close()
            began = time.monotonic()
            while process.poll() is None:
                if time.monotonic() - began > seconds:
                    raise ExportError(f"llama.cpp did not end within {seconds:.0f} seconds; give fewer samples")
                progress(min((time.monotonic() - began) / seconds, 0.99), "running it in llama.cpp")
                time.sleep(0.05)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
    if process.returncode != 0:
        raise ExportError(f"llama.cpp does not run the file: {_words(log.read_text('utf-8', 'replace'))}")


def _words(log: str) -> str:
    """Return the line of a log that says what went wrong."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    marks = ("error loading model", "GGML_ASSERT", "Error:", "error:", "failed")
    for mark in marks:
        for line in lines:
            if mark in line:
                return line[-300:]
    return lines[-1][-300:] if lines else "it ended without a word"

"""A GGUF file run by llama.cpp, on tokens that we give it, in a process that may end as it likes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.deployment.proof import child
from workbench.progress import Progress, silent

MARKS = ("error loading model", "GGML_ASSERT", "Error:", "error:", "failed")


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
    child.require_package("llama.cpp")


def run(
    file: Path, samples: Sequence[Sequence[int]], positions: Sequence[int], vocabulary: int, *, text: str = "",
    embeddings: str = "", threads: int | None = None, seconds: float = child.SECONDS, progress: Progress = silent,
) -> Run:  # fmt: skip
    """Run ``file`` on ``samples`` (token ids, all of one length) and return what it gives after ``positions``, or where
    ``embeddings`` are made of them, "mean" or "own" for how the file says, one of each sample.

    Raises ExportError with llama.cpp's own words for a file that it does not run, BackendUnavailableError where it is
    not installed.
    """
    require_llama_cpp()
    with child.proof_folder() as folder:
        out = str(folder / "out")
        request = {
            "file": str(file.absolute()), "out": out, "samples": [list(map(int, sample)) for sample in samples],
            "positions": list(positions), "vocabulary": vocabulary, "text": text, "embeddings": embeddings,
            "threads": threads or child.threads_of_machine(), "memory": child.memory_for(file),
        }  # fmt: skip
        script, log = Path(__file__).with_name("llama_cpp_process.py"), folder / "log"
        child.carry_out(script, request, log, "llama.cpp", seconds, progress, MARKS)
        return run_of(out)


def run_of(out: str) -> Run:
    """Return what a process wrote to files that begin with ``out``."""
    figures = json.loads(Path(out + ".json").read_text(encoding="utf-8"))
    return Run(
        values=np.load(out + ".npy"), version=figures["runtime"], peak_bytes=figures["peak_bytes"],
        prompt_tokens_per_second=figures.get("prompt_tokens_per_second", 0.0),
        generated_tokens_per_second=figures.get("generated_tokens_per_second", 0.0),
        tokens=tuple(figures.get("tokens", ())),
    )  # fmt: skip

"""One step of a model under a limit that the system enforces, in a process of its own: ``FOLDER STEP SIZE``.

``RLIMIT_DATA`` counts private writable memory, as ``--memory`` does, also where it is reserved and never touched; what
files back is free.
"""

from __future__ import annotations

import resource
import sys
from contextlib import nullcontext
from pathlib import Path

import torch

import workbench as wb
from workbench.memory import anonymous_memory
from workbench.models.sources.lean_transformers import transformers

torch.set_num_threads(1)

RESERVED = 150_000_000
"""Bytes that stacks of threads, the allocator and the compiler of kernels reserve meanwhile and never touch."""


def allow(nbytes: int) -> None:
    """Let this process have at most so many bytes of its own."""
    _ = transformers.LlamaForCausalLM
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    reserved = int(next(line for line in lines if line.startswith("VmData")).split()[1]) * 1024
    most = reserved + RESERVED + max(nbytes - anonymous_memory(), 0)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def main(folder: Path, step: str, size: int, told: bool) -> None:
    """Run a step; ``told``: the workbench knows of the limit."""
    session_file, tokens = folder / "session.qwb", folder / "tokens.npy"
    allow(size)
    with wb.memory_limit(size) if told else nullcontext():
        model = wb.open(folder / "model")
        if step == "calibrate":
            wb.calibrate(model, tokens).save(session_file)
            return
        session = wb.Session.load(session_file)
        linear = [layer for layer in session.model.stored if "layers" in layer.name]
        scheme, algorithm = "q4_0" if step == "gguf" else "int4-g128-asym", "gptq" if step == "gptq" else "rtn"
        plan = wb.Plan.uniform(linear, scheme, algorithm=algorithm)
        if step == "gptq":
            wb.quantize(model, plan, session=session)
        else:
            wb.apply(model, plan, step, folder / f"written.{step}", session=session)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:] != ["untold"])

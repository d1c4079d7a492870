"""Runs every variant of the kernels of one source; started with the sanitizers' libraries loaded (QW_SANITIZE=1).

    python -m tests.kernels.shim.sanitized w4a16.cu
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from workbench_kernels.catalog import CUDA_OPS
from workbench_kernels.cuda_bench import check_results
from workbench_kernels.launch import Launch
from workbench_kernels.source import CudaSource

from . import emulator
from .emulator import Emulator


def main(file: str) -> None:
    """Check; a sanitizer's complaint ends the process."""
    torch.set_num_threads(1)
    count = 0
    for op in CUDA_OPS:
        for number, shape in enumerate(op.variants if op.source.file == file else ()):
            problem = op.prepare(Emulator(order=("greedy", "forward")[number % 2]), 3, **shape)
            check_results(op, problem.launch(), problem.reference())
            count += 1
    print(f"checked {count} problems of {file}")


def faulty() -> None:
    """Write beyond the end of a tensor: the sanitizer must complain."""
    emulator.FOLDER = Path(__file__).parent
    source = CudaSource(file="faulty.cu", entries=("beyond_the_end",))
    launch = Launch(entry="beyond_the_end", grid=(1, 1, 1), block=1024, arguments=(torch.zeros(1024),))
    Emulator().run(source, launch)


if __name__ == "__main__":
    faulty() if sys.argv[1] == "--faulty" else main(sys.argv[1])

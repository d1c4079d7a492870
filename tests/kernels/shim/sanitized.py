"""Runs every variant of the kernels of one source; started with the sanitizers' libraries loaded (QW_SANITIZE=1).

    python -m tests.kernels.shim.sanitized w4a16.cu

Under ThreadSanitizer, by hand, as it takes minutes (one thread of the system for each CUDA thread):

    QW_SANITIZE=thread LD_PRELOAD=$(g++ -print-file-name=libtsan.so) TSAN_OPTIONS=halt_on_error=1 \\
        setarch -R python -m tests.kernels.shim.sanitized w4a16.cu
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
from workbench_kernels.bench.cuda import check_results
from workbench_kernels.build.source import CudaSource
from workbench_kernels.catalog import CUDA_OPS
from workbench_kernels.gpu.launch import Launch

from . import emulator
from .emulator import Emulator


def main(file: str) -> None:
    """Check every variant in every lane order (ThreadSanitizer: in one); a sanitizer's complaint ends the process."""
    torch.set_num_threads(1)
    threads = os.environ.get("QW_SANITIZE") == "thread"
    count = 0
    for op in CUDA_OPS:
        expected = () if op.name == "transformer block" and threads else op.variants
        for shape in expected if op.source.file == file else ():
            for order in ("greedy",) if threads else emulator.ORDERS:
                problem = op.prepare(Emulator(order=order, seed=5), 3, **shape)
                check_results(op, problem.launch(), problem.reference())
                count += 1
    print(f"checked {count} problems of {file}")


def faulty() -> None:
    """Write beyond the end of a tensor, or read without a barrier: the sanitizer must complain."""
    emulator.FOLDER = Path(__file__).parent
    source = CudaSource(file="faulty.cu", entries=("beyond_the_end", "no_barrier"))
    arguments = (torch.zeros(1024), torch.zeros(1024))
    if os.environ.get("QW_SANITIZE") == "thread":
        Emulator().run(source, Launch(entry="no_barrier", grid=(1, 1, 1), block=64, arguments=arguments))
    else:
        Emulator().run(source, Launch(entry="beyond_the_end", grid=(1, 1, 1), block=1024, arguments=arguments[:1]))


if __name__ == "__main__":
    faulty() if sys.argv[1] == "--faulty" else main(sys.argv[1])

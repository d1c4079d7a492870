"""Runs every variant of the kernels of one source; started with the sanitizers' libraries loaded (QW_SANITIZE=1).

    python -m tests.kernels.shim.sanitized w4a16.cu
"""

from __future__ import annotations

import sys

import torch
from workbench_kernels.catalog import CUDA_OPS
from workbench_kernels.cuda_bench import check_results

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


if __name__ == "__main__":
    main(sys.argv[1])

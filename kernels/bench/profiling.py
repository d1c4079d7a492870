"""The command line that profiles a kernel with Nsight Compute; imports neither torch nor CuPy."""

from __future__ import annotations


def ncu_command(title: str, program: str, launches: int = 0) -> str:
    """Return the command that profiles the kernels that ``program`` launches inside its NVTX ranges called ``title``.

    Clocks are left as they are; ``launches`` bounds how many are profiled (0: all).  Options: Nsight Compute CLI,
    "NVTX Filtering".
    """
    count = f"--launch-count {launches} " if launches else ""
    return f'ncu --nvtx --nvtx-include "{title}/" --set full --clock-control none {count}{program}'

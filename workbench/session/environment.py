"""Where and with what a result was made: versions only, no paths, no names."""

from __future__ import annotations

import platform

from workbench.session.session import Environment


def environment() -> Environment:
    """Return this process's versions, device and number of compute threads."""
    import numpy
    import torch

    import workbench

    device = f"cuda ({torch.cuda.get_device_name()})" if torch.cuda.is_available() else "cpu"
    return Environment(
        workbench=workbench.__version__, python=platform.python_version(), numpy=numpy.__version__,
        torch=str(torch.__version__), device=device, threads=torch.get_num_threads(),
    )  # fmt: skip

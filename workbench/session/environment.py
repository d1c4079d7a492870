"""Where and with what a result was made: versions only, no paths, no names."""

from __future__ import annotations

import platform

from workbench.session.session import Environment
from workbench.version import VERSION


def environment() -> Environment:
    """Return this process's versions, device and number of compute threads."""
    import numpy
    import torch

    device = f"cuda ({torch.cuda.get_device_name()})" if torch.cuda.is_available() else "cpu"
    return Environment(
        workbench=VERSION, python=platform.python_version(), numpy=numpy.__version__,
        torch=str(torch.__version__), device=device, threads=torch.get_num_threads(),
    )  # fmt: skip

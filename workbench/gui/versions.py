"""What the application is made of, for About and for reports of crashes: versions only, no paths."""

from __future__ import annotations

import platform
import traceback
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("PySide6-Essentials", "pyqtgraph", "qasync", "numpy", "scipy", "h5py", "torch", "transformers", "cupy")


def versions() -> tuple[str, ...]:
    """Return one line for the workbench, Python, the system, and each package that is installed."""
    import workbench

    lines = [f"Quantization Workbench {workbench.__version__}", f"Python {platform.python_version()}"]
    lines.append(f"{platform.system()} {platform.release()} on {platform.machine()}")
    for name in PACKAGES:
        try:
            lines.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return tuple(lines)


def crash_details(error: BaseException) -> str:
    """Return the traceback of ``error`` and the versions, to be copied into a report."""
    return "".join(traceback.format_exception(error)) + "\n" + "\n".join(versions())

"""The version of the workbench (pyproject.toml reads it here), and what else a result or a crash may depend on."""

from __future__ import annotations

VERSION = "0.1.0"

PACKAGES = ("PySide6-Essentials", "pyqtgraph", "qasync", "numpy", "scipy", "h5py", "torch", "transformers", "cupy")


def versions() -> tuple[str, ...]:
    """Return one line for the workbench, Python, the system, and each package that is installed; no paths."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    lines = [f"Quantization Workbench {VERSION}", f"Python {platform.python_version()}"]
    lines.append(f"{platform.system()} {platform.release()} on {platform.machine()}")
    for name in PACKAGES:
        try:
            lines.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return tuple(lines)


def crash_details(error: BaseException) -> str:
    """Return the traceback of ``error`` and the versions, to be copied into a report."""
    import traceback

    return "".join(traceback.format_exception(error)) + "\n" + "\n".join(versions())

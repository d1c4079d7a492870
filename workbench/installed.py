"""Versions of optional packages: those that are there against those that this distribution asks for."""

from __future__ import annotations

import importlib.metadata
import re
from functools import cache

from workbench.errors import BackendUnavailableError

DISTRIBUTION = "quantization-workbench"


def require_new(package: str, extra: str) -> None:
    """Raise BackendUnavailableError, with the line that installs it, where a package is older than ``extra`` asks."""
    if fault := too_old(package):
        raise BackendUnavailableError(f"{fault}; install it: pip install --upgrade '{DISTRIBUTION}[{extra}]'")


def too_old(package: str) -> str:
    """Return what is wrong with the version of a package; empty for one that is new enough, or not installed."""
    try:
        own, least = importlib.metadata.version(package), _least().get(package, "")
    except importlib.metadata.PackageNotFoundError:
        return ""
    if not least or _numbers(own) >= _numbers(least):
        return ""
    return f"the package {package} is of version {own[:40]}, and at least {least} is needed"


@cache
def _least() -> dict[str, str]:
    """Return the least version of every package that an extra of ours names."""
    try:
        lines = importlib.metadata.requires(DISTRIBUTION) or ()
    except importlib.metadata.PackageNotFoundError:
        return {}
    found = (re.match(r"([\w.-]+)>=([\d.]+)", line) for line in lines)
    return {each[1]: each[2] for each in found if each}


def _numbers(version: str) -> tuple[int, ...]:
    first = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, first[0].split("."))) if first else ()

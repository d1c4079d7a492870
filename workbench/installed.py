"""Versions of optional packages: those that are there against those that this distribution asks for."""

from __future__ import annotations

import importlib.metadata
from functools import cache

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from workbench.errors import BackendUnavailableError

DISTRIBUTION = "quantization-workbench"


def require_new(package: str, extra: str) -> None:
    """Raise BackendUnavailableError, with the line that installs it, where a package is older than ``extra`` asks."""
    if fault := too_old(package):
        raise BackendUnavailableError(f"{fault}; install it: pip install --upgrade '{DISTRIBUTION}[{extra}]'")


def too_old(package: str) -> str:
    """Return what is wrong with the version of a package; empty for one that is new enough, or not installed."""
    try:
        own, least = importlib.metadata.version(package), _least().get(package, Version("0"))
        is_new = Version(own) >= least
    except importlib.metadata.PackageNotFoundError:
        return ""
    except InvalidVersion:
        is_new = False
    return "" if is_new else f"the package {package} is of version {own[:40]}, and at least {least} is needed"


@cache
def _least() -> dict[str, Version]:
    """Return the least version of every package that this distribution asks for."""
    try:
        requirements = map(Requirement, importlib.metadata.requires(DISTRIBUTION) or ())
    except importlib.metadata.PackageNotFoundError:
        return {}
    return {
        each.name: Version(bound.version) for each in requirements for bound in each.specifier if bound.operator == ">="
    }

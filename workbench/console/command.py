"""A command of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from workbench.console.report import Report
from workbench.progress import Progress

Flags = Callable[[argparse.ArgumentParser], None]
Run = Callable[[argparse.Namespace, Progress], "Report | int"]
"""Carries out a command; an exit code where there is nothing to print."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command of the command line; ``add_flags`` describes its arguments to a parser."""

    name: str
    help: str
    example: str
    add_flags: Flags
    run: Run

"""Flags that several commands share, and how the texts of flags are read."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable
from typing import TypeVar

from workbench.steps.options import scheme_name

N = TypeVar("N", int, float)

def number(text: str, kind: type[N]) -> N:
    """Return an int or a float; raises ValueError for text that is not a finite number."""
    try:
        value = kind(text)
        if math.isfinite(value):
            return value
    except ValueError:
        pass
    raise ValueError(f"{text!r} is not {'a whole number' if kind is int else 'a number'}")


def hyphens(name: str) -> str:
    """Return a name in the spelling of the command line."""
    return name.replace("_", "-")


def spelled(text: str, known: Iterable[str], *, strict: bool = True) -> str:
    """Return the known name that ``text`` spells, with hyphens or underscores.

    Raises ArgumentTypeError for another one if ``strict``, else returns it as it is.
    """
    known = tuple(known)
    name = text if text in known else next((name for name in known if hyphens(name) == hyphens(text)), None)
    if name is None and strict:
        listed = ", ".join(map(hyphens, known))
        raise argparse.ArgumentTypeError(f"{text!r} is unknown; choose from {listed}")
    return text if name is None else name


def names(text: str) -> tuple[str, ...]:
    """Return the names of a list with commas; raises ArgumentTypeError for none."""
    listed = tuple(name.strip() for name in text.split(",") if name.strip())
    if not listed:
        raise argparse.ArgumentTypeError(f"{text!r} names nothing; separate names by commas")
    return listed


def at_least(least: int) -> Callable[[str], int]:
    """Return a reader of whole numbers that are not below ``least``."""

    def read(text: str) -> int:
        try:
            if int(text) >= least:
                return int(text)
        except ValueError:
            pass
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")

    return read


def trust(entry: argparse.ArgumentParser) -> None:
    """Add the flag without which no Python file runs."""
    entry.add_argument("--trust", action="store_true", help="allow the Python file to run (only your own files)")


def session(entry: argparse.ArgumentParser) -> None:
    """Add the path of a session."""
    entry.add_argument("session", metavar="S.qwb", help="a session file")


def plan(entry: argparse.ArgumentParser) -> None:
    """Add the plan."""
    entry.add_argument("--plan", metavar="PLAN.json", help="the plan (default: the session's current plan)")


def layer(entry: argparse.ArgumentParser) -> None:
    """Add a pattern of layers."""
    entry.add_argument(
        "--layer", default="*", metavar="PATTERN", help="only layers that match, such as '*.mlp.*' (default: all)"
    )


def most(what: str, name: str = "most", default: int = 10) -> Callable[[argparse.ArgumentParser], None]:
    """Return what adds the flag that limits a list; 0 lists none."""

    def add(entry: argparse.ArgumentParser) -> None:
        entry.add_argument(
            f"--{name}", type=at_least(0), default=default, metavar="N",
            help=f"list at most N {what} (default {default}; 0: none)",
        )  # fmt: skip

    return add


def tap(entry: argparse.ArgumentParser) -> None:
    """Add which tensor of a layer is meant."""
    entry.add_argument(
        "--tap", choices=("input", "output", "weight"), default="input", help="which tensor of a layer (default input)"
    )


def finite(text: str) -> float:
    """Return a finite number; raises ArgumentTypeError."""
    try:
        return float(number(text, float))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def schemes(text: str) -> tuple[str, ...]:
    """Return the names of schemes in a list with commas."""
    return tuple(scheme_name(name) for name in names(text))


def everything(entry: argparse.ArgumentParser) -> None:
    """Add the flag that lists what does not differ, too."""
    entry.add_argument("--all", action="store_true", help="list layers that do not differ as well")

"""Flags that several commands share, flags from the options of steps, and how the texts of flags are read."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from workbench.memory import parse_size
from workbench.models.placement import AUTO, DTYPES, Placement
from workbench.steps.options import OptionField, option_fields, scheme_name

N = TypeVar("N", int, float)
O = TypeVar("O")  # noqa: E741

Flags = Callable[[argparse.ArgumentParser], object]
"""Adds arguments to a parser."""


def flag(*names: str, **settings: Any) -> Flags:
    """Return what adds one argument: the names and settings of ``add_argument``."""
    return lambda entry: entry.add_argument(*names, **settings)


def amount(text: str) -> int:
    """Return bytes from a number with a unit; raises ArgumentTypeError."""
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


SHOWN = 40
"""Characters of a value that are shown where it is refused."""

TRUST = flag("--trust", action="store_true", help="allow the Python file to run (only your own files)")
SESSION = flag("session", metavar="S.qwb", help="a session file")
PLAN = flag("--plan", metavar="PLAN.json", help="the plan (default: the session's current plan)")
DEVICE = flag("--device", default=AUTO, metavar="DEVICE",
              help="where the model runs: auto (the first CUDA device, else the CPU), cpu, cuda:N, or another "
              "device that torch supports (default auto)")  # fmt: skip
DTYPE = flag("--dtype", default=AUTO, choices=DTYPES, metavar="{" + ",".join(DTYPES) + "}",
             help="what the model computes in: stored (the dtype of most weights in its file), float32, or auto: "
             "float32 on the CPU, stored elsewhere (default auto)")  # fmt: skip
MEMORY = flag("--memory", type=amount, metavar="SIZE",
              help="how much memory the work may take, such as 2GB or 1.5GiB: the rest is read from the "
              "model's file when it is needed, or written to disk (default: what is free)")  # fmt: skip
CLUSTER = flag("--cluster", default="", metavar="ADDRESS",
               help="run pieces of the work on other processes: tcp://host:8786 is a Dask scheduler, local:4 four "
               "processes of this machine (default: this process)")  # fmt: skip
LAYER = flag("--layer", default="*", metavar="PATTERN", help="only layers that match, such as '*.mlp.*' (default: all)")
TAP = flag(
    "--tap", choices=("input", "output", "weight"), default="input", help="which tensor of a layer (default input)"
)
ALL = flag("--all", action="store_true", help="list layers that do not differ as well")


def most(what: str, name: str = "most", default: int = 10) -> Flags:
    """Return the flag that limits a list; 0 lists none."""
    text = f"list at most N {what} (default {default}; 0: none)"
    return flag(f"--{name}", type=at_least(0), default=default, metavar="N", help=text)


def placement_of(arguments: argparse.Namespace) -> Placement:
    """Return where a command's model is to run; anywhere for a command without these flags."""
    values = vars(arguments)
    return Placement(values.get("device", AUTO), values.get("dtype", AUTO), values.get("memory"))


def workers_of(arguments: argparse.Namespace) -> AbstractContextManager[object]:
    """Return a context in which a command's steps use its workers; raises BackendUnavailableError."""
    values = vars(arguments)
    if not values.get("cluster"):
        return nullcontext()
    from workbench.engine.executors import cluster

    return cluster(values["cluster"], device=values["device"], dtype=values["dtype"], trust=values["trust"])


def number(text: str, kind: type[N]) -> N:
    """Return an int or a float; raises ArgumentTypeError for text that is not a finite number."""
    try:
        value = kind(text)
        if math.isfinite(value):
            return value
    except (ValueError, OverflowError):  # of more digits than a float, or Python's own reader, takes
        pass
    raise argparse.ArgumentTypeError(f"{text[:SHOWN]!r} is not {'a whole number' if kind is int else 'a number'}")


def finite(text: str) -> float:
    """Return a finite number; raises ArgumentTypeError."""
    return number(text, float)


def at_least(least: int) -> Callable[[str], int]:
    """Return a reader of whole numbers that are not below ``least``."""

    def read(text: str) -> int:
        try:
            if int(text) >= least:
                return int(text)
        except ValueError:
            pass
        raise argparse.ArgumentTypeError(f"{text[:SHOWN]!r} is not a whole number of at least {least}")

    return read


def names(text: str) -> tuple[str, ...]:
    """Return the names of a list with commas; raises ArgumentTypeError for none."""
    listed = tuple(name.strip() for name in text.split(",") if name.strip())
    if not listed:
        raise argparse.ArgumentTypeError(f"{text!r} names nothing; separate names by commas")
    return listed


def schemes(text: str) -> tuple[str, ...]:
    """Return the names of schemes in a list with commas."""
    return tuple(scheme_name(name) for name in names(text))


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
        raise argparse.ArgumentTypeError(f"{text!r} is unknown; choose from {', '.join(map(hyphens, known))}")
    return text if name is None else name


def flags_of(options: type, *without: str) -> Flags:
    """Return a flag for every option of a step that the command line offers, but those named in ``without``."""

    def add(entry: argparse.ArgumentParser) -> None:
        for item in option_fields(options):
            if item.info.command and item.name not in without:
                _add(entry, item)

    return add


def options_of(options: type[O], arguments: argparse.Namespace) -> O:
    """Return a step's options from the parsed flags; what has no flag keeps its default."""
    values = {}
    for item in option_fields(options):
        if item.name in arguments:
            value = getattr(arguments, item.name)
            values[item.name] = tuple(value) if item.info.repeated else value
    return options(**values)


def _add(entry: argparse.ArgumentParser, item: OptionField) -> None:
    info, text = item.info, _help(item)
    if item.kind is bool and not item.several:
        entry.add_argument(item.flag, dest=item.name, action="store_true", help=text)
        return
    shown = "{" + ",".join(hyphens(name) for name in _names(item)) + "}" if _is_closed(item) else info.metavar or None
    if info.positional:
        entry.add_argument(item.name, metavar=shown, type=_reader(item), help=text)
        return
    entry.add_argument(
        item.flag, dest=item.name, metavar=shown, type=_reader(item), required=item.required, help=text,
        action="append" if info.repeated else "store", default=list[object]() if info.repeated else item.default,
    )  # fmt: skip


def _is_closed(item: OptionField) -> bool:
    """Return whether the usage lists all values: not for suggestions, nor where a placeholder is preferred."""
    return item.info.choices is not None and not item.info.suggested and not item.info.metavar


def _names(item: OptionField) -> tuple[str, ...]:
    return tuple(choice.value for choice in item.info.choices()) if item.info.choices else ()


def _help(item: OptionField) -> str:
    """Return the help text, with the default or what it means to leave the flag out."""
    info, default, text = item.info, item.default, item.info.help
    if info.choices and not info.suggested and info.metavar:
        text = f"{text}: {'; '.join(f'{choice.value}: {choice.label}' for choice in info.choices())}"
    if item.required:
        text += "" if info.positional else " (required)"
    elif default in (None, "", ()):
        text += f" (default: {info.empty})" if info.empty else ""
    elif default is not False:
        text += f" (default {hyphens(default) if isinstance(default, str) and _is_closed(item) else default})"
    return text.replace("%", "%%")


def _reader(item: OptionField) -> Callable[[str], object]:
    """Return what turns a flag's text into the option's value; it raises ArgumentTypeError."""
    if item.several and not item.info.repeated:
        return lambda text: tuple(_value(item, part) for part in names(text))
    return lambda text: _value(item, text)


def _value(item: OptionField, text: str) -> object:
    info = item.info
    try:
        value = info.parse(text) if info.parse else number(text, item.kind) if item.kind in (int, float) else text
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if info.choices and isinstance(value, str):
        value = spelled(value, _names(item), strict=_is_closed(item))
    fault = item.fault(value)
    if fault:
        raise argparse.ArgumentTypeError(fault)
    return value

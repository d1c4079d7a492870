"""Flags from the options of steps, and a step's options from the flags."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeVar

from workbench.console.flags import hyphens, names, number, spelled, trust
from workbench.steps.files.open_model import OpenModelOptions
from workbench.steps.options import OptionField, option_fields

O = TypeVar("O")  # noqa: E741


def add_options(entry: argparse.ArgumentParser, options: type, *without: str) -> None:
    """Add a flag for every option of a step that the command line offers, but those named in ``without``."""
    for item in option_fields(options):
        if item.info.command and item.name not in without:
            _add(entry, item)


def options_of(options: type[O], arguments: argparse.Namespace) -> O:
    """Return a step's options from the parsed flags; what has no flag keeps its default."""
    values = {}
    for item in option_fields(options):
        if item.name in arguments:
            value = getattr(arguments, item.name)
            values[item.name] = tuple(value) if item.info.repeated else value
    return options(**values)


def model(entry: argparse.ArgumentParser) -> None:
    """Add the path of a model and how to open it."""
    add_options(entry, OpenModelOptions)
    trust(entry)


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
    """Tell whether the usage lists all values: not for suggestions, nor where a placeholder is preferred."""
    return item.info.choices is not None and not item.info.suggested and not item.info.metavar


def _names(item: OptionField) -> tuple[str, ...]:
    return tuple(choice.value for choice in item.info.choices()) if item.info.choices else ()


def _help(item: OptionField) -> str:
    """Return the help text, with the default or what it means to leave the flag out."""
    info, default, text = item.info, item.default, item.info.help
    if info.choices and not info.suggested and info.metavar:
        text = f"{text}: {'; '.join(choice.label for choice in info.choices())}"
    if item.required:
        text += "" if info.positional else " (required)"
    elif default in (None, "", ()):
        text += f" (default: {info.empty})" if info.empty else ""
    elif default is not False:
        text += f" (default {hyphens(default) if isinstance(default, str) and _is_closed(item) else default})"
    return text.replace("%", "%%")


def _reader(item: OptionField) -> Callable[[str], object]:
    """Return what turns a flag's text into the option's value; it raises ArgumentTypeError."""

    def read(text: str) -> object:
        if item.several and not item.info.repeated:
            return tuple(_value(item, part) for part in names(text))
        return _value(item, text)

    return read


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

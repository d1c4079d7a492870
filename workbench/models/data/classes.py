"""Labels as numbers of the model's classes: numbers, the model's own names, folders called 0, 1, ..., any names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from workbench.errors import DataError
from workbench.models.data.tables import kind_of
from workbench.plain_file import read_json
from workbench.readable import few, readable

DIGITS = 18
"""Digits of a class's number at most."""

SHOWN, LONGEST_CLASS = 5, 60
"""Names that a message lists, and characters of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """``numbers``: one for each sample, or None where nobody can say which class is meant; ``notes`` say what was
    decided where the model does not name its classes.
    """

    numbers: list[float] | list[int] | None
    notes: tuple[str, ...] = ()

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return ``labels`` (``[samples]``, int64, or float32 where one is a fraction); nothing where there is none."""
        return {} if self.numbers is None else {"labels": torch.tensor(self.numbers)}


NO_CLASSES = Classes(numbers=None)


def classes_of(labels: Sequence[Any] | None, folder: Path | None, file: Path) -> Classes:
    """Return labels as numbers; ``folder`` is the model's.

    Numbers stay.  Texts are the model's own classes where it has these names (``id2label``, whatever their case), else
    class numbers where all of them are (``10`` after ``9``), else 0, 1, ... in the order of the names, as torchvision
    numbers class folders.  That order says nothing where the model has more classes than the data: then there are no
    labels, and a note.  Raises DataError for a name that the model does not have, and for more names than its classes.
    """
    if labels is None:
        return NO_CLASSES
    if all(isinstance(label, int | float) for label in labels):
        return Classes(numbers=[+label for label in labels])  # truth values are 0 and 1
    odd = next((row for row, label in enumerate(labels) if not isinstance(label, str)), None)
    if odd is not None:
        raise DataError(
            f"{file}: the label in row {odd + 1} is {kind_of(labels[odd])}; one number or text for each sample was "
            "expected: give labels of single tokens or of several classes as arrays (.npz), or leave them out "
            "(--column)"
        )
    stated = stated_classes(folder)
    own = {_plain(name): number for name, number in stated.items()}
    names = sorted({str(label) for label in labels})
    if any(_plain(name) in own for name in names):
        unknown = [repr(name) for name in names if _plain(name) not in own]
        if unknown:
            raise DataError(f"{file}: the model has no class {few(unknown[:1])}; its classes are {_listed([*stated])}")
        return Classes(numbers=[own[_plain(str(label))] for label in labels])
    if all(name.isascii() and name.isdecimal() and len(name) <= DIGITS for name in names):
        return _by_number(names, labels, stated, file)
    return _by_order(names, labels, len(stated), list(stated), file)


def _by_number(names: list[str], labels: Sequence[Any], stated: Mapping[str, int], file: Path) -> Classes:
    """Take names of digits for the numbers of the classes."""
    highest, known = max(names, key=int), set(stated.values())
    if known and int(highest) not in known:
        raise DataError(
            f"{file}: {highest} is not a class of the model, which has {min(known)} to {max(known)}; name the classes "
            "by their numbers or by the model's names"
        )  # fmt: skip
    note = f"{file.name}: the labels {_listed(sorted(names, key=int))} are taken for the numbers of the model's classes"
    return Classes(numbers=[int(label) for label in labels], notes=(note,))


def _by_order(names: list[str], labels: Sequence[Any], known: int, own: list[str], file: Path) -> Classes:
    """Number the names by their order, where they can be all of the model's classes (``known``; 0: unknown)."""
    if known and len(names) > known:
        raise DataError(
            f"{file} has {len(names)} classes ({_listed(names)}), the model {known} ({_listed(own)}); name them as the "
            "model does, or by its numbers"
        )
    if known > len(names):
        note = (
            f"{file.name}: {_listed(names)} are none of the model's {known} classes ({_listed(own)}), so there are no "
            "labels; name them as the model does, or by its numbers"
        )
        return Classes(numbers=None, notes=(note,))
    number = {name: index for index, name in enumerate(names)}
    numbered = [f"{name} = {index}" for name, index in number.items()]
    note = f"{file.name}: the classes are numbered in the order of their names: {_listed(numbered)}"
    return Classes(numbers=[number[str(label)] for label in labels], notes=(note,))


def stated_classes(folder: Path | None) -> dict[str, int]:
    """Return the classes that the model's configuration names, with their numbers; empty where it names none."""
    config = folder / "config.json" if folder is not None else None
    if config is None or not config.is_file():
        return {}
    content = read_json(config)  # the model is open: it was read before
    if not isinstance(content, dict):
        return {}
    names, numbers = content.get("id2label"), content.get("label2id")
    if isinstance(names, dict) and names and all(number.isdecimal() and len(number) <= DIGITS for number in names):
        return {str(name): int(number) for number, name in names.items()}
    if not isinstance(numbers, dict) or not all(isinstance(each, int) for each in numbers.values()):
        return {}
    return {str(name): number for name, number in numbers.items()}


def _plain(name: str) -> str:
    return name.casefold().replace("_", " ").strip()


def _listed(names: Sequence[str]) -> str:
    """Return names by commas, the middle ones left out where there are many, and the middle of long ones."""
    names = [readable(name, LONGEST_CLASS) for name in names]
    if len(names) <= SHOWN + 1:
        return ", ".join(names)
    return f"{', '.join(names[: SHOWN - 1])}, ..., {names[-1]}"

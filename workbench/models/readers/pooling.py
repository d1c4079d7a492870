"""How a folder of sentence-transformers makes one embedding of a text, by ``modules.json`` and the files it names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from workbench.errors import NotAModelError, WorkbenchError, naming_damage
from workbench.plain_file import read_json
from workbench.readable import few


class Pooling(StrEnum):
    """What of a text's tokens is its embedding: their mean, or the state of the first or the last one."""

    MEAN = "mean"
    FIRST = "first"
    LAST = "last"


IN_LLAMA_CPP = {Pooling.MEAN: 1, Pooling.FIRST: 2, Pooling.LAST: 3}
"""llama.cpp's numbers (``enum llama_pooling_type``), which a GGUF file states as ``pooling_type``."""

_MODES = {
    "mean": Pooling.MEAN, "mean_tokens": Pooling.MEAN, "cls": Pooling.FIRST, "cls_token": Pooling.FIRST,
    "lasttoken": Pooling.LAST,
}  # fmt: skip
WEIGHTS = "model.safetensors"
PICKLED = "pytorch_model.bin"
_USUAL = ("Transformer", "Pooling", "Normalize")


@dataclass(frozen=True, slots=True, kw_only=True)
class SentencePooling:
    """``modes``: what is pooled, in the folder's own words; ``behind``: modules after it that change the embedding;
    ``lacks``: the file that says what is pooled, where it is named and not there."""

    modes: tuple[str, ...]
    behind: tuple[str, ...] = ()
    lacks: str = ""

    @property
    def pooling(self) -> Pooling | None:
        """The one way of pooling, None for several or one that is not known here."""
        return _MODES.get(self.modes[0]) if len(self.modes) == 1 else None


def pooling_of(folder: Path, error: type[WorkbenchError]) -> SentencePooling | None:
    """Return what a folder says of its embeddings, None where it says nothing; ``error`` for files that are damaged.

    In older folders the network lies in a folder of its own (``0_Transformer``), and the modules are listed above.
    """
    modules = _modules(folder, error)
    if not modules and (above := _modules_above(folder.absolute())):
        folder, modules = folder.absolute().parent, above
    behind = tuple(place or kind for kind, place in modules if kind not in _USUAL)
    for kind, place in modules:
        if kind == "Pooling":
            settings = folder / place / "config.json"
            if not _is_file_inside(folder, settings):
                return SentencePooling(modes=(), behind=behind, lacks=f"{place}/config.json")
            with _reading(settings, error):
                return SentencePooling(modes=_modes(read_json(settings)), behind=behind)
    return None


def module_files(folder: Path, error: type[WorkbenchError]) -> list[Path]:
    """Return the files of the modules behind the network, in folders of their own inside ``folder``."""
    places = [folder / place for _, place in _modules(folder, error) if place not in ("", ".")]
    files = (place / name for place in places for name in ("config.json", WEIGHTS))
    return [file for file in files if _is_file_inside(folder, file)]


def _modules_above(folder: Path) -> list[tuple[str, str]]:
    """Return the modules one folder up that have their network in ``folder``; no other file of that name counts."""
    with suppress(WorkbenchError):
        modules = _modules(folder.parent, NotAModelError)
        if any(kind == "Transformer" and folder.parent / place == folder for kind, place in modules):
            return modules
    return []


def _modules(folder: Path, error: type[WorkbenchError]) -> list[tuple[str, str]]:
    """Return the name of each module's class, and its place in ``folder``."""
    file = folder / "modules.json"
    with _reading(file, error):
        listed = read_json(file) if _is_file_inside(folder, file) else []
        return [(str(each["type"]).rpartition(".")[2], str(each["path"])) for each in listed]


@contextmanager
def _reading(file: Path, error: type[WorkbenchError]) -> Iterator[None]:
    """Raise ``error`` for a file that is damaged or cannot be read."""
    try:
        with naming_damage(file, error):
            yield
    except OSError as failure:
        raise error(f"{file} cannot be read: {failure.strerror}") from None


def _is_file_inside(folder: Path, file: Path) -> bool:
    """Tell whether there is such a file and no ``..`` leads there; links are looked at by who reads or copies."""
    with suppress(OSError):  # a name longer than any file's, or a folder that may not be entered
        return ".." not in file.parts and file.is_relative_to(folder) and file.is_file()
    return False


def evaluated_pooling(folder: Path) -> tuple[Pooling, list[str]]:
    """Return how a folder's network is evaluated, the mean where nothing else is known, and notes on what differs;
    NotAModelError for files that are damaged."""
    stated = pooling_of(folder, NotAModelError)
    if stated is None:
        others = [kind for kind, _ in _modules(folder, NotAModelError) if kind not in _USUAL]
        said = f"modules.json has {few(others)} and no Pooling: the model is evaluated by the mean of its tokens"
        return Pooling.MEAN, [said] if others else []
    notes = []
    if stated.lacks:
        notes.append(
            f"{stated.lacks}, which modules.json names, is missing: the model is evaluated by the mean of its tokens"
        )
    elif stated.pooling is None:
        notes.append(
            f"modules.json pools tokens by {' and '.join(stated.modes[:8])}, which is not computed here: the "
            "model is evaluated by the mean of its tokens"
        )
    if stated.behind:
        notes.append(
            f"modules.json has {few(stated.behind)} behind the network, which is not run: the model is evaluated by "
            "what comes before"
        )
    pickled = [place for place in stated.behind if _is_file_inside(folder, folder / place / PICKLED)]
    if left_out := [place for place in pickled if not _is_file_inside(folder, folder / place / WEIGHTS)]:
        notes.append(
            f"the weights of {few(left_out)} are pickled ({PICKLED}): exports leave them out, and "
            f"sentence-transformers needs them there, or as {WEIGHTS}"
        )
    return stated.pooling or Pooling.MEAN, notes


def _modes(settings: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of what is pooled: one member says it, or each has a switch of its own; the mean by default."""
    if stated := settings.get("pooling_mode"):
        return (stated,) if isinstance(stated, str) else tuple(map(str, stated))
    head = "pooling_mode_"
    on = tuple(name.removeprefix(head) for name, on in settings.items() if name.startswith(head) and on is True)
    return on or (Pooling.MEAN.value,)

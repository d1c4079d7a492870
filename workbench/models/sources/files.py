"""The files that a model consists of, and how they looked when it was opened."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from workbench.errors import ModelError

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.models.summary import ModelSource

Stamp = tuple[tuple[str, int, int], ...]
"""The name, size and time of change (in nanoseconds) of every file."""

BESIDE = (".safetensors", ".pt", ".pth")
"""Weights that a Python file may load from its folder."""

WEIGHTS = (".safetensors", ".pt", ".pth", ".pt2", ".gguf", ".onnx", ".data")
"""Files that hold weights; those of a run's results may lie beside them."""

_parts: dict[str, tuple[str, ...]] = {}
"""Files of weights that a model names itself, by its path."""

_opened: WeakKeyDictionary[Model, Stamp] = WeakKeyDictionary()


def stamp(source: ModelSource) -> Stamp:
    """Return how every file that the model can consist of looks now."""
    files = [Path(name) for name in _parts.get(source.path, ())]
    for name in filter(None, (source.path, source.weights)):
        path = Path(name)
        if path.suffix == ".py":
            files += [file for file in path.parent.glob("*.*") if file.suffix in BESIDE]
        files += path.iterdir() if path.is_dir() else [path]
    stats = [(str(file), file.stat()) for file in sorted(set(files)) if file.is_file()]
    return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)


def own_files(source: ModelSource) -> set[Path]:
    """Return the files that the model was opened from: of a folder its weights, whatever else lies in it."""
    from workbench.models.sources.safetensors_file import weight_files

    own = set[Path]()
    for name in filter(None, (source.path, source.weights, *_parts.get(source.path, ()))):
        with suppress(ModelError):  # a folder that is damaged by now
            own |= set(weight_files(Path(name)) if Path(name).is_dir() else [Path(name)])
    return {file for file in own if file.is_file()}


def weights_stamp(source: ModelSource) -> Stamp:
    """Return how the files look that hold weights."""
    parts = _parts.get(source.path, ())
    return tuple(each for each in stamp(source) if each[0].endswith(WEIGHTS) or each[0] in parts)


def note_opened(model: Model, looked: Stamp) -> None:
    """Note how the model's files of weights ``looked`` just before they were opened, and those that it names now."""
    from workbench.models.sources.safetensors_file import weight_files

    path, _parts[model.summary.source.path] = Path(model.summary.source.path), model.files
    own = {str(file) for file in weight_files(path)} if path.is_dir() else set()
    named = (each for each in stamp(model.summary.source) if each[0] in model.files)
    _opened[model] = (*named, *(each for each in looked if not own or each[0] in own))


def require_as_opened(model: Model, title: str) -> None:
    """Raise ModelError where a file of weights is another one than when the model was opened.

    Weights stay in their files, mapped, so that the model would be a mixture of both.  A file that is gone was read as
    far as it was needed, or is missed when it is.
    """
    now = {each[0]: each for each in weights_stamp(model.summary.source)}
    changed = sorted(each[0] for each in _opened.get(model, ()) if now.get(each[0], each) != each)
    if changed:
        raise ModelError(
            f"{title}: {changed[0]} has changed since the model was opened, and weights are read from it when they are "
            "needed; open the model again"
        )

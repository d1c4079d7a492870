"""The few models that the engine keeps open, so that the next job need not load them again."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

from workbench.models.model import Model
from workbench.models.sources import reopen
from workbench.models.summary import ModelSource, ModelSummary

Stamp = tuple[tuple[str, int, int], ...]

BESIDE = (".safetensors", ".pt", ".pth")
"""Weights that a Python file may load from its folder."""


class ModelCache:
    """The least recently used of more than ``size`` open models is closed first.

    A model whose files changed on disk since it was opened is opened again.
    """

    def __init__(self, size: int = 2) -> None:
        self._size = size
        self._open: OrderedDict[ModelSource, tuple[Stamp, Model]] = OrderedDict()

    def put(self, model: Model) -> None:
        """Keep an opened model."""
        source = model.summary.source
        self._open[source] = (stamp(source), model)
        self._open.move_to_end(source)
        while len(self._open) > self._size:
            self._open.popitem(last=False)

    def get(self, summary: ModelSummary, trust: bool = False) -> Model:
        """Return the model that ``summary`` describes, opened again if need be.

        Raises FingerprintMismatchError if the file holds another model now, TrustRequiredError if opening it runs the
        user's own Python file and ``trust`` does not allow that, and what opening raises.
        """
        kept = self._open.get(summary.source)
        if kept is not None and kept[0] == stamp(summary.source):
            self._open.move_to_end(summary.source)
            kept[1].summary.require_fingerprint(summary.fingerprint, "the session")
            return kept[1]
        self._open.pop(summary.source, None)
        model = reopen(summary, trust=trust)
        self.put(model)
        return model

    def clear(self) -> None:
        """Close every model."""
        self._open.clear()


def stamp(source: ModelSource) -> Stamp:
    """Return the name, size and time of change of every file that the model can consist of."""
    files: list[Path] = []
    for name in filter(None, (source.path, source.weights)):
        path = Path(name)
        if path.suffix == ".py":
            files += [file for file in path.parent.glob("*.*") if file.suffix in BESIDE]
        files += path.iterdir() if path.is_dir() else [path]
    stats = [(str(file), file.stat()) for file in sorted(set(files)) if file.is_file()]
    return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)

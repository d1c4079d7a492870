"""The few models that the engine keeps open, so that the next job need not load them again."""

from __future__ import annotations

from pathlib import Path

from workbench.models.model import Model
from workbench.models.placement import Placement
from workbench.models.sources import reopen
from workbench.models.summary import ModelSource, ModelSummary

Stamp = tuple[tuple[str, int, int], ...]

BESIDE = (".safetensors", ".pt", ".pth")
"""Weights that a Python file may load from its folder."""


class ModelCache:
    """The least recently used of more than ``size`` open models is closed first.

    A model whose files changed on disk since it was opened, or that is wanted in another place, is opened again.
    """

    def __init__(self, size: int = 2) -> None:
        self._size = size
        self._open: dict[ModelSource, tuple[Stamp, Placement, Model]] = {}

    def put(self, model: Model, placement: Placement | None = None) -> None:
        """Keep a model that was opened for ``placement``."""
        source = model.summary.source
        self._open.pop(source, None)
        self._open[source] = (stamp(source), placement or Placement(), model)
        while len(self._open) > self._size:
            del self._open[next(iter(self._open))]

    def get(self, summary: ModelSummary, trust: bool = False, placement: Placement | None = None) -> Model:
        """Return the model that ``summary`` describes where ``placement`` says, opened again if need be.

        Raises FingerprintMismatchError if the file holds another model now, TrustRequiredError if opening it runs the
        user's own Python file and ``trust`` does not allow that, and what opening raises.
        """
        placement, cached = placement or Placement(), self._open.pop(summary.source, None)
        if cached is None or cached[:2] != (stamp(summary.source), placement):
            del cached  # its memory is free before the other one is loaded
            self.put(model := reopen(summary, trust=trust, placement=placement), placement)
            return model
        self._open[summary.source] = cached
        cached[2].summary.require_fingerprint(summary.fingerprint, "the session")
        return cached[2]

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

"""The few models that the engine keeps open, so that the next job need not load them again."""

from __future__ import annotations

from workbench.models.model import Model
from workbench.models.placement import Placement
from workbench.models.sources import reopen
from workbench.models.sources.files import Stamp, stamp
from workbench.models.summary import ModelSource, ModelSummary


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

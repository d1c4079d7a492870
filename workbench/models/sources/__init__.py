"""Where models come from: one file for each kind of source, listed in ``catalog.SOURCES``.

Importing this package loads neither torch nor transformers.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.models.summary import ModelSource, ModelSummary


def open_model(
    path: str | Path,
    *,
    factory: str | None = None,
    weights: str | Path | None = None,
    trust: bool = False,
    memory_limit: int | None = None,
) -> Model:
    """Open the model at ``path``: a folder, a file, or a bundled one (``demo:language-model``).

    ``factory`` (default ``build``) and ``weights`` serve Python files, which run only with ``trust``.  ``memory_limit``
    in bytes replaces what the machine has free.  Raises NotAModelError, UnsafeModelError, TrustRequiredError or
    ModelTooLargeError.
    """
    from workbench.models.sources.catalog import Opening, detect, resolve

    place, bundled = resolve(path)
    opening = Opening(
        path=place, given=str(path) if bundled else str(place), factory=factory,
        weights=None if weights is None else Path(weights), trust=trust or bundled, memory_limit=memory_limit,
    )  # fmt: skip
    return detect(place).open(opening)


def open_source(source: ModelSource, trust: bool = False, *, memory_limit: int | None = None) -> Model:
    """Open again what a session recorded; Python files need the user's ``trust`` each time."""
    return open_model(
        source.path, factory=source.factory, weights=source.weights, trust=trust, memory_limit=memory_limit
    )


def reopen(summary: ModelSummary, *, trust: bool = False) -> Model:
    """Open the model that a session describes; raises FingerprintMismatchError if its file holds another one now."""
    model = open_source(summary.source, trust)
    model.summary.require_fingerprint(summary.fingerprint, "the session")
    return model


def __getattr__(name: str) -> Any:
    if name == "SOURCES":
        from workbench.models.sources.catalog import SOURCES

        return SOURCES
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

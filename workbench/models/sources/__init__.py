"""Where models come from: one file for each kind of source, listed in ``catalog.SOURCES``.

Importing this package loads neither torch nor transformers.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import NotAModelError, naming_damage

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.models.placement import Placement
    from workbench.models.summary import ModelSummary


def open_model(
    path: str | Path,
    *,
    factory: str | None = None,
    weights: str | Path | None = None,
    trust: bool = False,
    placement: Placement | None = None,
    contents: bool = True,
) -> Model:
    """Open the model at ``path``: a folder, a file, or a bundled one (``demo:language-model``).

    ``factory`` (default ``build``) and ``weights`` serve Python files, which run only with ``trust``.  ``placement``
    says where and in which dtype it runs.  Without ``contents`` the bytes of large files are not read, and the
    fingerprint may be empty: that is for looking only.  Raises NotAModelError, UnsafeModelError, TrustRequiredError,
    ModelTooLargeError, BackendUnavailableError for a device that is not there, DeviceError where it has too little
    memory.
    """
    from workbench.models.placement import Placement
    from workbench.models.sources.catalog import detect, resolve
    from workbench.models.sources.files import note_opened, weights_stamp
    from workbench.models.sources.source import Opening, placed
    from workbench.models.summary import ModelSource

    placement = placement or Placement()
    placement.resolved()
    place, bundled = resolve(path)
    opening = Opening(
        path=place, recorded=str(path) if bundled else str(place), factory=factory,
        weights=None if weights is None else Path(weights), trust=trust or bundled, placement=placement,
        contents=contents,
    )  # fmt: skip
    beside = place.parent if place.is_file() and (place.parent / "config.json").exists() else place
    looked = weights_stamp(ModelSource(kind="", path=str(beside), weights=None if weights is None else str(weights)))
    with naming_damage(place, NotAModelError):
        model = detect(place).open(opening)
    model = placed(model, placement)
    note_opened(model, looked)
    return model


def reopen(summary: ModelSummary, *, trust: bool = False, placement: Placement | None = None) -> Model:
    """Open the model that a session describes; Python files need the user's ``trust`` each time.

    Raises FingerprintMismatchError if its file holds another model now, NotAModelError where there is none.
    """
    source = summary.source
    if os.path.isabs(source.path) and not os.path.exists(source.path):
        raise NotAModelError(
            f"the session's model {source.path} is not there any more; put it back, or open it where it is now: the "
            "window's open session then goes on with it"
        )
    model = open_model(source.path, factory=source.factory, weights=source.weights, trust=trust, placement=placement)
    model.summary.require_fingerprint(summary.fingerprint, "the session")
    return model

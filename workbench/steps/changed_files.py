"""Files of weights that change while a step reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from workbench.errors import ModelError
from workbench.models.model import Model
from workbench.models.sources.files import Stamp, require_as_opened, weights_stamp


@contextmanager
def unchanged(model: Model, title: str) -> Iterator[None]:
    """Raise ModelError where a file of the model's weights has changed since it was opened, or changes meanwhile."""
    require_as_opened(model, title)
    before = weights_stamp(model.summary.source)
    yield
    require_unchanged(before, weights_stamp(model.summary.source), title, None)


def require_unchanged(before: Stamp, after: Stamp, title: str, written: object) -> None:
    """Raise ModelError where a file of weights is another one than before the run, unless the run wrote it."""
    removed = [name for name, *_ in sorted({*before} - {*after}) if written is None or str(written) != name]
    if removed:
        raise ModelError(
            f"{title}: {removed[0]} changed while it was read, so the result would mix two models and was discarded; "
            "open the model again, and repeat the step when nothing writes to that file"
        )

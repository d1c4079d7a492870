"""Files of weights that change while a step reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.errors import CancelledError, ModelError, WorkbenchError
from workbench.models.model import Model
from workbench.models.sources.files import Stamp, require_as_opened, weights_stamp


@contextmanager
def unchanged(model: Model, title: str) -> Iterator[list[Path]]:
    """Raise ModelError where a file of the model's weights has changed since it was opened, or changes meanwhile.

    So it does in place of an error that the change has caused.  Files that are written meanwhile are listed in what is
    yielded: they are removed again then.
    """
    require_as_opened(model, title)
    source, written = model.summary.source, list[Path]()
    before = weights_stamp(source)
    try:
        yield written
    except CancelledError:
        raise
    except WorkbenchError:
        require_unchanged(before, weights_stamp(source), title, *written)
        raise
    try:
        require_unchanged(before, weights_stamp(source), title, *written)
    except ModelError:
        for path in written:
            path.unlink(missing_ok=True)
        raise


def require_unchanged(before: Stamp, after: Stamp, title: str, *written: object) -> None:
    """Raise ModelError where a file of weights is another one than before the run, unless the run wrote it."""
    own = {str(path) for path in written}
    removed = [name for name, *_ in sorted({*before} - {*after}) if name not in own]
    if removed:
        raise ModelError(
            f"{title}: {removed[0]} changed while it was read, so the result would mix two models and was discarded; "
            "open the model again, and repeat the step when nothing writes to that file"
        )

"""What was written and failed its proof: it is kept beside its place, so that the difference can be looked at."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path

from workbench.errors import ExportError


@contextmanager
def keeping_failed(written: Path, out: Path) -> Iterator[None]:
    """Where the block, a proof of ``written``, raises ExportError, keep that as ``OUT.failed``, and say so.

    It takes the place of an earlier failure; of other folders of that name it takes none.
    """
    try:
        yield
    except ExportError as error:
        kind = "folder" if written.is_dir() else "file"
        names = chain([f"{out.name}.failed"], (f"{out.name}.failed-{number}" for number in count(2)))
        place = next(each for each in map(out.with_name, names) if not each.is_dir() or _is_export(each, out.name))
        if place.is_dir():
            shutil.rmtree(place)
        elif written.is_dir():
            place.unlink(missing_ok=True)
        os.replace(written, place)
        reason = str(error).replace(str(written), str(place))  # the temporary name is gone
        raise ExportError(f"{reason}. The {kind} is kept as {place}") from error


def _is_export(folder: Path, name: str) -> bool:
    """Return whether an export made the folder: it is marked, or is that of an ONNX file with its data."""
    from workbench.deployment.checkpoints.folder import MARKER

    return (folder / MARKER).is_file() or (folder / name).is_file()

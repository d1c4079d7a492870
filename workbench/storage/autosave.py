"""Recovery files: copies of sessions that were not saved yet, in the user's state folder, found again after a crash.

Listing them reads small notes only, so that the window can do it without h5py.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from workbench.errors import SessionError
from workbench.storage.atomic import replacing
from workbench.storage.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoverable:
    """A recovery file: where it lies, which session file it belongs to (None: never saved), the model's name, and when
    it was written (seconds since 1970, UTC)."""

    file: Path
    original: Path | None
    model: str
    written: float


def recovery_folder() -> Path:
    """Return the folder of recovery files; it may not exist yet."""
    return Path(platformdirs.user_state_dir("quantization-workbench", appauthor=False)) / "recovery"


def recovery_path(path: Path | None) -> Path:
    """Return the recovery file of the session file ``path``, the same each time; None is the session never saved."""
    if path is None:
        return recovery_folder() / "unsaved.qwb"
    whole = os.path.abspath(path)
    mark = hashlib.sha256(os.fsencode(whole)).hexdigest()[:12]
    return recovery_folder() / f"{path.stem[:60]}-{mark}.qwb"


def write_recovery(session: Session, path: Path | None) -> Path:
    """Write the recovery file of a session that belongs to ``path``, atomically; return it.  Raises SessionError."""
    file = recovery_path(path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise SessionError(f"the recovery folder {file.parent} cannot be made: {error.strerror}") from error
    session.save(file)
    note = {"original": None if path is None else os.path.abspath(path), "model": session.model.name}
    with replacing(_note(file), SessionError, "the recovery note") as temporary:
        temporary.write_text(json.dumps(note), encoding="utf-8")
    return file


def discard_recovery(path: Path | None) -> None:
    """Remove the recovery file of ``path`` after a save or a wilful close; nothing happens where there is none."""
    file = recovery_path(path)
    _note(file).unlink(missing_ok=True)
    file.unlink(missing_ok=True)


def recoverable() -> tuple[Recoverable, ...]:
    """Return the recovery files that are newer than the sessions they belong to, newest first."""
    found = [entry for file in recovery_folder().glob("*.qwb") if (entry := _entry(file)) is not None]
    return tuple(sorted(found, key=lambda entry: entry.written, reverse=True))


def _note(file: Path) -> Path:
    return file.with_suffix(".json")


def _entry(file: Path) -> Recoverable | None:
    """Return what is known of a recovery file; None where it is older than its session or its note is unreadable."""
    try:
        written = file.stat().st_mtime
        note = json.loads(_note(file).read_text(encoding="utf-8"))
        original = None if note["original"] is None else Path(note["original"])
        model = str(note["model"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if original is not None and original.exists() and original.stat().st_mtime >= written:
        return None
    return Recoverable(file=file, original=original, model=model, written=written)

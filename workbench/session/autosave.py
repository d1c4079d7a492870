"""Recovery files: copies of unsaved sessions in the user's state folder, offered again after a crash.

Every window has its own folder, so that two windows never write the same file.  Listing the copies reads small notes
only, so that the window does it without h5py.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from workbench.atomic import replacing
from workbench.errors import SessionError
from workbench.session.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoverable:
    """A recovery file, the session file that it belongs to (None: never saved), the model's name, and when it was
    written (seconds since 1970, UTC)."""

    file: Path
    original: Path | None
    model: str
    written: float


def recovery_folder() -> Path:
    """Return the folder that holds the windows' folders; it may not exist yet."""
    return Path(platformdirs.user_state_dir("quantization-workbench", appauthor=False)) / "recovery"


def window_folders() -> tuple[Path, ...]:
    """Return the folders of all windows that wrote copies, whether they are open or crashed."""
    try:
        return tuple(sorted(folder for folder in recovery_folder().iterdir() if folder.is_dir()))
    except OSError:
        return ()


def recovery_path(path: Path | None, folder: Path) -> Path:
    """Return the recovery file of the session file ``path``, the same each time; None is the session never saved."""
    if path is None:
        return folder / "unsaved.qwb"
    mark = hashlib.sha256(os.fsencode(os.path.abspath(path))).hexdigest()[:12]
    return folder / f"{path.stem[:60]}-{mark}.qwb"


def write_recovery(session: Session, path: Path | None, folder: Path) -> Path:
    """Write the recovery file of a session that belongs to ``path`` into a window's folder, atomically; return it.

    Raises SessionError.
    """
    file = recovery_path(path, folder)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise SessionError(f"the recovery folder {file.parent} cannot be created: {error.strerror}") from error
    session.save(file)
    note = {"original": None if path is None else os.path.abspath(path), "model": session.model.name}
    with replacing(_note(file), SessionError, "the recovery note") as temporary:
        temporary.write_text(json.dumps(note), encoding="utf-8")
    return file


def discard_recovery(file: Path) -> None:
    """Remove a recovery file after a save, or a close without one; does nothing if there is none."""
    _note(file).unlink(missing_ok=True)
    file.unlink(missing_ok=True)


def recoverable(folders: Iterable[Path] | None = None) -> tuple[Recoverable, ...]:
    """Return the recovery files of ``folders`` (None: of all) that are newer than their sessions, newest first."""
    searched = window_folders() if folders is None else folders
    entries = [entry for folder in searched for file in folder.glob("*.qwb") if (entry := _entry(file)) is not None]
    return tuple(sorted(entries, key=lambda entry: entry.written, reverse=True))


def _note(file: Path) -> Path:
    return file.with_suffix(".json")


def _entry(file: Path) -> Recoverable | None:
    """Return the entry of a recovery file; None where it is older than its session or its note is unreadable."""
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

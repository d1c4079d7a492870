"""Recovery files: copies of unsaved sessions in the user's state folder, offered again after a crash.

A copy of the whole session (``.qwb``) is written now and then; the edits since (``.edits``: a session without results)
within a second of each edit.
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
    """A recovery file, later edits where there are any, the session file that it belongs to (None: never saved), the
    model's name, and when it was written (seconds since 1970, UTC).

    Where the session was not copied yet, ``file`` is that of the edits.
    """

    file: Path
    edits: Path | None
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


def write_recovery(session: Session, path: Path | None, folder: Path, *, edits: bool = False) -> Path:
    """Write the recovery file of a session that belongs to ``path`` into a window's folder, atomically; return it.

    ``edits``: ``session`` holds the edits, and no results.  Raises SessionError.
    """
    file = recovery_path(path, folder)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise SessionError(f"the recovery folder {file.parent} cannot be created: {error.strerror}") from error
    written = _edits(file) if edits else file
    session.save(written)
    note = {"original": None if path is None else os.path.abspath(path), "model": session.model.name}
    with replacing(_note(file), SessionError, "the recovery note") as temporary:
        temporary.write_text(json.dumps(note), encoding="utf-8")
    return written


def discard_recovery(file: Path) -> None:
    """Remove a recovery file after a save, or a close without one; does nothing if there is none."""
    for each in (_note(file), _edits(file), file.with_suffix(".qwb")):
        each.unlink(missing_ok=True)


def recoverable(folders: Iterable[Path] | None = None) -> tuple[Recoverable, ...]:
    """Return the recovery files of ``folders`` (None: of all) that are newer than their sessions, newest first."""
    searched = window_folders() if folders is None else folders
    entries = [entry for folder in searched for note in folder.glob("*.json") if (entry := _entry(note)) is not None]
    return tuple(sorted(entries, key=lambda entry: entry.written, reverse=True))


def _note(file: Path) -> Path:
    return file.with_suffix(".json")


def _edits(file: Path) -> Path:
    return file.with_suffix(".edits")


def _entry(note: Path) -> Recoverable | None:
    """Return the entry of a note; None where its files are older than their session, or it is unreadable."""
    try:
        written = {file: file.stat().st_mtime for file in (note.with_suffix(".qwb"), _edits(note)) if file.exists()}
        facts = json.loads(note.read_text(encoding="utf-8"))
        original = None if facts["original"] is None else Path(facts["original"])
        model, newest = str(facts["model"]), max(written, key=written.__getitem__)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if original is not None and original.exists() and original.stat().st_mtime >= written[newest]:
        return None
    edits = newest if newest == _edits(note) else None
    return Recoverable(file=next(iter(written)), edits=edits, original=original, model=model, written=written[newest])

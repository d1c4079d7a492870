"""Recovery files: copies of unsaved sessions in the user's state folder, offered again after a crash.

A copy of the whole session (``.qwb``) is written now and then; the edits (``.edits``: see ``journal``) right when they
are made.  What a model that was never saved is, without results (``.base``), is written before its first edit.
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

from workbench.errors import SessionError
from workbench.plain_file import read_json
from workbench.session.session import Session
from workbench.session.shared_file import Stamp, stamp_of

BASE = ".base"
"""How the names end of what edits of a model that was never saved are made to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoverable:
    """A recovery file, the journal of edits where there is one, the session file that they belong to (None: never
    saved), the model's name, and when the newest was written (seconds since 1970, UTC).

    ``read`` is the version of the session file that they were made to, where it is known.

    ``base`` is what the edits are made to: the recovery file, or, where the session was not copied yet, the session's
    own file or what a model was before its first edit.
    """

    file: Path
    base: Path
    edits: Path | None
    original: Path | None
    model: str
    written: float
    read: Stamp = ()

    @property
    def is_of_another_version(self) -> bool:
        """Whether another program has written the session file since the edits were begun."""
        return self.original is not None and bool(self.read) and stamp_of(self.original) not in ((), self.read)


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


def write_recovery(session: Session, path: Path | None, folder: Path, *, base: bool = False, read: Stamp = ()) -> Path:
    """Write the recovery file of a session that belongs to ``path`` into a window's folder, atomically; return it.

    ``read`` is the version of ``path`` that was read or saved by the window.  ``base``: ``session`` holds no results,
    and is offered with a journal of edits only.  Raises SessionError.
    """
    file = recovery_path(path, folder)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        written = file.with_suffix(BASE) if base else file
        session.save(written)
        if not base:
            write_note(session, path, file, read)
    except OSError as error:
        raise SessionError(f"the recovery folder {file.parent} cannot be written: {error.strerror}") from error
    return written


def write_note(session: Session, path: Path | None, file: Path, read: Stamp) -> None:
    """Note what a recovery file belongs to: from then on it is offered, and its journal.  Raises OSError."""
    original = None if path is None else os.path.abspath(path)
    text = json.dumps({"original": original, "model": session.model.name, "read": read})
    temporary = file.with_name(f".{file.stem}.note")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, _note(file))


def discard_recovery(file: Path) -> None:
    """Remove a recovery file after a save, or a close without one; does nothing if there is none."""
    for each in (_note(file), journal_path(file), file.with_suffix(BASE), file.with_suffix(".qwb")):
        each.unlink(missing_ok=True)


def recoverable(folders: Iterable[Path] | None = None) -> tuple[Recoverable, ...]:
    """Return the recovery files of ``folders`` (None: of all) that are newer than their sessions, newest first."""
    searched = window_folders() if folders is None else folders
    entries = [entry for folder in searched for note in folder.glob("*.json") if (entry := _entry(note)) is not None]
    return tuple(sorted(entries, key=lambda entry: entry.written, reverse=True))


def _note(file: Path) -> Path:
    return file.with_suffix(".json")


def journal_path(file: Path) -> Path:
    """Return the journal of a recovery file."""
    return file.with_suffix(".edits")


def _entry(note: Path) -> Recoverable | None:
    """Return the entry of a note; None where it is unreadable, or its files are older than their session and it does
    not say of which version they are."""
    copy, journal = note.with_suffix(".qwb"), journal_path(note)
    try:
        written = {file: file.stat().st_mtime for file in (copy, journal) if file.exists()}
        facts = read_json(note)
        original = None if facts["original"] is None else Path(facts["original"])
        model, newest = str(facts["model"]), max(written.values())
        read = tuple(int(number) for number in facts.get("read", ()))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not read and original is not None and original.exists() and original.stat().st_mtime >= newest:
        return None
    bases = (copy, original, note.with_suffix(BASE))
    base = next((file for file in bases if file is not None and file.exists()), None)
    if base is None:
        return None
    edits = journal if journal in written else None
    return Recoverable(file=copy, base=base, edits=edits, original=original, model=model, written=newest, read=read)

"""The journal of edits: a line for each, written on a thread of its own at the moment of the edit.

A line is the edits as JSON behind its SHA-256, appended in one write: what was written outlives the process however it
ends, and the last whole line counts.  Nothing else has to run for it, neither a process nor the window's event loop.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypedDict, TypeVar

from workbench.errors import SessionError, WorkbenchError, first_line
from workbench.numerics.ranges import Range
from workbench.plain_file import read_bytes
from workbench.planning.plan import Plan
from workbench.session.autosave import journal_path, write_note
from workbench.session.budget import Budget, known_budget
from workbench.session.columns import PIECE
from workbench.session.edits import EditableParts, Ranges
from workbench.session.newest import Newest
from workbench.session.session import Session
from workbench.session.shared_file import Stamp

T = TypeVar("T")

Due = tuple[Session, Path | None, Stamp, Path, int]
"""A session whose edits are to be written, its file, the version of that, its recovery file, and how often was
forgotten what was due."""


class _Line(TypedDict):
    """A line of the journal; ``active_ranges`` and the plans are JSON themselves."""

    model: str
    plan: str
    plans: dict[str, str]
    active_ranges: str
    locked: list[str]
    target: str
    budget: tuple[float, str] | None


MALFORMED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What a line raises whose contents are not those of edits."""

LARGEST = 16 << 20
"""Bytes after which a journal begins again with its newest line."""


class Journal:
    """Writes the newest edits to a file; ``failed`` is called on the writing thread with why a line was not written.

    A second thread has what was written outlive the machine, too: a busy disk takes seconds for it, in which other
    lines are written.
    """

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self._failed = failed
        self._lines = Newest[Due]("journal", self._write, failed=self._write_failed)
        self._flushes = Newest[int]("journal-flush", _flush, replaced=os.close)  # of descriptors
        self._forgotten = 0  # how often
        self._files = threading.Lock()  # held while files change; nobody waits for it who has an edit to hand over
        self._texts: dict[int, tuple[object, str]] = {}  # by identity: parts as they were written last
        self._stream: tuple[tuple[Path, Stamp], int] | None = None  # the file that is open, and its descriptor

    def put(self, session: Session, path: Path | None, file: Path, read: Stamp = ()) -> None:
        """Have the edits of ``session`` written beside its recovery ``file``; returns at once.

        It belongs to ``path``, of which the version ``read`` was read or saved last.
        """
        self._lines.put((session, path, read, file, self._forgotten))

    def forget(self) -> None:
        """Write nothing of what was put so far; the caller removes the files."""
        with self._files:
            self._forgotten += 1
            self._end_file()

    def close(self) -> None:
        """Write what is due, and end the threads; one that waits for a disk that never answers is left."""
        if self._lines.close() and self._flushes.close():
            self._end_file()

    def _write(self, due: Due) -> None:
        """Write a line, unless it was forgotten.

        One that is no longer the newest is written as well: edits may come faster than a busy machine makes lines.
        """
        line = self._line(due[0])
        with self._files:
            if self._forgotten == due[-1]:
                self._append(due, line)
                if self._stream is not None:
                    self._flushes.put(os.dup(self._stream[1]))

    def _write_failed(self, error: Exception) -> None:
        self._failed(error)
        with self._files:
            self._end_file()

    def _append(self, due: Due, line: bytes) -> None:
        session, path, read, file, _ = due
        journal = journal_path(file)
        if self._stream and self._stream[0] == (journal, read) and os.fstat(self._stream[1]).st_size < LARGEST:
            _write(self._stream[1], line)
            return _make_newer(journal, path)
        self._end_file()
        temporary = journal.with_name(f".{journal.name}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        self._stream = (journal, read), os.open(temporary, flags, 0o600)
        _write(self._stream[1], line)
        os.replace(temporary, journal)
        _make_newer(journal, path)
        write_note(session, path, file, read)

    def _end_file(self) -> None:
        if self._stream is not None:
            os.close(self._stream[1])
        self._stream = None

    def _line(self, session: Session) -> bytes:
        """Return the line of a session's edits."""
        parts, known = EditableParts.of(session), self._texts
        self._texts = {}

        def written(part: T, write: Callable[[T], str]) -> str:
            _, text = self._texts[id(part)] = known.get(id(part)) or (part, write(part))
            return text

        content: _Line = {
            "model": session.model.fingerprint, "plan": written(parts.plan, Plan.to_json),
            "plans": {name: written(plan, Plan.to_json) for name, plan in parts.plans.items()},
            "active_ranges": written(parts.active_ranges, _ranges_text), "locked": sorted(parts.locked),
            "target": parts.target, "budget": _amount(parts.budget),
        }  # fmt: skip
        text = json.dumps(content, separators=(",", ":")).encode()
        return hashlib.sha256(text).hexdigest().encode() + b" " + text + b"\n"


def read_journal(file: Path, session: Session) -> Session:
    """Return ``session`` with the edits of the last whole line.

    Raises SessionError where there is none, and for edits of another model.
    """
    try:
        lines = read_bytes(file).split(b"\n")
    except OSError as error:
        raise SessionError(f"the journal {file} cannot be read: {error.strerror}") from None
    for line in reversed(lines):
        digest, _, text = line.partition(b" ")
        if text and hashlib.sha256(text).hexdigest().encode() == digest:
            break
    else:
        raise SessionError(f"the journal {file} holds no whole edit")
    try:
        content = json.loads(text)
        if content["model"] != session.model.fingerprint:
            raise SessionError("its edits belong to another model")
        lacking = {"target": session.target, "budget": _amount(session.budget)}  # lines were without them
        return _parts(lacking | content, str(file)).into(session)
    except (*MALFORMED, WorkbenchError) as error:
        raise SessionError(f"the journal {file} cannot be read: {first_line(error)}") from None


def _amount(budget: Budget | None) -> tuple[float, str] | None:
    return (budget.amount, budget.unit) if budget else None


def _ranges_text(ranges: Ranges) -> str:
    """Write them piece by piece: between two, the window's thread gets its turn."""
    rows = ([*key, each.low, each.high, each.method, each.clipped] for key, each in ranges.items())
    return f"[{','.join(json.dumps(list(piece))[1:-1] for piece in _pieces(rows))}]"


def _pieces(rows: Iterator[list[object]]) -> Iterator[list[list[object]]]:
    while piece := list(islice(rows, PIECE)):
        yield piece


def _parts(content: _Line, where: str) -> EditableParts:
    ranges = {
        (str(layer), str(tap)): Range(low=float(low), high=float(high), method=str(method), clipped=float(clipped))
        for layer, tap, low, high, method, clipped in json.loads(content["active_ranges"])
    }
    return EditableParts(
        plan=Plan.from_json(content["plan"], where), locked=frozenset(map(str, content["locked"])),
        plans={name: Plan.from_json(plan, where) for name, plan in content["plans"].items()}, active_ranges=ranges,
        target=str(content["target"]), budget=known_budget(*content["budget"]) if content["budget"] else None,
    )  # fmt: skip


def _flush(descriptor: int) -> None:
    """Flush a file, whose descriptor is closed then."""
    for end in (os.fsync, os.close):  # a descriptor that fails to close is closed: trying again would close another's
        with contextlib.suppress(OSError):
            end(descriptor)


def _write(descriptor: int, line: bytes) -> None:
    view = memoryview(line)
    while view:
        view = view[os.write(descriptor, view) :]


def _make_newer(journal: Path, path: Path | None) -> None:
    """Date the journal after the session's file, which may have been saved in the same tick of the file system."""
    with contextlib.suppress(OSError):
        if path is not None and (saved := path.stat().st_mtime_ns) >= journal.stat().st_mtime_ns:
            os.utime(journal, ns=(saved + 10**6, saved + 10**6))

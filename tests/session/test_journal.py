"""The journal of edits: the last whole line counts, whatever the names are, and a full disk is tried again."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.session.sessions import full_session, identical
from workbench.errors import SessionError
from workbench.session import journal
from workbench.session import newest as newest_of
from workbench.session.autosave import journal_path, recoverable
from workbench.session.budget import Budget
from workbench.session.edits import EditableParts
from workbench.session.journal import Journal, read_journal


def until(is_so: Callable[[], object], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture
def failures() -> list[Exception]:
    return []


def named(name: str) -> Any:
    session = full_session()
    return replace(session, plan=replace(session.plan, name=name))


def test_every_edit_comes_back(tmp_path: Path, failures: list[Exception]) -> None:
    session, file, written = full_session(), tmp_path / "s.qwb", Journal(failures.append)
    session.save(tmp_path / "original.qwb")
    written.put(session, tmp_path / "original.qwb", file)
    until(journal_path(file).exists)
    written.close()
    assert not failures
    before = replace(session, plan=replace(session.plan, rules=()), plans={}, active_ranges={}, locked=frozenset())
    after = read_journal(journal_path(file), before)
    for item, other in zip(_parts(after), _parts(session), strict=True):
        assert identical(item, other)
    assert identical(after.evaluations, session.evaluations)
    until(lambda: recoverable([tmp_path]))
    (entry,) = recoverable([tmp_path])
    assert entry.base == tmp_path / "original.qwb" and entry.edits == journal_path(file)
    assert oct(journal_path(file).stat().st_mode & 0o777) == "0o600"


def newest(file: Path) -> str:
    return str(read_journal(journal_path(file), full_session()).plan.name) if journal_path(file).exists() else ""


def test_no_edit_waits_until_the_disk_has_flushed_the_one_before(
    tmp_path: Path, failures: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    flushing, go_on = threading.Event(), threading.Event()

    def slow(descriptor: int) -> None:
        flushing.set()
        assert go_on.wait(20)

    monkeypatch.setattr(journal.os, "fsync", slow)
    written, file = Journal(failures.append), tmp_path / "s.qwb"
    written.put(named("first"), None, file)
    assert flushing.wait(20)
    for name in ("second", "third"):
        written.put(named(name), None, file)
        until(lambda name=name: newest(file) == name)
    go_on.set()
    written.close()
    assert not failures


def test_edits_that_come_faster_than_lines_are_made_are_written_too(
    tmp_path: Path, failures: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    written, file, made = Journal(failures.append), tmp_path / "s.qwb", Journal._line

    def interrupted(self: Journal, session: Any) -> bytes:
        line = made(self, session)
        number = int(session.plan.name)
        if number < 50:
            self.put(named(str(number + 1)), None, file)  # the user's next edit
            assert number == 0 or newest(file) == str(number - 1)
        return line

    monkeypatch.setattr(Journal, "_line", interrupted)
    written.put(named("0"), None, file)
    until(lambda: newest(file) == "50")
    written.close()
    assert not failures


def test_what_was_forgotten_while_its_line_was_made_is_not_written(
    tmp_path: Path, failures: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    written, file, made = Journal(failures.append), tmp_path / "s.qwb", Journal._line

    def forgetting(self: Journal, session: Any) -> bytes:
        if session.plan.name == "first":
            self.forget()
            self.put(named("second"), None, tmp_path / "other.qwb")
        return made(self, session)

    monkeypatch.setattr(Journal, "_line", forgetting)
    written.put(named("first"), None, file)
    until(lambda: newest(tmp_path / "other.qwb") == "second")
    written.close()
    assert not journal_path(file).exists() and not failures


def _parts(session: Any) -> list[Any]:
    parts = EditableParts.of(session)
    return [parts.plan, dict(parts.plans), dict(parts.active_ranges), parts.locked, parts.target]


def test_the_last_whole_line_counts(tmp_path: Path, failures: list[Exception]) -> None:
    file, written = tmp_path / "s.qwb", Journal(failures.append)
    for name in ("first", "second", "third"):
        written.put(named(name), None, file)
        until(lambda name=name: journal_path(file).exists() and name in journal_path(file).read_text())
    written.close()
    whole = journal_path(file).read_bytes()
    for cut, name in ((0, "third"), (1, "third"), (2, "second"), (len(whole) // 2, "first")):
        journal_path(file).write_bytes(whole[: len(whole) - cut])
        assert read_journal(journal_path(file), full_session()).plan.name == name
    journal_path(file).write_bytes(whole[:100])
    with pytest.raises(SessionError, match="no whole edit"):
        read_journal(journal_path(file), full_session())
    other = replace(full_session(), model=replace(full_session().model, fingerprint="sha256:" + "1" * 64))
    journal_path(file).write_bytes(whole)
    with pytest.raises(SessionError, match="another model"):
        read_journal(journal_path(file), other)


@pytest.mark.parametrize("change", [
    {"plans": None}, {"plans": [1]}, {"plans": {"a": 3}}, {"active_ranges": f'[["a", "input", {10**400}, 1, "", 0]]'},
    {"locked": None}, {"budget": [1]}, {"budget": 5},
], ids=str)  # fmt: skip
def test_a_whole_line_that_says_something_else_is_one_sentence(
    change: dict[str, Any], tmp_path: Path, failures: list[Exception]
) -> None:
    session, written = full_session(), Journal(failures.append)
    written.put(session, None, tmp_path / "s.qwb")
    written.close()
    file = journal_path(tmp_path / "s.qwb")
    text = json.dumps(json.loads(file.read_bytes().partition(b" ")[2]) | change).encode()
    file.write_bytes(hashlib.sha256(text).hexdigest().encode() + b" " + text + b"\n")
    with pytest.raises(SessionError, match="cannot be read") as caught:
        read_journal(file, session)
    assert "\n" not in str(caught.value)


def test_lines_of_before_budgets_leave_the_budget(tmp_path: Path, failures: list[Exception]) -> None:
    file, written = tmp_path / "s.qwb", Journal(failures.append)
    written.put(named("first"), None, file)
    until(lambda: newest(file) == "first")
    written.close()
    content = json.loads(journal_path(file).read_bytes().partition(b" ")[2])
    content.pop("budget")
    text = json.dumps(content).encode()
    journal_path(file).write_bytes(hashlib.sha256(text).hexdigest().encode() + b" " + text + b"\n")
    searched = replace(full_session(), budget=Budget(amount=8.1))
    assert read_journal(journal_path(file), searched).budget == Budget(amount=8.1)


def test_a_long_journal_begins_again(
    tmp_path: Path, failures: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "LARGEST", 100)
    file, written = tmp_path / "s.qwb", Journal(failures.append)
    for name in ("first", "second"):
        written.put(named(name), None, file)
        until(lambda name=name: journal_path(file).exists() and name in journal_path(file).read_text())
    written.close()
    assert journal_path(file).read_bytes().count(b"\n") == 1
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["s.edits", "s.json"]


def test_a_full_disk_is_told_and_tried_again(
    tmp_path: Path, failures: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newest_of, "AGAIN_SECONDS", 0.01)
    write, full = os.write, [True]

    def written_or_full(descriptor: int, data: bytes) -> int:
        if full:
            raise OSError(28, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(journal.os, "write", written_or_full)
    file, lines = tmp_path / "s.qwb", Journal(failures.append)
    lines.put(full_session(), None, file)
    until(lambda: failures)
    assert "No space left" in str(failures[0]) and not journal_path(file).exists()
    full.clear()
    until(journal_path(file).exists)
    lines.close()


def test_what_is_forgotten_is_not_written(tmp_path: Path, failures: list[Exception]) -> None:
    file, lines = tmp_path / "s.qwb", Journal(failures.append)
    lines.put(full_session(), None, file)
    lines.forget()
    journal_path(file).unlink(missing_ok=True)
    time.sleep(0.1)
    lines.close()
    assert not journal_path(file).exists()


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_closing_does_not_wait_for_a_disk_that_never_answers(
    tmp_path: Path, failures: list[Exception], monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """The writing thread holds the files meanwhile, and closing waited for them."""
    monkeypatch.setattr(newest_of, "CLOSE_SECONDS", 0.1)
    stuck, go_on, real = threading.Event(), threading.Event(), getattr(os, call)

    def never(descriptor: int, *data: bytes) -> Any:
        stuck.set()
        assert go_on.wait(20)
        return real(descriptor, *data)

    monkeypatch.setattr(journal.os, call, never)
    file, lines = tmp_path / "s.qwb", Journal(failures.append)
    lines.put(named("last"), None, file)
    assert stuck.wait(20)
    begun = time.monotonic()
    lines.close()
    assert time.monotonic() - begun < 10
    go_on.set()
    until(lambda: newest(file) == "last")  # the thread, which was left, writes it all the same
    assert not failures

"""Recovery files: written, listed, discarded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.storage.sessions import full_session, identical
from workbench.errors import SessionError
from workbench.storage import autosave
from workbench.storage.session import Session


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    monkeypatch.setattr(autosave, "recovery_folder", lambda: folder / "recovery")
    return folder


def test_a_session_never_saved_is_found_again() -> None:
    file = autosave.write_recovery(full_session(), None)
    (entry,) = autosave.recoverable()
    assert entry.file == file and entry.original is None and entry.model == "ein Modell"
    assert identical(Session.load(file).plan, full_session().plan)


def test_a_session_that_was_saved_later_needs_no_recovery(tmp_path: Path) -> None:
    path = tmp_path / "a.qwb"
    file = autosave.write_recovery(full_session(), path)
    assert [entry.original for entry in autosave.recoverable()] == [path]
    full_session().save(path)
    os.utime(path, (file.stat().st_mtime + 1,) * 2)
    assert autosave.recoverable() == ()


def test_newest_first_and_files_of_one_name_are_apart(tmp_path: Path) -> None:
    paths = [tmp_path / "a" / "s.qwb", tmp_path / "b" / "s.qwb"]
    for age, path in enumerate(paths):
        os.utime(autosave.write_recovery(full_session(), path), (1000 + age,) * 2)
    assert [entry.original for entry in autosave.recoverable()] == paths[::-1]


def test_discarding_removes_it() -> None:
    autosave.write_recovery(full_session(), None)
    autosave.discard_recovery(None)
    autosave.discard_recovery(None)
    assert autosave.recoverable() == () and not list(autosave.recovery_folder().iterdir())


def test_a_file_without_a_readable_note_is_passed_over(state: Path) -> None:
    file = autosave.write_recovery(full_session(), None)
    file.with_suffix(".json").write_text("{", encoding="utf-8")
    assert autosave.recoverable() == ()


def test_a_folder_that_cannot_be_made_is_an_error(state: Path) -> None:
    state.write_text("in the way", encoding="utf-8")
    with pytest.raises(SessionError, match="recovery folder"):
        autosave.write_recovery(full_session(), None)

"""Recovery files: written, listed, discarded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.session.sessions import full_session, identical
from workbench.errors import SessionError
from workbench.session import autosave
from workbench.session.session import Session
from workbench.session.shared_file import stamp_of


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    monkeypatch.setattr(autosave, "recovery_folder", lambda: folder / "recovery")
    return folder


@pytest.fixture
def window(state: Path) -> Path:
    """The folder of a window."""
    return state / "recovery" / "one"


def test_a_session_never_saved_is_found_again(window: Path) -> None:
    file = autosave.write_recovery(full_session(), None, window)
    (entry,) = autosave.recoverable()
    assert entry.file == file and entry.original is None and entry.model == "ein Modell"
    assert identical(Session.load(file).plan, full_session().plan)


def test_a_session_that_was_saved_later_needs_no_recovery(tmp_path: Path, window: Path) -> None:
    path = tmp_path / "a.qwb"
    file = autosave.write_recovery(full_session(), path, window)
    assert [entry.original for entry in autosave.recoverable()] == [path]
    full_session().save(path)
    os.utime(path, (file.stat().st_mtime + 1,) * 2)
    assert autosave.recoverable() == ()


def test_edits_are_offered_where_another_program_has_written_their_session_since(tmp_path: Path, window: Path) -> None:
    """They were not: to the next window the session looked saved, and the edits of the crashed one were lost."""
    path = tmp_path / "a.qwb"
    full_session().save(path)
    file = autosave.write_recovery(full_session(), path, window, read=stamp_of(path))
    (entry,) = autosave.recoverable()
    assert entry.read == stamp_of(path) and not entry.is_of_another_version
    full_session().save(path)
    os.utime(path, (file.stat().st_mtime + 1,) * 2)
    (entry,) = autosave.recoverable()
    assert entry.file == file and entry.is_of_another_version
    path.unlink()
    (entry,) = autosave.recoverable()
    assert not entry.is_of_another_version, "nothing is in the way"


def test_newest_first_and_files_of_one_name_are_apart(tmp_path: Path, window: Path) -> None:
    paths = [tmp_path / "a" / "s.qwb", tmp_path / "b" / "s.qwb"]
    for age, path in enumerate(paths):
        os.utime(autosave.write_recovery(full_session(), path, window), (1000 + age,) * 2)
    assert [entry.original for entry in autosave.recoverable()] == paths[::-1]


def test_windows_keep_their_copies_apart(window: Path) -> None:
    other = window.parent / "other"
    files = [autosave.write_recovery(full_session(), None, folder) for folder in (window, other)]
    assert autosave.window_folders() == (window, other)
    assert sorted(entry.file for entry in autosave.recoverable()) == files
    assert [entry.file for entry in autosave.recoverable([other])] == files[1:]


def test_discarding_removes_it(window: Path) -> None:
    file = autosave.write_recovery(full_session(), None, window)
    autosave.discard_recovery(file)
    autosave.discard_recovery(file)
    assert autosave.recoverable() == () and not list(window.iterdir())


def test_a_file_without_a_readable_note_is_passed_over(window: Path) -> None:
    file = autosave.write_recovery(full_session(), None, window)
    file.with_suffix(".json").write_text("{", encoding="utf-8")
    assert autosave.recoverable() == ()


def test_a_folder_that_cannot_be_made_is_an_error(state: Path, window: Path) -> None:
    state.write_text("in the way", encoding="utf-8")
    with pytest.raises(SessionError, match="recovery folder"):
        autosave.write_recovery(full_session(), None, window)

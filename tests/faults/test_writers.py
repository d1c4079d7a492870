"""Several writers of one session keep every result; files and folders are replaced whole; nothing dead is left."""

from __future__ import annotations

import dataclasses
import errno
import multiprocessing
import os
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from tests.session.sessions import identical, small_session
from workbench import atomic
from workbench.atomic import replacing, replacing_folder, replacing_with_data, temporary_folder
from workbench.errors import ExportError, SessionError
from workbench.planning.plan import Plan
from workbench.session import shared_file
from workbench.session.session import Session
from workbench.session.shared_file import SharedFile, writing

pytestmark = pytest.mark.skipif(os.name == "nt", reason="forks")


def added(session: Session, name: str) -> Session:
    return dataclasses.replace(session, plans={**session.plans, name: Plan(name=name)})


@pytest.mark.parametrize("count", [2, 8])
def test_every_writer_keeps_its_result(tmp_path: Path, count: int) -> None:
    path = tmp_path / "s.qwb"
    small_session().save(path)
    context = multiprocessing.get_context("fork")
    ready = context.Barrier(count)

    def write(number: int) -> None:
        file = SharedFile.open(path)
        ready.wait(200)  # all have read the same session
        file.save(lambda session: added(session, f"writer {number}"))

    writers = [context.Process(target=write, args=(number,)) for number in range(count)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0] * count
    assert {f"writer {number}" for number in range(count)} <= Session.load(path).plans.keys()
    assert os.listdir(tmp_path) == ["s.qwb"]


def test_a_writer_that_waits_in_vain_names_the_holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_file, "SECONDS", 0.1)
    with (
        writing(tmp_path / "s.qwb"),
        pytest.raises(SessionError, match=f"is being written by process {os.getpid()} on"),
        writing(tmp_path / "s.qwb"),
    ):
        pass


def test_a_writer_waits_as_long_as_others_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of eight commands on a busy machine the last one gave up, and its result was lost."""
    clock, acquired = [0.0], shared_file._acquired
    fast = SimpleNamespace(monotonic=lambda: clock[-1], sleep=lambda seconds: clock.append(clock[-1] + 30))
    monkeypatch.setattr(shared_file, "time", fast)
    monkeypatch.setattr(shared_file, "_holder", lambda lock: f"process {clock[-1] // 100}")
    monkeypatch.setattr(shared_file, "_acquired", lambda lock: None if clock[-1] < 600 else acquired(lock))
    with writing(tmp_path / "s.qwb"):
        assert clock[-1] == 600
    assert os.listdir(tmp_path) == []


def test_the_result_of_a_writer_that_waits_in_vain_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.qwb"
    small_session().save(path)
    monkeypatch.setattr(shared_file, "SECONDS", 0.1)
    for name in ("s-result.qwb", "s-result1.qwb"):
        file = SharedFile.open(path)
        with writing(path), pytest.raises(SessionError, match=f"is being written by .*the result is in .*{name}"):
            file.save(lambda session: added(session, "waited"))
        assert "waited" in Session.load(tmp_path / name).plans
    assert sorted(os.listdir(tmp_path)) == ["s-result.qwb", "s-result1.qwb", "s.qwb"]


def test_a_read_only_file_system_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There, removing the file that was never made is an error, too, and took the place of the words."""

    def refused(*_: object, **__: object) -> int:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "open", refused)
    monkeypatch.setattr(Path, "unlink", refused)
    with (
        pytest.raises(SessionError, match="the session could not be written to .*: Read-only file system"),
        replacing(tmp_path / "s.qwb", SessionError, "the session"),
    ):
        pass


def test_the_lock_of_a_killed_writer_is_free(tmp_path: Path, left: Sequence[str] = (".s.qwb.lock",)) -> None:
    context = multiprocessing.get_context("fork")

    def die() -> None:
        with writing(tmp_path / "s.qwb"):
            os.kill(os.getpid(), 9)

    writer = context.Process(target=die)
    writer.start()
    writer.join(60)
    assert sorted(os.listdir(tmp_path)) == list(left)
    with writing(tmp_path / "s.qwb"):
        pass
    assert os.listdir(tmp_path) == []


def test_a_lock_that_is_a_link_harms_nothing(tmp_path: Path) -> None:
    """A stranger's folder may hold a session, and a link with its lock's name that leads to a file of the user's."""
    session, lock, own = tmp_path / "s.qwb", tmp_path / ".s.qwb.lock", tmp_path / "own.txt"
    small_session().save(session)
    own.write_text("the user's")
    for make in (lambda: lock.symlink_to(own), lambda: lock.symlink_to("missing"), lambda: os.link(own, lock),
                 lambda: os.mkfifo(lock), lambda: lock.mkdir()):  # fmt: skip
        make()
        with pytest.raises(SessionError, match=r"\.s\.qwb\.lock stands where the session's lock belongs.* remove it"):
            SharedFile.open(session).save(lambda session: session)
        assert own.read_text() == "the user's" and not (tmp_path / "missing").exists()
        lock.rmdir() if lock.is_dir() and not lock.is_symlink() else lock.unlink()
    assert sorted(os.listdir(tmp_path)) == ["own.txt", "s.qwb"]


def test_the_lock_of_another_user_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It can be read and not written, which is enough to lock it."""
    opened, lock = os.open, tmp_path / ".s.qwb.lock"

    def reads_only(path: Path, flags: int, *mode: int) -> int:
        if path == lock and flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, flags, *mode)

    monkeypatch.setattr(shared_file, "SECONDS", 0.1)
    with writing(tmp_path / "s.qwb"):
        monkeypatch.setattr(os, "open", reads_only)
        with pytest.raises(SessionError, match="is being written by process"), writing(tmp_path / "s.qwb"):
            pass
    lock.write_text("")
    with writing(tmp_path / "s.qwb"):
        pass
    assert os.listdir(tmp_path) == []


@pytest.fixture
def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(descriptor: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(shared_file, "_lock", refused)


@pytest.mark.usefixtures("without_locks")
@pytest.mark.parametrize("count", [2, 8])
def test_every_writer_keeps_its_result_without_locks(tmp_path: Path, count: int) -> None:
    test_every_writer_keeps_its_result(tmp_path, count)


@pytest.mark.usefixtures("without_locks")
def test_a_dead_holder_is_noticed_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test_the_lock_of_a_killed_writer_is_free(tmp_path, [".s.qwb.held", ".s.qwb.lock"])
    monkeypatch.setattr(shared_file, "SECONDS", 0.2)
    held = tmp_path / ".s.qwb.held"
    held.write_text('{"process": 1, "machine": "elsewhere", "command": "calibrate"}')
    with (
        pytest.raises(SessionError, match=r"by process 1 on elsewhere \(calibrate\).* remove .*\.held if it has ended"),
        writing(tmp_path / "s.qwb"),
    ):
        pass
    assert held.exists()


def test_a_result_is_not_lost_with_the_file(tmp_path: Path) -> None:
    """The file was removed, replaced by one of another model, or damaged while a step ran."""
    path, other = tmp_path / "s.qwb", tmp_path / "s-result.qwb"
    small_session().save(path)
    file = SharedFile.open(path)
    path.unlink()
    file.save(lambda session: added(session, "removed"))
    assert "removed" in Session.load(path).plans
    model = dataclasses.replace(small_session().model, fingerprint="sha256:" + "1" * 64)
    replaced = dataclasses.replace(small_session(), model=model)
    replaced.save(path)
    with pytest.raises(SessionError, match=f"another model now; the result is in {other}"):
        file.save(lambda session: added(session, "replaced"))
    assert "replaced" in Session.load(other).plans and identical(Session.load(path), replaced)
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(SessionError, match="the result is in .*s-result1.qwb"):
        file.save(lambda session: added(session, "damaged"))
    assert "damaged" in Session.load(tmp_path / "s-result1.qwb").plans
    assert sorted(os.listdir(tmp_path)) == ["s-result.qwb", "s-result1.qwb", "s.qwb"]


def test_a_read_only_file_is_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "s.qwb"
    file.write_text("old")
    file.chmod(0o444)
    with pytest.raises(SessionError, match="read-only"), replacing(file, SessionError, "the session") as temporary:
        temporary.write_text("new")
    assert file.read_text() == "old" and os.listdir(tmp_path) == ["s.qwb"]


def test_a_private_file_is_private_from_its_first_byte(tmp_path: Path) -> None:
    file = tmp_path / "s.qwb"
    file.write_text("old")
    file.chmod(0o600)
    with replacing(file, SessionError, "the session") as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
        temporary.write_text("new")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and file.read_text() == "new"


DIES = """
import os, sys
from pathlib import Path
from workbench.atomic import replacing, replacing_folder
from workbench.errors import ExportError
target = Path(sys.argv[1])
with (replacing_folder if target.suffix == "" else replacing)(target, ExportError, "it") as temporary:
    (temporary / "x" if target.suffix == "" else temporary).write_text("half")
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("name", ["file.bin", "folder"])
@pytest.mark.parametrize(
    "earlier", ["file.bin", "another name", "two\nlines", "漢" * 85], ids=["first", "other", "lines", "wide"]
)
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path, name: str, earlier: str) -> None:
    subprocess.run([sys.executable, "-c", DIES, str(tmp_path / earlier)], cwd=Path(__file__).parents[2])
    (left,) = os.listdir(tmp_path)
    assert left.endswith(".part")
    alive = tmp_path / left.replace(left.split("-")[1], str(os.getppid()))
    alive.write_text("of a process that lives")
    if name == "folder":
        with replacing_folder(tmp_path / name, ExportError, "it") as temporary:
            (temporary / "x").write_text("whole")
    else:
        with replacing(tmp_path / name, ExportError, "it") as temporary:
            temporary.write_text("whole")
    assert sorted(os.listdir(tmp_path)) == sorted([alive.name, name])


@pytest.mark.skipif(os.name == "nt", reason="files have no owner by number there")
def test_what_another_user_put_there_removes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder that users share it would have had the data removed that bear its mark."""
    subprocess.run([sys.executable, "-c", DIES, str(tmp_path / "x")], cwd=Path(__file__).parents[2])
    (left,) = tmp_path.iterdir()
    data = tmp_path / f"model.onnx.{left.name.split('-')[2].removesuffix('.part')}.data"
    data.write_text("of a model")
    with monkeypatch.context() as other:
        other.setattr(os, "geteuid", lambda: 12345)
        with replacing(tmp_path / "file.bin", ExportError, "it") as temporary:
            temporary.write_text("whole")
    assert data.exists() and left.exists()


def test_what_goes_with_another_one_does_not_keep_the_rest(tmp_path: Path) -> None:
    """A folder that went with its file ended the search, and all that came after it stayed."""
    subprocess.run([sys.executable, "-c", DIES, str(tmp_path / "x")], cwd=Path(__file__).parents[2])
    (left,) = tmp_path.iterdir()
    mark = left.name.split("-")[2].removesuffix(".part")
    for number in range(16):
        other = tmp_path / left.name.replace(mark, f"{number:08x}")
        other.write_text("half")
        other.with_suffix(".old").mkdir()
    with replacing(tmp_path / "file.bin", ExportError, "it") as temporary:
        temporary.write_text("whole")
    assert os.listdir(tmp_path) == ["file.bin"]


def test_what_a_killed_process_left_is_removed_when_another_has_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([sys.executable, "-c", DIES, str(tmp_path / "x")], cwd=Path(__file__).parents[2])
    (left,) = tmp_path.iterdir()
    again = left.rename(tmp_path / left.name.replace(left.name.split("-")[1], str(os.getpid())))
    os.utime(again, (0, 0))
    with replacing(tmp_path / "file.bin", ExportError, "it") as temporary:
        temporary.write_text("whole")
    assert again.exists(), "what a living process has copied or moved aside has an older time"
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: time.time() + 3600)
    with replacing(tmp_path / "file.bin", ExportError, "it") as temporary:
        temporary.write_text("whole")
    assert os.listdir(tmp_path) == ["file.bin"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_arrays_that_numpy_cannot_write_whole_have_one_of_two_reasons(tmp_path: Path) -> None:
    """numpy says how many bytes it wrote, and not why no more: a full disk and a limit on the size look the same."""
    reasons = r"the disk is full, or the file larger than allowed \(.* MB are free\)"
    with (
        pytest.raises(ExportError, match=f"m.onnx: {reasons}; what was there before is untouched"),
        replacing(tmp_path / "m.onnx", ExportError, "the ONNX file"),
        open("/dev/full", "wb") as file,
    ):
        np.zeros(1 << 20).tofile(file)
    assert not os.listdir(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="exchanges names in one step on Linux only")
def test_a_folder_is_never_missing_while_it_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, observed, rename = tmp_path / "out", list[bool](), os.rename

    def watched(*paths: Path) -> None:
        rename(*paths)
        observed.append((target / "x").exists())

    monkeypatch.setattr(os, "rename", watched)
    for text in ("old", "new"):
        with replacing_folder(target, ExportError, "it") as temporary:
            (temporary / "x").write_text(text)
    assert (target / "x").read_text() == "new" and all(observed) and os.listdir(tmp_path) == ["out"]
    monkeypatch.setattr(atomic, "_exchanged", lambda one, other: False)
    with replacing_folder(target, ExportError, "it") as temporary:
        (temporary / "x").write_text("newer")
    assert (target / "x").read_text() == "newer"
    assert not all(observed)  # the way of other systems has a moment without the folder


def test_the_folder_of_a_killed_proof_goes_with_the_next(tmp_path: Path) -> None:
    """A copy of the whole model lay in it, and stayed until the machine was restarted."""
    parent = tmp_path / "a" / "scratch"
    died = os.fork()
    if not died:
        with temporary_folder(parent, ExportError, "it") as folder:
            (folder / "model").write_text("large")
            os.kill(os.getpid(), 9)
    os.waitpid(died, 0)
    assert len(os.listdir(parent)) == 1
    with temporary_folder(parent, ExportError, "it") as folder:
        assert [*parent.iterdir()] == [folder] and not [*folder.iterdir()]
    assert not os.listdir(parent)
    (tmp_path / "file").touch()
    with (
        pytest.raises(ExportError, match="it could not be written to .*file.*: (Not a directory|File exists)"),
        temporary_folder(tmp_path / "file" / "scratch", ExportError, "it"),
    ):
        pass


@pytest.mark.parametrize(
    "name", ["漢" * 83, "é" * 124 + "a", "a" * 251, os.fsdecode(b"\xff" * 251), "a\n" * 125], ids=range(5)
)
def test_a_name_may_be_as_long_as_the_system_takes(tmp_path: Path, name: str) -> None:
    """The parts and the lock beside it have the beginning of its name, counted in bytes as systems do."""
    file, folder = tmp_path / f"{name}.qwb", tmp_path / f"{name}.dir"
    small_session().save(file)
    SharedFile.open(file).save(lambda current: current)
    with replacing_folder(folder, ExportError, "it") as part:
        (part / "x").write_text("whole")
    assert {entry.name for entry in tmp_path.iterdir()} == {file.name, folder.name}


def test_a_failed_writer_that_is_killed_while_it_clears_up_takes_no_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that was to be replaced keeps its own."""
    out = tmp_path / "m.onnx"
    with replacing_with_data(out, ExportError, "the file") as (file, data):
        data.write_bytes(b"weights")
        file.write_bytes(data.name.encode())
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    with monkeypatch.context() as dying:
        dying.setattr(atomic, "require_replaceable", _fail)
        dying.setattr(atomic.shutil, "rmtree", _die)
        with pytest.raises(KeyboardInterrupt), replacing_with_data(out, ExportError, "the file") as (file, _):
            file.write_bytes(b"")
    monkeypatch.setattr(atomic, "_lives", lambda *_: False)
    with replacing(tmp_path / "next", ExportError, "the file") as temporary:
        temporary.write_bytes(b"")
    (tmp_path / "next").unlink()
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


def _fail(*_: object) -> None:
    raise ExportError("it is something else")


def _die(*_: object, **__: object) -> None:
    raise KeyboardInterrupt

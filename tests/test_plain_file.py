"""Files are read; pipes, devices and folders are one error, at once, wherever a stranger's folder may hold them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import stat
import threading
from pathlib import Path

import pytest

from tests.deployment.exporters.llamas import folder_of
from tests.session.sessions import full_session
from workbench import plain_file
from workbench.atomic import replacing, replacing_folder
from workbench.cli import main
from workbench.errors import (
    DataError,
    ExportError,
    MemoryLimitError,
    ModelError,
    PlanError,
    SessionError,
    out_of_memory,
)
from workbench.models.data import datasets
from workbench.models.data.datasets import open_dataset
from workbench.models.data.files import ALL, locate
from workbench.models.sources import open_model
from workbench.plain_file import opened, read_bytes, read_json, require_files
from workbench.planning.plan import Plan
from workbench.session.autosave import recoverable
from workbench.session.session import Session

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_what_is_no_file_is_an_error(tmp_path: Path, pipe: Path) -> None:
    for path, reason in ((pipe, "is a pipe"), (Path("/dev/zero"), "is a device"), (tmp_path, "Is a directory")):
        with pytest.raises(OSError, match=reason):
            opened(path)
    with pytest.raises(OSError, match="pipe is a pipe"):
        require_files(tmp_path)
    (tmp_path / "deep").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="nested too deep"):
        read_json(tmp_path / "deep")


def test_a_pipe_that_is_written_into_is_read_where_a_command_may_stand(pipe: Path) -> None:
    assert read_bytes(pipe, pipe=True) == b""  # nobody writes
    writer = os.open(pipe, os.O_RDWR)
    threading.Timer(0.1, lambda: (os.write(writer, b"late"), os.close(writer))).start()
    assert read_bytes(pipe, pipe=True) == b"late"


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "name", ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "generation_config.json"]
)
def test_a_model_with_a_pipe_among_its_files(tmp_path: Path, name: str) -> None:
    folder = folder_of("llama", tmp_path / "m", hidden_size=32, intermediate_size=32, num_hidden_layers=1)
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    if name == "config.json":  # without one, the weights alone are opened
        assert open_model(folder).summary.source.kind == "safetensors"
        return
    with pytest.raises(ModelError, match=f"{name} is a pipe, and a file is expected"):
        open_model(folder)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("index", ["[" * 100_000, '{"weight_map": 3}', None])
def test_an_index_that_is_none(tmp_path: Path, index: str | None) -> None:
    folder = folder_of("llama", tmp_path / "m", hidden_size=32, intermediate_size=32, num_hidden_layers=1)
    (folder / "model.safetensors").unlink()
    place = folder / "model.safetensors.index.json"
    os.mkfifo(place) if index is None else place.write_text(index)
    with pytest.raises(ModelError, match="index.json is (not an index|a pipe)"):
        open_model(folder)
    (folder / "config.json").write_text('{"a":' * 100_000)
    with pytest.raises(ModelError, match="nested too deep"):
        open_model(folder)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "suffix", ["npy", "npz", "pt", "pt2", "gguf", "onnx", "safetensors", "txt", "jsonl", "png", "wav"]
)
def test_a_pipe_in_place_of_a_file(tmp_path: Path, suffix: str) -> None:
    os.mkfifo(tmp_path / f"x.{suffix}")
    from tests.models.data.test_datasets import model

    for what in (lambda path: open_model(path), lambda path: open_dataset(path, model(tokens=None))):
        with pytest.raises((ModelError, DataError)):
            what(tmp_path / f"x.{suffix}")


@pytest.mark.timeout(120)
def test_sessions_plans_and_copies(tmp_path: Path, pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SessionError, match="a device or a pipe"):
        Session.load(pipe)
    with pytest.raises(PlanError, match="it is a device"):
        Plan.load("/dev/zero")
    full_session().save(tmp_path / "s.qwb")
    shutil.move(pipe, tmp_path / "1.json")
    (tmp_path / "2.json").write_text("[" * 100_000)
    (tmp_path / "3.json").write_text(json.dumps({"original": 5, "model": {}}))
    assert recoverable([tmp_path]) == ()


@pytest.mark.timeout(120)
def test_a_plan_from_another_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    full_session().save(tmp_path / "s.qwb")
    reading, writing = os.pipe()
    os.write(writing, Plan().to_json().encode())
    os.close(writing)
    assert main(["check", f"/dev/fd/{reading}", "--session", str(tmp_path / "s.qwb"), "--target", "vllm"]) == 0
    os.close(reading)


@pytest.mark.parametrize("kind", ["a pipe", "a device", "a socket"])
def test_what_is_no_file_is_never_replaced(tmp_path: Path, kind: str) -> None:
    """As root, a plan written to /dev/full took the place of the device."""
    place = tmp_path / "place"
    if kind == "a pipe":
        os.mkfifo(place)
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(place))
    else:
        try:
            os.mknod(place, 0o600 | stat.S_IFCHR, os.makedev(1, 7))
        except PermissionError:
            pytest.skip("only root makes devices")
    before = os.lstat(place)
    for write in (replacing, replacing_folder):
        for target in (place, tmp_path / "link"):
            if target != place and not target.is_symlink():
                target.symlink_to(place)
            refused = pytest.raises(ExportError, match=f"it is {kind}, which a file would replace")
            with refused, write(target, ExportError, "the plan"):
                raise AssertionError("nothing is written")
    assert os.lstat(place).st_ino == before.st_ino and sorted(os.listdir(tmp_path)) == ["link", "place"]


def sparse(path: Path, start: bytes = b"", size: int = 1 << 42) -> Path:
    """Write a file that says that it has four terabytes, and takes a block of the disk."""
    with path.open("wb") as stream:
        stream.write(start)
        stream.truncate(size)
    return path


def test_what_fills_the_memory_is_not_read(tmp_path: Path) -> None:
    for path, largest in ((sparse(tmp_path / "a"), None), (sparse(tmp_path / "b", size=9), 8), (Path("/dev/zero"), 8)):
        if path.is_file():
            with pytest.raises(OSError, match="it holds .*B, and .*B is the most"):
                read_bytes(path, largest=largest)
    (tmp_path / "c").write_bytes(b"12345678")
    assert read_bytes(tmp_path / "c", largest=8) == b"12345678"


def test_a_usual_file_that_does_not_fit_says_that_memory_ran_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_file, "available_memory", lambda: 10)
    (tmp_path / "a.txt").write_text("hello world", encoding="utf-8")
    with pytest.raises(MemoryLimitError, match=r"a\.txt holds .*B; .*B of memory are free; allow more \(--memory\)"):
        read_bytes(tmp_path / "a.txt")
    with pytest.raises(OSError, match="is the most") as caught:
        read_bytes(sparse(tmp_path / "b"))
    assert not out_of_memory(caught.value)


def test_a_pipe_without_end_is_not_read_to_its_end(pipe: Path) -> None:
    def write() -> None:
        with pytest.raises(BrokenPipeError), pipe.open("wb", buffering=0) as stream:
            while True:
                stream.write(b"1234" * 1024)

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        with contextlib.suppress(OSError):
            assert len(read_bytes(pipe, pipe=True, largest=8)) <= 8


def test_files_of_terabytes_are_one_error(tmp_path: Path) -> None:
    session = sparse(tmp_path / "s.qwb", b"\x89HDF\r\n\x1a\n")
    with pytest.raises(SessionError, match="holds 4.4 TB, and .* of memory are free"):
        Session.load(session)
    with pytest.raises(PlanError, match="it holds .* is the most"):
        Plan.load(sparse(tmp_path / "p.json"))
    folder = folder_of("llama", tmp_path / "llama", hidden_size=32, intermediate_size=32, num_hidden_layers=1)
    for name in ("generation_config.json", "tokenizer.json", "config.json"):
        before = (folder / name).read_bytes()
        sparse(folder / name)
        with pytest.raises(ModelError, match=f"{name}.* holds .* is the most"):
            open_model(folder)
        (folder / name).write_bytes(before)
    assert open_model(folder).summary.layers
    for name in ("x.wav", "x.txt", "x.npy", "x.npz", "x.json"):
        (tmp_path / name[2:]).mkdir()
        sparse(tmp_path / name[2:] / name, b"PK" if name == "x.npz" else b"")
        with pytest.raises((DataError, MemoryLimitError)) as caught:
            for _ in open_dataset(tmp_path / name[2:] / name, open_model(folder)).batches(1):
                pass
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["m.pt", "m.pt2", "m.gguf", "m.onnx", "m.safetensors", "m.py", "m"])
def test_a_pipe_is_called_no_regular_file_whatever_its_name(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(ModelError, match=f"{name} is a pipe, not a regular file"):
        open_model(tmp_path / name)
    for data in (name, "x.csv", "x.npz", "x.txt"):
        if not (tmp_path / data).exists():
            os.mkfifo(tmp_path / data)
        with pytest.raises(DataError, match=f"{data} is a pipe, not a regular file"):
            locate(tmp_path / data, ALL)


def test_data_that_are_refused_are_opened_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the estimate of a step, and again by the step."""
    asked = []

    def refused(path: str, *arguments: object, **options: object) -> None:
        asked.append(path)
        raise DataError("they are damaged")

    (tmp_path / "x.csv").write_text("a,b\n")
    monkeypatch.setattr(datasets, "open_dataset", refused)
    data, out = str(tmp_path / "x.csv"), str(tmp_path / "s.qwb")
    assert main(["calibrate", "demo:digits-classifier", "--data", data, "--out", out]) == 1
    assert asked == [data] and capsys.readouterr().err.endswith(": they are damaged\n")

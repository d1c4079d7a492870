"""The session file: exact round trips, readable by others, and clear words for whatever is not a session."""

from __future__ import annotations

import dataclasses
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.session.sessions import (
    ODD_NAMES,
    environment,
    full_file,
    full_session,
    identical,
    large_session,
    layer,
    summary,
)
from workbench.errors import SessionError
from workbench.numerics.ranges import Range
from workbench.planning.plan import Plan
from workbench.session.session import Session


def minimal() -> Session:
    return Session(model=summary((layer("a", 2, 2),)), environment=environment(), plan=Plan())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "s.qwb"
    path.write_bytes(full_file())
    return path


@pytest.mark.parametrize("make", [full_session, minimal, lambda: large_session(40, 6)])
def test_every_bit_survives(make: Callable[[], Session], tmp_path: Path) -> None:
    session = make()
    session.save(tmp_path / "s.qwb")
    loaded = Session.load(tmp_path / "s.qwb")
    for field in dataclasses.fields(Session):
        assert identical(getattr(session, field.name), getattr(loaded, field.name)), field.name
    assert loaded.plan.hash == session.plan.hash
    assert list(loaded.plans) == list(session.plans)


def test_the_full_session_leaves_no_field_at_its_default() -> None:
    """So that a new field of Session that is not stored fails the round trip above."""
    session, bare = full_session(), minimal()
    names = {field.name for field in dataclasses.fields(Session)} - {"environment"}
    assert not [name for name in names if identical(getattr(session, name), getattr(bare, name))]


@settings(max_examples=10, deadline=None)
@given(
    names=st.lists(st.text(max_size=12), min_size=1, max_size=5, unique=True),
    values=st.lists(st.floats(), min_size=1, max_size=5),
)
def test_any_name_and_any_float_survive(
    names: list[str], values: list[float], tmp_path_factory: pytest.TempPathFactory
) -> None:
    written = dataclasses.replace(minimal(), notes=tuple(names), plans={name: Plan(name=name) for name in names})
    layer = written.model.layers[0].name
    pairs = zip(names, values, strict=False)
    ranges = {(layer, "input", n): Range(low=v, high=v, method=n, clipped=v) for n, v in pairs}
    written = dataclasses.replace(written, ranges=ranges, locked=frozenset(names))
    path = tmp_path_factory.mktemp("any") / "s.qwb"
    written.save(path)
    loaded = Session.load(path)
    assert identical(written.ranges, loaded.ranges) and identical(written.plans, loaded.plans)
    assert written.notes == loaded.notes and written.locked == loaded.locked


def test_another_program_reads_it(file: Path) -> None:
    session = full_session()
    with h5py.File(file) as content:
        assert content.attrs["type"] == "quantization-workbench/session" and content.attrs["version"] == 1
        score = content["sensitivity/predicted_kl/score"]
        assert score.attrs["unit"] == "nats" and score.shape == (7, 2)
        assert score.dims[1][0].asstr()[1] == "int8-channel" and score.dims[0].label == "layers"
        np.testing.assert_array_equal(score[...], session.sensitivities["predicted_kl"].score)
        weights = content["statistics/weight"]
        assert weights["layer"].asstr()[0] == ODD_NAMES[0]
        np.testing.assert_array_equal(weights["counts"][3], session.statistics[ODD_NAMES[3], "weight"].counts)
        ragged = weights["channel_absmax"]
        low, high = ragged["offsets"][1:3]
        expected = session.statistics[ODD_NAMES[1], "weight"].channel_absmax
        np.testing.assert_array_equal(ragged["values"][low:high], expected)
        assert list(content["plan/rules/weights"].asstr()) == ["int4-g32-asym", "keep"]
        assert list(content["plan/rules/inputs_known"]) == [True, False]
        assert content["model/layers/kind"].asstr()[0] == "linear"
        assert content["timings/samples"].attrs["unit"] == "microsecond"
        assert content["evaluations/nbytes"].attrs["unit"] == "byte"
        assert content["plans/z%2F1"].attrs["name"] == "Größe / 4.5"


def test_every_element_names_its_type_and_version(file: Path) -> None:
    missing: list[str] = []
    with h5py.File(file) as content:
        content.visititems(
            lambda name, item: missing.append(name) if not {"type", "version"} <= set(item.attrs) else None
        )
    assert not missing


def test_odd_sizes_and_dtypes_survive_in_one_column(tmp_path: Path) -> None:
    session = full_session()
    timings = (
        dataclasses.replace(session.timings[0], samples=np.zeros(0)),
        dataclasses.replace(session.timings[0], samples=np.arange(3, dtype=np.float32)),
    )
    dataclasses.replace(session, timings=timings).save(tmp_path / "s.qwb")
    assert identical(Session.load(tmp_path / "s.qwb").timings, timings)


def edit(path: Path, change: Callable[[h5py.File], None]) -> None:
    with h5py.File(path, "r+") as content:
        change(content)
        del content.attrs["sealed"]


def later(content: h5py.File) -> None:
    content.attrs["version"] = 2


def later_element(content: h5py.File) -> None:
    content["ranges"].attrs["version"] = 2


def no_score(content: h5py.File) -> None:
    del content["sensitivity/predicted_kl/score"]


def no_layers(content: h5py.File) -> None:
    del content["model/layers"]


def no_plan_name(content: h5py.File) -> None:
    del content["plan"].attrs["name"]


def other_kind(content: h5py.File) -> None:
    content["model/layers/kind"][0] = "lineal"


def negative(content: h5py.File) -> None:
    counts = content["statistics/input/counts"][0]
    counts[:2] = -1, counts[1] + counts[0] + 1
    content["statistics/input/counts"][0] = counts


def wrong_sum(content: h5py.File) -> None:
    content["statistics/weight/count"][2] += 1


def fewer_rows(content: h5py.File) -> None:
    del content["ranges/low"]
    content["ranges/low"] = np.zeros(1)


def bad_offsets(content: h5py.File) -> None:
    content["statistics/weight/channel_absmax/offsets"][1] = 10**9


def bad_shapes(content: h5py.File) -> None:
    content["curvature/full/shapes"][0] = (1, 1)


def text_for_numbers(content: h5py.File) -> None:
    del content["timings/samples"], content["ranges/low"]
    content["ranges/low"] = ["a", "b"]


def group_for_numbers(content: h5py.File) -> None:
    del content["ranges/low"]
    content.create_group("ranges/low")


def huge(content: h5py.File) -> None:
    del content["sensitivity/predicted_kl/score"]
    content["sensitivity/predicted_kl"].create_dataset("score", shape=(10**6, 10**6), dtype="f8", chunks=(64, 64))


def score_of_another_shape(content: h5py.File) -> None:
    del content["sensitivity/predicted_kl/score"]
    content["sensitivity/predicted_kl/score"] = np.zeros((7, 3))


def attribute_of_another_type(content: h5py.File) -> None:
    content["calibration"].attrs["samples"] = "many"


def evaluation_that_is_not(content: h5py.File) -> None:
    content["evaluations/metrics/evaluation"][0] = 9


def foreign(content: h5py.File) -> None:
    content.attrs["type"] = "something else"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (later, "has version 2, this workbench reads version 1"),
        (later_element, "/ranges has version 2"),
        (no_score, "/sensitivity/predicted_kl/score is missing"),
        (no_layers, "/model/layers is missing"),
        (no_plan_name, "/plan has no attribute name"),
        (other_kind, "holds 'lineal', expected one of linear, conv1d"),
        (negative, "negative count"),
        (wrong_sum, "the histogram holds"),
        (fewer_rows, "/ranges/low has 1 entries, 2 were expected"),
        (bad_offsets, "offsets does not agree"),
        (bad_shapes, "shapes that do not agree"),
        (text_for_numbers, "/ranges/low is not an array of numbers"),
        (group_for_numbers, "/ranges/low is not an array of numbers"),
        (huge, "holds hardly any data"),
        (score_of_another_shape, r"of shape \(7, 3\), expected \(7, 2\)"),
        (attribute_of_another_type, "attribute samples 'many', expected one of type int"),
        (evaluation_that_is_not, "refers to evaluation 9"),
        (foreign, "not a session of the workbench"),
    ],
)
def test_a_damaged_session_is_told_in_one_line(change: Callable[[h5py.File], None], words: str, file: Path) -> None:
    edit(file, change)
    with pytest.raises(SessionError, match=words) as caught:
        Session.load(file)
    assert "\n" not in str(caught.value) and str(file) in str(caught.value)


def test_a_field_that_an_older_file_lacks_has_its_default(file: Path) -> None:
    def older(content: h5py.File) -> None:
        group = content["model/layers"]
        group.attrs["fields"] = " ".join(name for name in group.attrs["fields"].split() if name != "block")
        del group["block"]

    edit(file, older)
    assert {each.block for each in Session.load(file).model.layers} == {""}


OF_THE_LIBRARY = r"->|(?i:errno|unable to|b-tree|object header|sblock)"
"""Words of HDF5's own messages, which mean nothing to the user of a session."""


def test_truncated_anywhere_is_an_error_and_never_a_crash(file: Path) -> None:
    whole = file.read_bytes()
    for share in np.linspace(0, 0.999, 23):
        file.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(SessionError) as caught:
            Session.load(file)
        assert not re.search(OF_THE_LIBRARY, str(caught.value))


def test_flipped_bytes_are_an_error_or_harmless(file: Path) -> None:
    whole = file.read_bytes()
    random = np.random.default_rng(0)
    for _ in range(60):
        damaged = bytearray(whole)
        for place in random.integers(0, len(whole), 8):
            damaged[place] ^= int(random.integers(1, 256))
        file.write_bytes(damaged)
        try:
            Session.load(file)
        except SessionError as error:
            assert "\n" not in str(error) and not re.search(OF_THE_LIBRARY, str(error))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 something else", b"\x89HDF\r\n\x1a\n"])
def test_other_files_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.qwb"
    path.write_bytes(content)
    with pytest.raises(SessionError, match=r"x\.qwb"):
        Session.load(path)


def test_no_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="No such file"):
        Session.load(tmp_path / "none.qwb")
    with pytest.raises(SessionError, match="is a folder, not a session"):
        Session.load(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="pipes with a name")
def test_a_pipe_and_a_device_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.qwb")
    for path in (tmp_path / "pipe.qwb", Path("/dev/zero")):
        with pytest.raises(SessionError, match="a device or a pipe"):
            Session.load(path)


def test_a_session_that_contradicts_itself_is_not_written(tmp_path: Path) -> None:
    session = full_session()
    table = dataclasses.replace(session.sensitivities["predicted_kl"], schemes=("a",))
    with pytest.raises(SessionError, match="shape"):
        dataclasses.replace(session, sensitivities={"predicted_kl": table}).save(tmp_path / "s.qwb")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_stored_leaves_the_old_file(file: Path) -> None:
    before = file.read_bytes()
    timing = dataclasses.replace(full_session().timings[0], samples=np.array([object()]))
    with pytest.raises(SessionError, match="cannot be stored"):
        dataclasses.replace(full_session(), timings=(timing,)).save(file)
    assert file.read_bytes() == before and len(list(file.parent.iterdir())) == 1


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs a limit on file sizes")
def test_a_file_that_cannot_grow_leaves_the_old_one(file: Path) -> None:
    before = file.read_bytes()
    handler, limits = signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
    try:
        with pytest.raises(SessionError, match="too large; what was there before is untouched"):
            full_session(1).save(file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert file.read_bytes() == before and os.listdir(file.parent) == [file.name]


def test_saving_replaces_through_a_link_and_keeps_permissions(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.qwb"
    link.symlink_to(file)
    file.chmod(0o640)
    minimal().save(link)
    assert link.is_symlink() and file.stat().st_mode & 0o777 == 0o640
    assert Session.load(file).plan == Plan()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="there is no folder"):
        minimal().save(tmp_path / "none" / "s.qwb")


def test_the_same_session_has_the_same_bits_a_second_later(tmp_path: Path) -> None:
    """HDF5 notes when an array was made unless it is told not to."""
    session = full_session()
    session.save(tmp_path / "a.qwb")
    time.sleep(1.1)
    session.save(tmp_path / "b.qwb")
    assert (tmp_path / "a.qwb").read_bytes() == (tmp_path / "b.qwb").read_bytes()


TINY = """
import sys, ctypes, os
from pathlib import Path
from tests.session.sessions import full_session
from workbench.errors import SessionError
libc = ctypes.CDLL(None, use_errno=True)
folder = sys.argv[1].encode()
if libc.unshare(0x00020000) or libc.mount(b"none", b"/", None, 0x44000, None):
    sys.exit(77)
if libc.mount(b"tmpfs", folder, b"tmpfs", 0, b"size=800k"):
    sys.exit(77)
path = Path(sys.argv[1]) / "s.qwb"
full_session().save(path)
before = path.read_bytes()
try:
    full_session(1).save(path)
except SessionError as error:
    assert "the disk is full" in str(error), error
    assert path.read_bytes() == before and os.listdir(path.parent) == ["s.qwb"]
    sys.exit(0)
sys.exit(1)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a tiny file system")
def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    completed = subprocess.run(
        [sys.executable, "-c", TINY, str(tmp_path)], capture_output=True, text=True, cwd=Path(__file__).parents[3]
    )
    if completed.returncode == 77:
        pytest.skip("this user may not mount a file system")
    assert completed.returncode == 0, completed.stderr


def test_a_full_disk_by_its_error_number(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = file.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SessionError, match=r"the disk is full \(.* MB are free\); what was there before is untouched"):
        minimal().save(file)
    assert file.read_bytes() == before and os.listdir(file.parent) == [file.name]


def test_nothing_is_left_behind(file: Path) -> None:
    minimal().save(file)
    assert os.listdir(file.parent) == [file.name]
    shutil.rmtree(file.parent)

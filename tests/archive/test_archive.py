"""Session files of every version of the layout are read on every run, bit for bit."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.models.layer import LayerKind
from workbench.models.readers.pooling import Pooling
from workbench.session.session import Session

ARCHIVE = Path(__file__).parent
FILES = {
    "session-v1.qwb": "81577ebb36316013598b42a822285548745f052b1fd0630f4e9f312892d5379c",
    "session-v1-findings.qwb": "9007198abfacd79e168bde0fbec1a577b5389c82d37e694aad3ef9c4c2bd1726",
    "session-v1-outliers.qwb": "c8908082b383c129a3f2ba9d104041c3997bf4bda6d55e127bd038e0e89fa7ae",
    "session-v1-audit.qwb": "9e112da3f646936acf20fd1ac04a7b022fc19793cb24938bdb74ef98667d69c6",
}
"""Every archived file, and the digest of the arrays in it."""

LATER = {"costs"}
"""Fields that no archived file has; they are empty."""


def digest(session: Session) -> str:
    """Return a hash over every array of the session, in a fixed order."""
    hashed = hashlib.sha256()

    def add(value: Any) -> None:
        if isinstance(value, np.ndarray):
            hashed.update(f"{value.dtype} {value.shape}".encode() + np.ascontiguousarray(value).tobytes())
        elif isinstance(value, Mapping):
            for key in sorted(value, key=repr):
                add(value[key])
        elif isinstance(value, tuple):
            for entry in value:
                add(entry)
        elif dataclasses.is_dataclass(value):
            for name in sorted(field.name for field in dataclasses.fields(value)):
                if name in LATER:
                    assert getattr(value, name).size == 0
                else:
                    add(getattr(value, name))

    add(session)
    return hashed.hexdigest()


def test_every_file_of_the_archive_is_listed() -> None:
    assert {path.name for path in ARCHIVE.glob("*.qwb")} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_an_archived_session_reads_as_it_was_written(name: str, tmp_path: Path) -> None:
    session = Session.load(ARCHIVE / name)
    assert digest(session) == FILES[name]
    session.save(tmp_path / "again.qwb")
    assert digest(Session.load(tmp_path / "again.qwb")) == FILES[name]


def test_what_version_1_says() -> None:
    session = Session.load(ARCHIVE / "session-v1.qwb")
    names = ("модель/слой.0", "a\0b", "100 % ␀ 層", "..", "re:.*[x]", "\udcff broken", "a b\tc\n")
    assert tuple(layer.name for layer in session.model.layers) == names
    assert session.model.layers[-1].tied_to == names[0] and session.model.layers[-1].macs == 12
    assert session.model.layers[0].kind is LayerKind.LINEAR and session.model.layers[0].macs is None
    assert session.plan.hash == "sha256:263ffda630bb4b09ed06ac0b6d085e9e5058b3d3d2c8e6cb5d2746c9fa90c2b3"
    assert session.plan.of(names[0]).inputs == "int8-token" and session.plan.rules[1].assignment.range_method == "mse"
    assert list(session.plans) == ["z/1", "a", ""] and session.locked == frozenset(names[:2])
    assert session.evaluation is None and session.calibration is not None and session.calibration.samples == 8
    assert session.calibration.pooling is Pooling.MEAN, "texts were pooled by the mean alone then"
    table = session.require_table()
    assert table.score.view(np.uint64)[0, 0] == 0x7FF8_0000_DEAD_BEEF and table.of(names[1], "int8-channel") == np.inf
    assert session.curvature[names[0]].full is not None and session.curvature[names[1]].full is None
    assert (
        session.ranges[names[1], "input", "mse"].low == -1.5
        and session.active_ranges[names[1], "input"].method == "manual"
    )
    assert set(session.statistics) == {(name, tap) for name in names for tap in ("weight", "input")}
    assert [evaluation.predicted_kl for evaluation in session.evaluations] == [0.25, None]
    assert list(session.evaluations[0].metrics) == ["kl", "top/1"]
    assert [len(timing.samples) for timing in session.timings] == [3, 4]
    assert session.notes == ("a note\nof two lines", "")


def test_what_later_files_of_version_1_say_besides() -> None:
    old, new, *_ = (Session.load(ARCHIVE / name) for name in FILES)
    assert old.error_budget is None and old.evaluations[0].changed == () and old.evaluations[0].notes == ()
    assert old.evaluations[0].metrics["top/1"].baseline_per_sample is None
    first, second = new.evaluations
    assert [(item.sample, item.position, item.flipped) for item in first.changed] == [(3, 7, False), (0, -1, True)]
    assert first.changed[0].context == "a\0b\n" and first.changed[0].baseline == "層" and first.changed[0].kl == 0.125
    assert second.changed == () and second.notes == ("a", "b\nc")
    recorded = first.metrics["top/1"]
    assert first.metrics["kl"].baseline_per_sample is None and recorded.baseline_per_sample is not None
    assert np.array_equal(recorded.baseline_per_sample, recorded.per_sample[::-1], equal_nan=True)
    assert recorded.weights is not None and list(recorded.weights) == [0, 1, 2, 3, 4]
    pair = new.error_budget
    assert pair is not None and pair.predicted is not None and pair.gains.gain.shape == (3, 2)
    assert pair.measured.blocks == ("block/0", "output") and (pair.gains.samples, pair.gains.seed) == (8, 1)


def test_outlier_tokens_of_version_1() -> None:
    old, _, new, _ = (Session.load(ARCHIVE / name) for name in FILES)
    assert old.outliers == {}
    first, second, empty = new.outliers.values()
    assert list(new.outliers)[0] == ("модель/слой.0", "input") and first.text[:3] == ("a\0b", "層", "\udcff")
    assert first.value.dtype == np.float32 and first.largest == pytest.approx(0.9775362)
    assert (first.value.size, second.value.size, empty.value.size, second.text) == (16, 3, 0, ())


def test_an_audit_of_version_1() -> None:
    *older, new = (Session.load(ARCHIVE / name) for name in FILES)
    assert all(session.audit is None for session in older) and new.audit is not None
    report, result = new.audit, new.audit.audit
    assert (report.plan_name, report.plan_hash, report.rounded_inputs, report.cached) == ("p/層", "sha256:3", 2, 1)
    assert result.layers == tuple(layer.name for layer in new.model.layers[:4]) and result.samples == 16
    assert np.isnan(result.predicted[1]) and result.alone.shape == result.joined.shape == (4,)
    assert result.whole == 0.30000000000000004

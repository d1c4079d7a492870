"""Frames of recordings: no recording is in both halves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.models.data.test_datasets import model
from workbench.errors import DataError
from workbench.models.data.datasets import open_dataset
from workbench.models.data.files import half_of

soundfile = pytest.importorskip("soundfile")


def test_frames_of_one_recording_stay_on_one_side(tmp_path: Path) -> None:
    for number in range(5):  # every point of a recording is the recording's number
        soundfile.write(tmp_path / f"{number}.wav", np.full(70, number / 8, np.float32), 8000, subtype="FLOAT")
    opened = [open_dataset(f"{tmp_path}?window=10", model(tokens=False), split=split)
              for split in ("calibration", "evaluation")]  # fmt: skip
    first, second = ({float(row[0]) for row in data.tensors["inputs"]} for data in opened)
    assert len(first) == 3 and len(second) == 2 and not first & second
    assert [len(data) for data in opened] == [21, 14]


def test_a_single_recording_is_cut_in_the_middle(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "only.wav", np.linspace(0, 0.9, 90, dtype=np.float32), 8000, subtype="FLOAT")
    first, second = (open_dataset(f"{tmp_path / 'only.wav'}?window=10", model(tokens=False), split=split)
                     for split in ("calibration", "evaluation"))  # fmt: skip
    assert float(first.tensors["inputs"].max()) < float(second.tensors["inputs"].min())
    assert (len(first), len(second)) == (5, 4)


def test_groups_are_halved_whole() -> None:
    groups = np.repeat(np.arange(7), 3)
    halves = [half_of(21, half, groups) for half in (0, 1)]
    assert sorted(np.concatenate(halves)) == list(range(21))
    assert not {*groups[halves[0]]} & {*groups[halves[1]]}


def test_a_rate_that_no_sound_has_is_refused(tmp_path: Path) -> None:
    """The filter from a prime sampling rate to a usual one would take gigabytes."""
    soundfile.write(tmp_path / "x.wav", np.zeros(100, np.float32), 4_194_429)
    with pytest.raises(DataError, match="has the sampling rate 4194429 Hz"):
        open_dataset(tmp_path, model(tokens=False, rate=16000))

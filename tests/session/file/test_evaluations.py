"""Directions of a sensitivity table in a session file."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from workbench.errors import SessionError
from workbench.sensitivity.interaction import Directions
from workbench.session.file.evaluations import read_directions, write_directions


@pytest.fixture
def directions() -> Directions:
    values = np.random.default_rng(2).integers(-32767, 32767, (3, 2, 700)).astype(np.int16)
    return Directions(layers=("a", "b", "é"), schemes=("int4-g32", "int8-channel"), values=values)


def test_directions_come_back(tmp_path: Path, directions: Directions) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        assert read_directions(file) is None
        write_directions(file, directions)
        found = read_directions(file)
    assert found is not None and found.layers == directions.layers and found.schemes == directions.schemes
    np.testing.assert_array_equal(found.values, directions.values)


def test_directions_that_do_not_fit_are_refused(tmp_path: Path, directions: Directions) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        write_directions(file, directions)
        del file["directions/values"]
        file["directions/values"] = np.zeros((1, 2, 5), np.int16)
        with pytest.raises(SessionError, match="/directions holds values that do not fit"):
            read_directions(file)

"""Directions of a sensitivity table in a session file."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from workbench.errors import SessionError
from workbench.sensitivity.interaction import Directions
from workbench.session.file.records import _part, write_record
from workbench.session.file.tree import read_tree


@pytest.fixture
def directions() -> Directions:
    values = np.random.default_rng(2).integers(-32767, 32767, (3, 2, 700)).astype(np.int16)
    return Directions(layers=("a", "b", "é"), schemes=("int4-g32", "int8-channel"), values=values)


def test_directions_come_back(tmp_path: Path, directions: Directions) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        write_record(file, "directions", directions)
    stored = _part(read_tree((tmp_path / "s.h5").read_bytes(), 1 << 30), "directions", Directions)
    assert isinstance(stored, Directions)
    assert stored.layers == directions.layers and stored.schemes == directions.schemes
    np.testing.assert_array_equal(stored.values, directions.values)


def test_directions_that_do_not_fit_are_refused(tmp_path: Path, directions: Directions) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        write_record(file, "directions", directions)
        del file["directions/values"]
        file["directions/values"] = np.zeros((1, 2, 5), np.int16)
    tree = read_tree((tmp_path / "s.h5").read_bytes(), 1 << 30)
    with pytest.raises(SessionError, match="/directions holds values that do not fit"):
        _part(tree, "directions", Directions)

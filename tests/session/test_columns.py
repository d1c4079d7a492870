"""Records as columns: what a table gives back, sends and stores equals what it was made of, types and all."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gui import sessions
from tests.session.sessions import full_session
from workbench.engine import transport
from workbench.numerics.ranges import Range
from workbench.session.columns import Columns
from workbench.session.session import Session
from workbench.session.table import Layout, Table, of_tap, overlaid


def crossed(value: Any) -> Any:
    """Return what arrives at the other end of the engine's pipe."""
    buffers: list[memoryview] = []
    return pickle.loads(transport._pickled(value, buffers), buffers=buffers)


def assert_same(before: Any, after: Any) -> None:
    """Compare to the last type: 1 is not 1.0 and no bool."""
    assert type(before) is type(after)
    if isinstance(before, np.ndarray):
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(before, after)
    elif dataclasses.is_dataclass(before):
        for field in dataclasses.fields(before):
            assert_same(getattr(before, field.name), getattr(after, field.name))
    elif isinstance(before, Mapping):
        assert before.keys() == after.keys()
        for key, value in before.items():
            assert_same(value, after[key])
    elif isinstance(before, tuple | list):
        assert len(before) == len(after)
        for item, other in zip(before, after, strict=True):
            assert_same(item, other)
    elif isinstance(before, float) and before != before:
        assert after != after
    else:
        assert before == after


@pytest.mark.parametrize("session", [sessions.full(2), sessions.opened(), full_session()], ids=["full", "new", "rich"])
def test_a_session_arrives_as_it_was(session: Session) -> None:
    assert_same(session, crossed(session))
    assert_same((session, "and more"), crossed((session, "and more")))


def test_derived_values_stay_behind() -> None:
    session = sessions.full(2)
    assert session.model.by_name and "by_name" in vars(session.model)
    assert "by_name" not in vars(crossed(session.model))


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    number: int
    share: float
    flag: bool
    text: str
    colour: Colour
    shape: tuple[int, ...]
    names: tuple[str, ...]
    array: np.ndarray
    scheme: str | None
    size: int | None
    matrix: np.ndarray | None
    sizes: tuple[int, ...] | None


INTEGERS = st.integers(-(2**63), 2**63 - 1)
ARRAYS = st.one_of(
    st.lists(st.floats(allow_nan=False), max_size=3).map(np.array),
    st.just(np.arange(6, dtype=np.int8).reshape(2, 3)),
    st.just(np.zeros(2000)),
)
RECORDS = st.builds(
    Record, number=INTEGERS, share=st.floats(), flag=st.booleans(), text=st.text(), colour=st.sampled_from(Colour),
    shape=st.lists(INTEGERS, max_size=3).map(tuple), names=st.lists(st.text(), max_size=3).map(tuple), array=ARRAYS,
    scheme=st.none() | st.text(), size=st.none() | INTEGERS, matrix=st.none() | ARRAYS,
    sizes=st.none() | st.just((1, 2)),
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(st.lists(RECORDS, max_size=8))
def test_records_come_back_out_of_columns(records: list[Record]) -> None:
    columns = crossed(Columns.of(Record, records))
    assert_same(records, columns.records())
    assert_same(records, [record for row in range(len(records)) for record in columns.records(row, row + 1)])


@settings(deadline=None, max_examples=30)
@given(st.dictionaries(st.tuples(st.text(), st.sampled_from(["input", "output"])), RECORDS, max_size=8))
@pytest.mark.parametrize("by_tap", [False, True])
def test_a_table_says_what_it_was_made_of(by_tap: bool, records: dict[tuple[str, str], Record]) -> None:
    layout: Layout[tuple[str, str], Record] = Layout(
        Record, *(("layer",) if by_tap else ("layer", "tap")), by_tap=by_tap
    )
    table = Table(layout, records)
    arrived = crossed(table)
    assert len(table) == len(arrived) == len(records)
    assert_same(table, arrived)
    assert list(table) == list(records)
    assert set(arrived) == set(records) and ("nowhere", "input") not in arrived
    with pytest.raises(KeyError):
        arrived["nowhere", "input"]
    if by_tap:
        inputs = {key: record for key, record in records.items() if key[1] == "input"}
        assert_same(Table(layout, inputs), of_tap(arrived, "input")) if inputs else None
    assert all(arrived[key] is arrived[key] for key in arrived), "a record was made twice"


def test_an_edit_of_a_table_leaves_the_table_as_it_is() -> None:
    session = sessions.full(2)
    place = next(iter(session.active_ranges))
    new = Range(low=-1.0, high=1.0, method="manual", clipped=0.0)
    edited = replace(crossed(session), active_ranges={**session.active_ranges, place: new})
    assert edited.active_ranges[place] == new != session.active_ranges[place]
    assert_same(crossed(edited).active_ranges, edited.active_ranges)
    assert edited.statistics is not session.statistics and replace(edited, notes=()).statistics is edited.statistics


def test_every_field_that_travels_as_columns_is_a_field() -> None:
    for kind, names in transport.COLUMNS.items():
        assert set(names) <= {field.name for field in dataclasses.fields(kind)}


def test_newer_statistics_join_older_ones_without_making_records() -> None:
    after = crossed(sessions.full(2)).statistics
    weights = of_tap(after, "weight")
    joined = overlaid(weights, after)
    assert isinstance(joined, Table)
    assert not joined._records, "64 records of statistics are 2 ms of the window's time"
    assert_same(dict(after), dict(joined))


def test_newer_statistics_of_some_layers_leave_those_of_the_others() -> None:
    session = sessions.full(2)
    kept, changed = list(session.statistics)[:2]
    before = crossed(session).statistics
    joined = overlaid(before, Table(before.layout, {changed: session.statistics[kept]}))
    assert joined.keys() == session.statistics.keys()
    assert_same(joined[changed], session.statistics[kept])
    assert_same(joined[kept], session.statistics[kept])

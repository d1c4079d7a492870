"""Sessions as columns: what arrives equals what was sent, types and all, and large ones let other threads go on."""

from __future__ import annotations

import dataclasses
import io
import pickle
from dataclasses import replace
from enum import StrEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gui import sessions
from tests.session.sessions import full_session
from workbench.engine.columnar import PACKED, ColumnarPickler
from workbench.planning.plan import Plan
from workbench.session.session import Session


def crossed(value: Any) -> Any:
    """Return what arrives."""
    stream = io.BytesIO()
    ColumnarPickler(stream, protocol=5).dump(value)
    return pickle.loads(stream.getvalue())


def assert_same(before: Any, after: Any) -> None:
    """Compare to the last type: 1 is not 1.0 and no bool."""
    assert type(before) is type(after)
    if isinstance(before, np.ndarray):
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(before, after)
    elif dataclasses.is_dataclass(before):
        for field in dataclasses.fields(before):
            assert_same(getattr(before, field.name), getattr(after, field.name))
    elif isinstance(before, dict):
        assert list(before) == list(after)
        for key, value in before.items():
            assert_same(value, after[key])
    elif isinstance(before, tuple | list):
        assert len(before) == len(after)
        for one, other in zip(before, after, strict=True):
            assert_same(one, other)
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


@dataclasses.dataclass(frozen=True, slots=True)
class Anything:
    value: Any


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.just(Colour.RED),
    st.lists(st.floats(allow_nan=False), max_size=3).map(np.array), st.lists(st.integers(), max_size=3),
    st.tuples(st.integers(), st.floats(allow_nan=False)),
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(st.lists(VALUES, max_size=8))
def test_columns_of_any_values_arrive_with_their_types(values: list[Any]) -> None:
    held: Any = {str(number): Anything(value) for number, value in enumerate(values)}
    found: Any = crossed(replace(sessions.opened(with_weights=False), curvature=held)).curvature
    for number, value in enumerate(values):
        assert_same(value, found[str(number)].value)


def test_records_of_several_kinds_and_keys_of_several_lengths_arrive_too() -> None:
    mixed: Any = {("a",): Plan(), ("a", "b"): 1, "c": None}
    assert_same(mixed, crossed(replace(sessions.opened(with_weights=False), curvature=mixed)).curvature)


def test_every_packed_field_is_a_field() -> None:
    for kind, names in PACKED.items():
        assert names <= {field.name for field in dataclasses.fields(kind)}

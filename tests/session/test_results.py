"""Rows of a step's result as columns, and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from workbench.session.results import StepResult


@dataclass(frozen=True, kw_only=True)
class Row:
    layer: str
    count: int
    share: float
    known: bool


ROWS = (Row(layer="a", count=1, share=0.5, known=True), Row(layer="層", count=-2, share=-0.0, known=False))


def test_rows_come_back_as_they_were() -> None:
    result = StepResult.of(Row, ROWS, samples=4)
    assert result.facts == {"samples": 4} and result.rows(Row) == ROWS
    assert [type(value) for value in (result.rows(Row)[0].count, result.rows(Row)[0].known)] == [int, bool]
    assert isinstance(result.columns["share"], np.ndarray) and result.columns["share"].dtype == np.float64


def test_no_rows_are_an_empty_table() -> None:
    assert StepResult.of(Row, ()).rows(Row) == ()


def test_a_field_that_no_column_holds_is_refused() -> None:
    @dataclass(frozen=True)
    class Nested:
        parts: list[str]

    with pytest.raises(TypeError, match=r"Nested\.parts is list\[str\]; a stored row holds"):
        StepResult.of(Nested, ())

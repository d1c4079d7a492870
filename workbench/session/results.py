"""Results of steps as plain data, which the session stores without knowing the step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import TypeVar

import numpy as np

from workbench.session.columns import NUMBERS, hints

Row = TypeVar("Row")
Fact = str | int | float | bool
Cells = np.ndarray | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepResult:
    """What a step computed: ``facts`` by name, and a table whose ``columns`` have one entry for each row.

    A column is int64, float64 or bool, ``[rows]``, or a tuple of texts.
    """

    facts: Mapping[str, Fact] = field(default_factory=dict)
    columns: Mapping[str, Cells] = field(default_factory=dict)

    @staticmethod
    def of(kind: type[Row], rows: Sequence[Row], **facts: Fact) -> StepResult:
        """Return the records ``rows`` as columns; ``kind`` is a dataclass with fields of int, float, bool or str.

        Raises TypeError for a field of any other type.
        """
        columns: dict[str, Cells] = {}
        for name, hint in hints(kind).items():
            values = [getattr(row, name) for row in rows]
            if hint is str:
                columns[name] = tuple(str(value) for value in values)
            elif hint in NUMBERS:
                columns[name] = np.array(values, dtype=NUMBERS[hint])
            else:
                raise TypeError(f"{kind.__name__}.{name} is {hint}; a stored row holds int, float, bool or str")
        return StepResult(facts=facts, columns=columns)

    def rows(self, kind: type[Row]) -> tuple[Row, ...]:
        """Return the table as records of ``kind``, a dataclass; raises KeyError for a column that is not there.

        One that has a default may be missing: the file is older.
        """
        every = fields(kind)  # type: ignore[arg-type]
        names = [each.name for each in every if each.default is MISSING or each.name in self.columns]
        cells = (self.columns[name] for name in names)
        lists = [column.tolist() if isinstance(column, np.ndarray) else list(column) for column in cells]
        return tuple(kind(**dict(zip(names, row, strict=True))) for row in zip(*lists, strict=True))

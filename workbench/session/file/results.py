"""Results of steps in a session file: facts as attributes, one dataset for each column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import SessionError
from workbench.session.file import datasets
from workbench.session.file.datasets import describe, escape, group_of, link_name, member, original_name, unescape
from workbench.session.file.tree import Group, Texts
from workbench.session.results import Cells, Fact, StepResult

if TYPE_CHECKING:
    import h5py

_KIND = "step result"
_MARK = "fact."
"""Begins the names of facts, so that none takes the place of an attribute that every element has."""


def write_results(file: h5py.Group, results: Mapping[str, StepResult]) -> None:
    """Write the group ``results`` with one group for each step."""
    parent = file.create_group("results", track_order=True)
    describe(parent, "collection")
    for step, result in results.items():
        group = parent.create_group(link_name(step), track_order=True)
        describe(group, _KIND)
        facts, columns = (group.create_group(name, track_order=True) for name in ("facts", "columns"))
        describe(columns, "columns")
        describe(facts, "facts")
        for name, value in result.facts.items():
            facts.attrs[f"{_MARK}{name}"] = escape(value) if isinstance(value, str) else value
        for name, cells in result.columns.items():
            if isinstance(cells, np.ndarray):
                datasets.write_array(columns, link_name(name), cells)
            else:
                datasets.write_text(columns, link_name(name), cells)


def read_result(parent: Group, link: str) -> StepResult:
    """Read what one step computed last; raises SessionError."""
    group = group_of(parent, link)
    columns = {original_name(link): _cells(group_of(group, "columns"), link) for link in group_of(group, "columns")}
    if len({len(cells) for cells in columns.values()}) > 1:
        raise SessionError(f"{group.name} has columns of different lengths")
    stored = group_of(group, "facts").attrs.items()
    facts = {name[len(_MARK) :]: _fact(group, name, value) for name, value in stored if name.startswith(_MARK)}
    return StepResult(facts=facts, columns=columns)


def _cells(group: Group, link: str) -> Cells:
    is_text = isinstance(member(group, link), Texts)
    return tuple(datasets.read_text(group, link)) if is_text else datasets.read_array(group, link, 1)


def _fact(group: Group, name: str, value: object) -> Fact:
    if isinstance(value, str):
        return unescape(value)
    fact = value.item() if isinstance(value, np.generic) else value
    if not isinstance(fact, Fact):
        raise SessionError(f"{group.name} has the fact {name} {value!r}, expected a number, a text or a truth value")
    return fact

"""Results of steps in a session file: facts as attributes, one dataset for each column."""

from __future__ import annotations

from collections.abc import Mapping

import h5py
import numpy as np

from workbench.errors import SessionError
from workbench.session.file import datasets
from workbench.session.file.datasets import describe, escape, link_name, member, original_name, unescape
from workbench.session.results import Cells, Fact, StepResult

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


def read_results(file: h5py.Group) -> dict[str, StepResult]:
    """Read the group ``results``; empty for a file of a version without.  Raises SessionError."""
    if "results" not in file:
        return {}
    parent = member(file, "results")
    return {original_name(link): _read(member(parent, link)) for link in parent}


def _read(group: h5py.Group) -> StepResult:
    columns = {original_name(link): _cells(member(group, "columns"), link) for link in member(group, "columns")}
    if len({len(cells) for cells in columns.values()}) > 1:
        raise SessionError(f"{group.name} has columns of different lengths")
    stored = member(group, "facts").attrs.items()
    facts = {name[len(_MARK) :]: _fact(group, name, value) for name, value in stored if name.startswith(_MARK)}
    return StepResult(facts=facts, columns=columns)


def _cells(group: h5py.Group, link: str) -> Cells:
    dataset = member(group, link)
    is_text = isinstance(dataset, h5py.Dataset) and h5py.check_string_dtype(dataset.dtype) is not None
    return tuple(datasets.read_text(group, link)) if is_text else datasets.read_array(group, link, 1)


def _fact(group: h5py.Group, name: str, value: object) -> Fact:
    if isinstance(value, str):
        return unescape(value)
    fact = value.item() if isinstance(value, np.generic) else value
    if not isinstance(fact, Fact):
        raise SessionError(f"{group.name} has the fact {name} {value!r}, expected a number, a text or a truth value")
    return fact

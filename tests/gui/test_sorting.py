"""Whoever selects a row has selected the record in it: sorting, new records and removed ones do not change that."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QTableView, QTreeView

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.engine.jobs import JobView
from workbench.gui.tables.fields import order_of

UP = "model.layers.1.mlp.up_proj"


async def _sort(person: Person, view: QTableView | QTreeView, column: int) -> None:
    """Click on the heading of a column."""
    header = view.horizontalHeader() if isinstance(view, QTableView) else view.header()
    x = header.sectionViewportPosition(column) + header.sectionSize(column) // 2
    await person.click(header.viewport(), QPoint(x, header.height() // 2))


def _job(number: int, **facts: Any) -> JobView:
    usual = {"title": f"Job {number}", "status": "running", "fraction": 0.5, "text": "", "error": "",
             "started": None, "finished": None}  # fmt: skip
    return JobView(id=number, **{**usual, **facts})


def _shown(view: QTableView, column: int = 0) -> list[str]:
    return [str(view.model().index(row, column).data()) for row in range(view.model().rowCount())]


def _selected(view: QTableView) -> list[str]:
    return [str(index.data()) for index in view.selectionModel().selectedRows(0)]


def test_delete_takes_the_plan_that_was_selected_before_sorting(live: Callable[..., None]) -> None:
    session = sessions.full(2)
    named = {f"plan {letter}": replace(session.plan, name=f"plan {letter}") for letter in "abc"}

    async def story(person: Person) -> None:
        await person.open(replace(session, plans=named))
        panel = person.window.panels["plan"]
        history = panel.history
        await person.tab(panel.tabs, history)
        await person.row(history.plans, 1)
        assert _selected(history.plans) == ["plan a"]
        await _sort(person, history.plans, 0)
        await _sort(person, history.plans, 0)
        assert _shown(history.plans).index("plan a") != 1, "the plan stands in another row now"
        assert _selected(history.plans) == ["plan a"]
        await person.click(history.delete_button)
        assert set(person.state.session.plans) == {"plan b", "plan c"}

    live(story)


def test_a_named_plan_stays_selected_when_another_is_kept_or_deleted(live: Callable[..., None]) -> None:
    session = sessions.full(2)
    named = {f"plan {letter}": replace(session.plan, name=f"plan {letter}") for letter in "abc"}

    async def story(person: Person) -> None:
        await person.open(replace(session, plans=named))
        panel = person.window.panels["plan"]
        history = panel.history
        await person.tab(panel.tabs, history)
        await person.row(history.plans, 3)
        fewer = {name: plan for name, plan in named.items() if name != "plan a"}
        await person.act(lambda: person.context.workspace.edit("x", lambda now: replace(now, plans=fewer)))
        assert _selected(history.plans) == ["plan c"]
        await person.act(person.context.workspace.undo)
        assert _selected(history.plans) == ["plan c"]

    live(story)


def test_cancel_takes_the_job_that_was_selected_before_sorting(live: Callable[..., None]) -> None:
    cancelled: list[int] = []
    jobs = tuple(_job(number, fraction=number / 10) for number in (1, 2, 3))

    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        panel = person.window.panels["jobs"]
        await person.act(lambda: person.window.reveal("jobs"))
        person.context.jobs.cancel = cancelled.append
        await person.act(lambda: panel.show_jobs(jobs))
        assert _shown(panel.jobs) == ["Job 3", "Job 2", "Job 1"]
        await person.row(panel.jobs, 0)
        await _sort(person, panel.jobs, 0)
        assert _shown(panel.jobs) == ["Job 1", "Job 2", "Job 3"] and _selected(panel.jobs) == ["Job 3"]
        await person.click(panel.cancel)
        assert cancelled == [3]
        await person.act(lambda: panel.show_jobs((*jobs, _job(0))))
        assert _shown(panel.jobs)[0] == "Job 0" and _selected(panel.jobs) == ["Job 3"], "a new job comes first"
        await person.click(panel.cancel)
        await person.act(lambda: panel.show_jobs(jobs[:2]))
        assert cancelled == [3, 3] and _selected(panel.jobs) == [], "what is gone is not selected"

    live(story)


def test_jobs_that_change_places_while_they_run_keep_the_selection(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        panel = person.window.panels["jobs"]
        await person.act(lambda: person.window.reveal("jobs"))
        await person.act(lambda: panel.show_jobs((_job(1, fraction=0.2), _job(2, fraction=0.4))))
        await _sort(person, panel.jobs, 2)
        await person.row(panel.jobs, 0)
        first = _selected(panel.jobs)
        await person.act(lambda: panel.show_jobs((_job(1, fraction=0.6), _job(2, fraction=0.5))))
        assert _selected(panel.jobs) == first == ["Job 1"] and _shown(panel.jobs) == ["Job 2", "Job 1"]

    live(story)


def test_a_layer_stays_selected_and_current_when_the_tree_is_sorted(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(3))
        panel = person.window.panels["layers"]
        await person.layer("model.layers.0.self_attn.k_proj")
        await person.layer(UP, modifier=Qt.KeyboardModifier.ControlModifier)
        for column in (3, 3, 4, 0):
            await _sort(person, panel.view, column)
            assert set(person.state.selection) == {UP, "model.layers.0.self_attn.k_proj"}
            assert panel.model.row_at(panel.view.currentIndex()).layer.name == UP
        await person.press(Qt.Key.Key_L, person.window, control=True)
        assert person.state.session.locked == {UP, "model.layers.0.self_attn.k_proj"}

    live(story)


@pytest.mark.parametrize(
    ("values", "rising", "falling"),
    [
        ([3.0, math.nan, 1.0, None, 2.0], [2, 4, 0, 1, 3], [0, 4, 2, 1, 3]),
        (["b", "a", "a", "c"], [1, 2, 0, 3], [3, 0, 1, 2]),
        ([(1, 5), (0, 9), (1, 2)], [1, 2, 0], [0, 2, 1]),
        ([2, 1, 2**60, 2**60 + 1], [1, 0, 2, 3], [3, 2, 0, 1]),
        ([True, False, True], [1, 0, 2], [0, 2, 1]),
        ([], [], []),
    ],
)
def test_unknown_values_come_last_and_equal_ones_stay_in_order(
    values: list[Any], rising: list[int], falling: list[int]
) -> None:
    assert order_of(values, descending=False) == rising
    assert order_of(values, descending=True) == falling

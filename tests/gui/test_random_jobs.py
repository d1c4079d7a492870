"""Random edits, undo and redo while jobs run and are cancelled: the document is what a model of it says."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.context import edits
from workbench.planning.plan import resolve
from workbench.planning.totals import plan_totals
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session
from workbench.session.workspace import State, Workspace
from workbench.steps.score import SCORE, ScoreOptions
from workbench.steps.search import SEARCH, SearchOptions
from workbench.steps.step import Context

ACTIONS = 100
KINDS = ("assign", "lock", "undo", "redo", "keep", "take", "search", "score", "cancel", "select")
WEIGHTS = (9, 3, 10, 7, 2, 2, 4, 4, 2, 3)
NAMES = [layer.name for layer in sessions.summary(1).layers if layer.tied_to is None]


class Expected:
    """Rules and locks after each step, as two stacks: edits are told by the document, undo and redo by the test."""

    def __init__(self, workspace: Workspace) -> None:
        self.past: list[Any] = []
        self.future: list[Any] = []
        self.moves = False
        self.now = self.parts(workspace.state.session)
        self.known = dict[str, int]()
        workspace.subscribe(self.changed)

    @staticmethod
    def parts(session: Session | None) -> Any:
        assert session is not None
        return session.plan.rules, session.locked, tuple(session.plans)

    def changed(self, old: State, new: State) -> None:
        parts = self.parts(new.session)
        if not self.moves and (parts != self.now or new.undo_name != old.undo_name):
            self.past.append(self.now)
            self.future.clear()
        self.now = parts
        assert new.session is not None
        tables = {name: len(table.schemes) for name, table in new.session.sensitivities.items()}
        assert all(tables.get(name, 0) >= count for name, count in self.known.items()), "a result was lost"
        self.known = tables

    def move(self, source: list[Any], target: list[Any], act: Callable[[], object]) -> None:
        """Undo or redo: the top of one stack goes to the other."""
        expected = source[-1] if source else self.now
        if source:
            target.append(self.now)
            source.pop()
        self.moves = True
        act()
        self.moves = False
        assert self.now[:2] == expected[:2]


def _scored(context: Context, options: ScoreOptions) -> Sensitivity:
    table = sessions.table(context.session.model, options.metric, seed=options.seed)
    for step in range(5):
        context.progress(step / 5, "scoring")
    return replace(table, score=np.array(table.score))


def _logged(error: Exception) -> bool:
    return "no plan fits" in str(error)  # too many layers are locked by then


QUICK = replace(SCORE, run=_scored, requires=(), wants=lambda session, options: (), costs=None)


@pytest.mark.parametrize("seed", (3, 11))
def test_the_document_is_what_a_model_of_it_says(live: Callable[..., None], seed: int) -> None:
    chance = random.Random(seed)

    async def story(person: Person) -> None:
        await person.open(replace(sessions.full(1), evaluations=(), timings=()))
        workspace, run, window = person.context.workspace, person.context.runner, person.window
        expected, first = Expected(workspace), Expected.parts(person.state.session)

        def act(number: int, kind: str) -> None:
            session = person.state.session
            chosen = chance.sample(NAMES, chance.randint(1, 3))
            named = list(session.plans)
            if kind == "assign":
                edits.assign(workspace, chosen, weights=chance.choice(("int4-g32", "int8-channel", "keep")))
            elif kind == "lock":
                edits.lock(workspace, chosen, chance.random() < 0.6)
            elif kind == "undo":
                expected.move(expected.past, expected.future, lambda: window.trigger("undo"))
            elif kind == "redo":
                expected.move(expected.future, expected.past, lambda: window.trigger("redo"))
            elif kind == "keep":
                plans = {**session.plans, f"plan {number}": session.plan}
                workspace.edit(f"Keep {number}", lambda now: replace(now, plans=plans))
            elif kind == "take" and named:
                edits.set_plan(workspace, f"Take {number}", session.plans[chance.choice(named)])
            elif kind == "search":
                run.submit(SEARCH.request(session, SearchOptions(bits_per_weight=chance.uniform(3, 9))), _logged)
            elif kind == "score":
                metric = chance.choice(("predicted_kl", "measured_kl", "weight_error"))
                run.submit(QUICK.request(session, ScoreOptions(metric=metric, seed=number)))
            elif kind == "cancel":
                window.trigger("cancel")
            elif kind == "select":
                workspace.select(chosen)

        for number, kind in enumerate(chance.choices(KINDS, WEIGHTS, k=ACTIONS)):
            await person.act(lambda: act(number, kind))  # noqa: B023  # it is done at once
            state = person.state
            assert window.isWindowModified() == state.dirty
            assert (bool(state.undo_name), bool(state.redo_name)) == (bool(expected.past), bool(expected.future))
            assert state.assignments == resolve(state.session.plan, state.session.model.layers)
            sums = plan_totals(state.session.model, state.session.plan, *state.session.tables(state.metric))
            assert (state.totals.nbytes, state.totals.predicted) == (sums.nbytes, sums.predicted)
        await person.until(lambda: all(view.status.over for view in person.context.jobs.views), 60)
        assert not [message for message in person.context.messages.entries if message.level == "error"]
        while person.state.undo_name:
            await person.act(lambda: expected.move(expected.past, expected.future, lambda: window.trigger("undo")))
        assert Expected.parts(person.state.session)[:2] == first[:2] and not expected.past

    live(story)

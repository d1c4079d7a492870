"""Answers that are worked out in a thread: the newest question counts, and the panels show the same as at once."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from PySide6.QtCore import QObject

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.errors import PlanError
from workbench.gui.context import worker
from workbench.gui.context.worker import Worker


def test_of_several_questions_the_last_is_answered(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        shown, parent, goes_on = list[object](), QObject(), threading.Event()
        asking = Worker(parent, shown.append)
        asking.ask(lambda: "few", worker.FEW)
        assert shown == ["few"] and not asking.is_busy
        asking.ask(lambda: goes_on.wait(30), worker.FEW + 1)
        asking.ask(lambda: "skipped", worker.FEW + 1)
        asking.ask(lambda: "last", worker.FEW + 1)
        assert shown == ["few"] and asking.is_busy
        goes_on.set()
        await person.until(lambda: not asking.is_busy, 10)
        assert shown == ["few", "last"]
        asking.ask(lambda: "forgotten", worker.FEW + 1)
        asking.forget()
        asking.ask(_refuse, worker.FEW + 1)
        await person.until(lambda: not asking.is_busy, 10)
        assert [str(each) for each in shown] == ["few", "last", "nothing is left"]

    live(story)


def _refuse() -> None:
    raise PlanError("nothing is left")


def test_panels_show_in_a_thread_what_they_show_at_once(
    live: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(limit: int) -> list[object]:
        seen: list[object] = []

        async def story(person: Person) -> None:
            monkeypatch.setattr(worker, "FEW", limit)
            await person.open(sessions.full(1))
            await person.act(lambda: person.window.reveal("deploy"))
            await person.act(lambda: person.window.reveal("pareto"))
            front, deploy, tree = (person.window.panels[name] for name in ("pareto", "deploy", "layers"))
            await person.act(lambda: front._use(3))
            await person.act(lambda: person.window.trigger("fewer_bits"))
            await person.act(lambda: front.slider.setValue(5))
            await person.until(lambda: person.state.undo_name.startswith("Slide"), 10)
            await person.type(tree.filter, "mlp")
            await person.settle()
            seen.extend(
                [person.state.undo_name, person.state.session.plan.rules, front.figure.text(), front.why.text()]
            )
            seen.append([(row.form.kind, row.verdict, row.nbytes) for row in deploy.forms.rows])
            seen.append(list(tree.model.rows.layers))
            monkeypatch.undo()

        live(story)
        return seen

    assert repr(shown(0)) == repr(shown(10_000))

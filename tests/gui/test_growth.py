"""Nothing grows over two thousand actions and fifty opened models: objects, widgets, threads and memory."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from collections.abc import Callable

import pytest
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication

from tests.gui import sessions
from tests.gui.conftest import Person
from tests.gui.test_monkey import ACTIONS, SEED, Monkey
from workbench.engine.engine import Engine
from workbench.memory import resident
from workbench.session.session import Session

WARM_ACTIONS, WARM_MODELS, MODELS = 1000, 6, 50  # caches of texts and pictures are filled by then
DEMOS = ("demo:digits-classifier", "demo:language-model")
SHARE = 1.05


async def _counts(person: Person, session: Session, engine: Engine) -> dict[str, int]:
    """Count what lives once the same document is open again and nothing waits."""
    await person.open(session)
    await person.settle(0.3)
    for _ in range(3):
        QApplication.sendPostedEvents(None, 52)  # QEvent.DeferredDelete
        gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    tops = QApplication.topLevelWidgets()
    return {
        "objects": len(gc.get_objects()), "top-level widgets": len(tops),
        "Qt objects": sum(len(top.findChildren(QObject)) for top in tops if top.parent() is None),
        "threads": threading.active_count(), "bytes of the window": resident(os.getpid()) or 0,
        "bytes of the engine": resident(engine.pid) or 0,
    }  # fmt: skip


async def _act(person: Person, monkey: Monkey, actions: int) -> None:
    for number in range(actions):
        await person.act(monkey.act) if number % 10 == 0 else monkey.act()


async def _open(person: Person, count: int) -> None:
    for number in range(count):
        path = DEMOS[number % len(DEMOS)]
        opened: list[bool] = []

        async def opening(path: str = path, opened: list[bool] = opened) -> None:
            opened.append(await person.window.document.open(path))

        person.context.workspace.saved(None, person.state.session)  # nothing is asked
        person.context.tasks.start(opening())
        await person.until(lambda opened=opened: opened)
        assert opened == [True]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_nothing_grows(live: Callable[..., None]) -> None:
    engine = Engine()

    async def story(person: Person) -> None:
        session = sessions.full(1)
        monkey = Monkey(person, SEED)
        await person.open(session)
        await _act(person, monkey, WARM_ACTIONS)
        await _open(person, WARM_MODELS)
        before = await _counts(person, session, engine)
        await _act(person, monkey, ACTIONS)
        acted = await _counts(person, session, engine)
        await _open(person, MODELS)
        opened = await _counts(person, session, engine)
        for what, count in before.items():
            print(f"{what}: {count:,}, {acted[what]:,} after actions, {opened[what]:,} after models")
        grown = {what: (count, acted[what], opened[what]) for what, count in before.items()
                 if max(acted[what], opened[what]) > SHARE * count}  # fmt: skip
        assert not grown, grown

    live(story, engine=engine, seconds=1100)

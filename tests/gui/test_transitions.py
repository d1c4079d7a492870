"""The precision-transition table adds up to the totals."""

from __future__ import annotations

from collections.abc import Callable

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.transitions import transitions


def test_transitions_add_up(live: Callable[..., None]) -> None:
    session = sessions.full(2)

    async def story(person: Person) -> None:
        await person.open(session)
        rows = transitions(session.model, person.state.assignments)
        assert sum(row.layers for row in rows) == len(session.model.stored)
        after = sum(row.nbytes[1] for row in rows) + session.model.kept_nbytes
        assert int(after) == person.state.totals.nbytes
        before = sum(row.nbytes[0] for row in rows) + session.model.kept_nbytes
        assert before == session.model.nbytes
        panel = person.window.panels["timing"]
        await person.act(lambda: person.window.show_panel("timing"))
        await person.tab(panel.tabs, 1)
        assert panel.moves.records.rowCount() == len(rows)
        await person.act(lambda: person.desk.assign([session.model.layers[1].name], weights="int2-g32-asym"))
        assert panel.moves.records.record(0).after == "int2-g32-asym"
        person.picture("precision")

    live(story)

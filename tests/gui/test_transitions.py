"""The precision-transition table adds up to the totals."""

from __future__ import annotations

from collections.abc import Callable

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.context import edits
from workbench.insight.plan_parts import transitions


def test_transitions_add_up(live: Callable[..., None]) -> None:
    session = sessions.full(2)

    async def story(person: Person) -> None:
        await person.open(session)
        rows = transitions(session.model, person.state.assignments)
        assert sum(row.layers for row in rows) == len(session.model.layers)
        after = sum(row.nbytes[1] for row in rows) + session.model.other_nbytes
        assert int(after) == person.state.totals.nbytes
        before = sum(row.nbytes[0] for row in rows) + session.model.other_nbytes
        assert before == session.model.nbytes
        panel = person.window.panels["timing"]
        await person.act(lambda: person.window.reveal("timing"))
        await person.tab(panel.tabs, 3)
        assert panel.moves.records.rowCount() == len(rows)
        await person.act(
            lambda: edits.assign(person.context.workspace, [session.model.layers[1].name], weights="int2-g32-asym")
        )
        assert panel.moves.records.record(0).after == "int2-g32-asym"
        matrix = panel.matrix
        across = [matrix.horizontalHeaderItem(place).text() for place in range(matrix.columnCount())]
        down = [matrix.verticalHeaderItem(place).text() for place in range(matrix.rowCount())]
        assert across[0] == "int2-g32-asym" and matrix.item(0, 0).text().startswith("1 layer\n")
        rows = transitions(session.model, person.state.assignments)
        assert set(down) == {row.before for row in rows}
        shown = sum(matrix.item(y, x) is not None for y in range(len(down)) for x in range(len(across)))
        assert shown == len(rows)
        person.picture("precision")

    live(story)

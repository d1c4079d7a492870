"""The Reconstruction panel compares the weights of the plan, and forgets them with the plan."""

from __future__ import annotations

from collections.abc import Callable

from tests.gui.conftest import Person, empty_text
from workbench.gui.context import edits

MODEL = "demo:digits-classifier"


def test_the_weights_of_a_plan_are_compared(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.act(lambda: person.window.document.open_path(MODEL))
        await person.until(lambda: person.state.session is not None)
        panel = person.window.panels["reconstruction"]
        await person.act(lambda: person.window.reveal("reconstruction"))
        assert empty_text(panel) == "The plan quantizes nothing; give layers a scheme first (F7)."
        names = [layer.name for layer in person.state.session.model.layers]
        await person.act(lambda: edits.assign(person.context.workspace, names, weights="int4-g32-asym"))
        await person.click(panel.next_step)
        await person.until(lambda: "reconstruction" in person.state.session.results)
        assert len(panel.table.records.records) == len(names) and "Lowest SQNR" in panel.summary.text()
        person.picture("reconstruction")
        await person.act(lambda: edits.assign(person.context.workspace, names[:1], weights="int8-channel"))
        assert panel.table.records.records == () and empty_text(panel).startswith("Compare the weights")
        await person.act(person.context.workspace.undo)
        assert empty_text(panel) == "" and len(panel.table.records.records) == len(names)

    live(story)

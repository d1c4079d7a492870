"""The Deploy panel runs the plan's file in a runtime and keeps a row for every plan in each."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import pytest

from tests.gui.conftest import Person
from workbench.gui.context import edits


@pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp is not installed")
def test_a_plan_is_run_where_it_will_run(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.act(lambda: person.window.document.open_path("demo:language-model"))
        await person.until(lambda: person.state.session is not None and person.state.session.model.cannot_run is None)
        panel = person.window.panels["deploy"]
        await person.act(lambda: person.window.reveal("deploy"))
        assert panel.empty_text == "" and "has not run" in panel.summary.text()
        names = [layer.name for layer in person.state.session.model.layers if layer.tied_to is None]
        await person.act(lambda: edits.assign(person.context.workspace, names, weights="q8_0", algorithm="rtn"))
        await person.click(panel.buttons["llama.cpp"])
        await person.until(lambda: "runtime" in person.state.session.results)
        assert len(panel.table.records.records) == 2 and "This plan there" in panel.summary.text()
        person.picture("deploy")

    live(story)

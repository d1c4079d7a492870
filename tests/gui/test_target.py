"""Targets: only what they run is offered, what they cannot run is told, and one click repairs it as one step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QListWidget

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.deployment.targets import target
from workbench.gui.tables.layer_columns import INPUTS, SCHEME
from workbench.insight.layer_facts import FLOATING
from workbench.insight.legality import refusals
from workbench.models.summary import quantizable
from workbench.session.session import Session

Q, K, V = (f"model.layers.0.self_attn.{part}_proj" for part in "qkv")
UP = "model.layers.1.mlp.up_proj"


def _session() -> Session:
    session = sessions.opened(sessions.summary(2))
    plan = session.plan.assign([Q], weights="nf4-b64").assign([K, V], weights="int4-g128")
    return replace(session, plan=plan.assign([UP], weights="int3-g32-asym", inputs="int8-token"))


async def _choose_target(person: Person, name: str = "vllm") -> None:
    box = person.window.panels["plan"].target.box
    await person.choose(box, box.findData(name))


def test_a_person_chooses_a_target_and_repairs(live: Callable[..., None]) -> None:
    session = _session()

    async def story(person: Person) -> None:
        await person.open(session)
        line = person.window.panels["plan"].target
        assert line.verdict.text() == "every scheme is allowed" and not line.repair_button.isVisible()
        await _choose_target(person)
        await person.until(lambda: person.state.target == "vllm", 5)
        await person.until(lambda: "refused" in line.verdict.text(), 5)
        assert UP in line.verdict.toolTip()
        await person.click(line.select_button)
        assert {Q, UP} <= set(person.state.selection)
        person.picture("violations")
        before = person.state.session.plan
        await person.click(line.repair_button)
        assert person.state.undo_name.startswith("Repair ") and "vLLM" in person.state.undo_name
        await person.until(lambda: line.verdict.text() == "runs the whole plan", 5)
        person.picture("repaired")
        await person.press(Qt.Key.Key_Z, person.window, control=True)
        assert person.state.session.plan == before

    live(story)


def test_inputs_are_edited_in_the_tree_with_what_the_target_allows(live: Callable[..., None]) -> None:
    session = sessions.opened(sessions.summary(2))
    session = replace(session, plan=session.plan.assign([UP], weights="int8-channel"))

    async def story(person: Person) -> None:
        await person.open(session)
        await _choose_target(person)
        panel = person.window.panels["layers"]
        for column, expected, field in ((INPUTS, "int8-token", "inputs"), (SCHEME, "fp8-e4m3-channel", "weights")):
            await person.layer(UP, column)
            await person.press(Qt.Key.Key_F2, panel.view)
            editor = panel.view.findChild(QComboBox)
            names = [editor.itemText(row) for row in range(editor.count())]
            assert expected in names and "nf4-b64" not in names and (column == SCHEME) == (FLOATING not in names)
            await person.pick(editor, expected)
            assert getattr(person.state.assignments[UP], field) == expected

    live(story)


def test_rows_are_marked_where_the_target_cannot_run_them(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(_session())
        model = person.window.panels["layers"].model

        def cells() -> dict[str, str]:
            return {name: model.data(model.index_of(name, SCHEME)) for name in (Q, UP)}

        plain = cells()
        assert plain == {Q: "nf4-b64", UP: "int3-g32-asym"}
        await _choose_target(person)
        assert cells() == {name: f"⚠ {scheme}" for name, scheme in plain.items()}
        tip = model.data(model.index_of(UP), Qt.ItemDataRole.ToolTipRole)
        assert f"{target('vllm').title} cannot run this: " in tip
        colour = model.data(model.index_of(UP, SCHEME), Qt.ItemDataRole.ForegroundRole)
        assert colour.name() == person.window.colours.error
        assert model.data(model.index_of(UP, SCHEME), Qt.ItemDataRole.EditRole) == "int3-g32-asym"
        person.picture("marked")
        shortcut = person.window.actions_by_id["repair"].shortcut()
        await person.act(lambda: QTest.keySequence(person.window, shortcut))
        assert not [text for text in cells().values() if "⚠" in text]

    live(story)


def test_the_front_and_its_slider_keep_to_the_target(live: Callable[..., None]) -> None:
    session = sessions.full(1)

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.window.reveal("pareto"))
        panel = person.window.panels["pareto"]
        free = len(panel.front)
        await _choose_target(person)
        await person.settle()
        assert len(panel.front) != free and "for vLLM" in panel.figure.text()
        panel.slider.setValue(0)
        await person.until(lambda: person.state.undo_name.startswith("Slide"), 5)
        layers, plan = person.state.session.model.layers, person.state.session.plan
        searched = {layer.name for layer in quantizable(layers)}
        assert not [refusal for refusal in refusals(plan, layers, "vllm") if searched & set(refusal.layers)]

    live(story)


def test_a_form_says_which_schemes_the_target_refuses(live: Callable[..., None]) -> None:
    """Before hours of scoring, not after: K-quants take rows of 256 values."""
    session = sessions.opened()
    narrow = [replace(layer, shape=(layer.shape[0], 576)) for layer in session.model.layers[1:2]]
    layers = (*session.model.layers[:1], *narrow, *session.model.layers[2:])

    async def story(person: Person) -> None:
        await person.open(replace(session, model=replace(session.model, layers=layers)))
        await person.act(lambda: person.context.workspace.show_target("gguf"))
        await person.act(lambda: person.context.trigger("score"))
        await person.until(lambda: person.dialog("form"), 10)
        box = person.dialog("form").findChild(QListWidget)
        entries = {text.partition(" ")[0]: text for text in (box.item(row).text() for row in range(box.count()))}
        assert "refused in" in entries["q4_k"] and "refused" not in entries["q4_0"]
        await person.act(person.dialog("form").reject)

    live(story)

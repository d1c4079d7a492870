"""Targets: only what they run is offered, what they cannot run is told, and one click repairs it as one step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QListWidget

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.deployment.targets import target
from workbench.gui.panels.plan.best_target import BestTarget
from workbench.gui.shell.forms import Form
from workbench.gui.tables.layer_columns import INPUTS, SCHEME
from workbench.insight import quantities
from workbench.insight.layer_facts import FLOATING
from workbench.insight.legality import refusals
from workbench.models.summary import quantizable
from workbench.planning.plan import resolve
from workbench.session.session import Session
from workbench.steps.score import with_table
from workbench.steps.search import search
from workbench.steps.targets import TargetPlan

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
        said = person.context.messages.entries[-1].text
        size = quantities.data_size(person.state.totals.nbytes)
        assert said.endswith(f" before, {size} now"), "what it made of the plan"
        await person.press(Qt.Key.Key_Z, person.window, control=True)
        assert person.state.session.plan == before

    live(story)


def test_more_and_fewer_bits_go_through_the_scored_schemes_of_a_target(live: Callable[..., None]) -> None:
    """A scheme that the target runs and nothing has scored leaves the plan without a prediction."""
    session = sessions.opened(sessions.summary(2))
    table = sessions.table(session.model)
    scored = replace(table, schemes=("q4_0", "q5_0"), score=table.score[:, :2])
    session = replace(session, sensitivities={"predicted_kl": scored}, plan=session.plan.assign([Q], weights="q4_0"))

    async def story(person: Person) -> None:
        await person.open(session)
        await _choose_target(person, "gguf")
        await person.act(lambda: person.context.workspace.select([Q]))
        for action, expected in (("more_bits", "q5_0"), ("fewer_bits", "q4_0")):
            await person.act(lambda action=action: person.window.trigger(action))
            await person.until(lambda expected=expected: person.state.assignments[Q].weights == expected, 5)
        await person.act(lambda: person.window.trigger("fewer_bits"))  # beyond them, what the target runs
        await person.until(lambda: person.state.assignments[Q].weights not in scored.schemes, 5)

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


def test_the_front_counts_the_rounding_of_inputs_as_a_search_does(live: Callable[..., None]) -> None:
    """llama.cpp rounds inputs on its own account: front and search choose by it, and both show what plans predict."""
    session = sessions.opened(sessions.summary(2))
    names, weights = ("q4_0", "q4_k", "q6_k"), sessions.table(session.model)
    weights = replace(weights, schemes=names, score=weights.score[:, :1] * [0.2, 0.1, 0.05])
    session = replace(session, sensitivities={"predicted_kl": weights})
    beside = np.array([[0.0, 5.0 if ".mlp." in name else 0.0] for name in weights.layers]) * weights.score[:, :1]
    rounding = replace(weights, metric="predicted_kl_inputs", schemes=("int8-g32", "int8-g256"), score=beside)

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.window.reveal("pareto"))
        await person.act(lambda: person.context.workspace.show_target("gguf"))
        panel, verdict = person.window.panels["pareto"], person.window.panels["plan"].target.verdict
        assert "rounds inputs as well, which a search does not count yet" in verdict.text()
        assert "in blocks of 32 or of 256" in verdict.toolTip() and "(F6)" in verdict.toolTip()
        assert {"q4_k", "q6_k"} <= {scheme for group in panel.front.space.groups for scheme in group.schemes}
        known = {**session.sensitivities, rounding.metric: rounding}
        await person.act(lambda: person.context.workspace.update(lambda now: replace(now, sensitivities=known)))
        assert verdict.text() == "runs the whole plan" and "rounding of inputs counts" in panel.figure.text()
        await person.act(lambda: panel._use(2))
        assert person.state.assignments[UP].weights not in ("q4_k", "q6_k")
        shown = panel.plot.picture.loss[2]
        assert shown == pytest.approx(person.state.totals.predicted)
        size = person.state.totals.bits_per_weight
        found = resolve(search(person.state.session, bits_per_weight=size, target="gguf"), session.model.layers)
        assert {name: each.weights for name, each in found.items()} == {
            name: each.weights for name, each in person.state.assignments.items()
        }

    live(story)


def test_a_score_of_inputs_for_llama_cpp_is_of_what_it_rounds_to(live: Callable[..., None]) -> None:
    session, asked = sessions.full(1), list[object]()

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.context.workspace.show_target("gguf"))
        person.context.runner.work = lambda request, again=None, **_: asked.append(request) or asyncio.sleep(0)
        await person.act(lambda: person.context.trigger("score"))
        await person.until(lambda: person.dialog("form"), 10)
        box = person.dialog("form").findChild(Form).widgets["metric"]
        box.setCurrentIndex(box.findData("predicted_kl_inputs"))
        await person.act(person.dialog("form").accept)
        await person.until(lambda: asked, 10)
        assert asked[0].options.schemes[-2:] == ("int8-g32", "int8-g256")

    live(story)


def test_the_best_target_is_offered_and_taken_as_one_step(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        before = person.state.session.plan
        await person.press(Qt.Key.Key_F7, control=True)
        await person.until(lambda: person.dialog("best-target") is not None, 20)
        dialog = person.dialog("best-target")
        rows = dialog.table.records.records
        losses = [row.loss for row in rows if row.plan is not None]
        assert losses == sorted(losses) and len(losses) > 1 and all(row.reason for row in rows[len(losses) :])
        assert dialog.chosen() is rows[0]
        table = person.state.session.sensitivities["predicted_kl"]  # joined, it changes the model
        person.context.workspace.update(lambda session: with_table(session, None, table))
        dialog.table.selectRow(1)
        await person.click(dialog.use_button)
        assert person.state.session.plan is rows[1].plan and person.state.target == rows[1].target
        assert person.state.undo_name == f"Best plan for {rows[1].title}"
        await person.press(Qt.Key.Key_Z, control=True)
        assert person.state.session.plan is before and person.state.target == "", "the target goes with its plan"

    live(story)


def test_a_target_without_a_plan_cannot_be_taken(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        rows = (TargetPlan(target="mlx", title="MLX (mlx-lm)", reason="it runs none of the schemes that were scored"),)
        dialog = BestTarget(person.window, rows, "nats", "4.5 bits per weight", lambda row: pytest.fail("taken"))
        dialog.open()
        await person.settle()
        assert not dialog.use_button.isEnabled() and dialog.chosen() is None
        dialog.take()
        assert dialog.isVisible()
        dialog.reject()

    live(story)

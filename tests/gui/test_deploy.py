"""The Deploy panel runs the plan's file in a runtime and keeps a row for every plan in each."""

from __future__ import annotations

import html
import importlib.util
import json
import math
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QComboBox

from tests.gui import sessions
from tests.gui.conftest import Person, empty_text
from workbench.cli import main
from workbench.deployment.proof.record import RuntimeProof
from workbench.gui.context import edits
from workbench.gui.panels.accuracy import audit_view
from workbench.gui.panels.deploy.card import Card
from workbench.gui.shell.forecast import ForecastLine
from workbench.insight.deployments import FORMS, Deployment
from workbench.insight.legality import Refusal, refusals
from workbench.models.summary import OutputKind
from workbench.preflight import Estimate
from workbench.session.calibrated_ranges import identity
from workbench.session.results import StepResult
from workbench.session.session import Session
from workbench.steps.checks.runtime import AUTO, NAME
from workbench.steps.preflight import costs as preflight_costs


@pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp is not installed")
def test_a_plan_is_run_where_it_will_run(live: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(person: Person) -> None:
        await person.act(lambda: person.window.document.open_path("demo:language-model"))
        await person.until(lambda: person.state.session is not None and person.state.session.model.cannot_run is None)
        panel = person.window.panels["deploy"]
        await person.act(lambda: person.window.reveal("deploy"))
        assert empty_text(panel) == "" and "has not run" in panel.summary.text()
        names = [layer.name for layer in person.state.session.model.layers if layer.tied_to is None]
        await person.act(lambda: edits.assign(person.context.workspace, names, weights="q8_0", algorithm="rtn"))
        monkeypatch.setattr(preflight_costs, "proof", lambda *each, **other: Estimate(seconds=90.0, memory=10**9))
        await person.click(panel.forms.cards["gguf"].head)
        await person.click(panel.forms.measure_button)
        await person.until(lambda: person.dialog("form"), 10)
        assert person.dialog("form").findChild(QComboBox, "runtime").currentData() == "llama.cpp"
        line = person.dialog("form").findChild(ForecastLine)
        await person.until(lambda: line.text() == "It takes about 2 min, 1 GB of memory.", 20)
        await person.click(person.dialog("form").start_button)
        await person.until(lambda: "runtime" in person.state.session.results)
        assert len(panel.table.records.records) == 2 and panel.summary.text() == "Plans in their runtime"
        assert panel.forms.measured.text().startswith("llama.cpp (xllamacpp ")
        person.picture("deploy")

    live(story)


def test_forms_say_what_is_refused_and_are_repaired_and_written(live: Callable[..., None], tmp_path: Path) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(3), tmp_path / "mine.qwb")
        await person.act(lambda: person.window.reveal("deploy"))
        panel = person.window.panels["deploy"]
        forms, layers = panel.forms, person.state.session.model.layers
        names = [layer.name for layer in layers if layer.tied_to is None]
        await person.act(lambda: edits.assign(person.context.workspace, names, weights="int4-g32", algorithm="rtn"))
        rows = {row.form.kind: row for row in forms.rows}
        assert set(rows) == {form.kind for form in FORMS}
        for row in rows.values():
            refused = refusals(person.state.session.plan, layers, row.form.target)
            assert row.refused == refused
            assert row.nbytes >= person.state.totals.nbytes if row.is_possible else math.isnan(row.nbytes)
        card = forms.cards["gguf"]
        await person.click(card.head)
        assert not forms.export.isEnabled() and card.repair.isVisible()
        assert not forms.measure_button.isEnabled(), "a runtime is not offered what it refuses"
        assert forms.chosen.reasons.split("\n")[0] in html.unescape(forms.measure_button.toolTip())
        person.picture("refused")
        before = person.state.session.plan
        await person.click(card.repair)
        assert person.context.messages.entries[-1].text.endswith("Score (F6) tells what its schemes cost")
        assert not card.repair.isVisible() and forms.export.isEnabled()
        assert not refusals(person.state.session.plan, layers, "gguf")
        assert Path(forms.place.text()).parent == tmp_path and forms.place.text().endswith(".gguf")
        assert forms.copy.isEnabled() and "saved first" in forms.copy.toolTip(), "the saved session is older"
        await person.click(forms.copy)
        await person.until(lambda: not person.state.dirty, 20)
        await person.until(lambda: QApplication.clipboard().text().startswith("workbench export"), 5)
        words = shlex.split(QApplication.clipboard().text())
        assert words[2] == str(tmp_path / "mine.qwb") and words[-1] == forms.place.text()
        assert Session.load(tmp_path / "mine.qwb").plan == person.state.session.plan
        usual, jobs = forms.place.text(), len(person.context.jobs.views)
        await person.type(forms.place, " ")
        await person.click(forms.export)
        assert forms.place.text() == usual and len(person.context.jobs.views) == jobs, "nothing is written nowhere"
        assert "name the file" in person.context.messages.entries[-1].text
        person.picture("repaired")
        await person.act(person.context.workspace.undo)
        assert person.state.session.plan == before and card.repair.isVisible()

    live(story, size=(1600, 900))


def test_cards_are_read_chosen_and_copied_with_the_keyboard(live: Callable[..., None]) -> None:
    """What can be written stands first; arrows choose, Tab goes on in the chosen card, Ctrl+C copies it."""

    async def story(person: Person) -> None:
        session = sessions.full(2)
        own = identity(session, session.plan)
        ran = StepResult.of(RuntimeProof, (proof(own), proof("another plan")))
        await person.open(replace(session, results={NAME: ran}))
        await person.act(lambda: person.window.reveal("deploy"))
        forms = person.window.panels["deploy"].forms
        ranks = [(bool(row.unfit), bool(row.refused)) for row in forms.rows]
        assert ranks == sorted(ranks) and len(set(ranks)) > 1
        tops = [forms.cards[row.form.kind].y() for row in forms.rows]
        assert tops == sorted(tops) and forms.chosen is forms.rows[0]
        for row, card in ((row, forms.cards[row.form.kind]) for row in forms.rows):
            assert card.head.accessibleName().startswith(row.form.title)
            assert row.form.loads in card.head.accessibleDescription()
            assert ("; the rest float" in card.holds.text()) == row.is_possible == ("B" in card.state.text())
            assert card.repair.isVisible() == bool(row.refused and not row.unfit)
        await person.click(forms.cards["gguf"].head)
        assert forms.measured.text().startswith("llama.cpp (xllamacpp 0.1): loss 0.0125 nats (evaluated: 0.0120)")
        assert forms.measured.text().count("\n") == 0 and forms.settings.isVisible()
        await person.click(forms.cards[forms.rows[0].form.kind].head)
        assert not forms.measured.isVisible(), "it ran in llama.cpp"
        await person.press(Qt.Key.Key_Down)
        assert forms.chosen is forms.rows[1] and forms.place.isVisible()
        await person.press(Qt.Key.Key_C, control=True)
        title = forms.chosen.form.title
        assert QApplication.clipboard().text().startswith(f"{title}: ")

    live(story)


def proof(plan: str) -> RuntimeProof:
    """Return what a plan did in llama.cpp."""
    return RuntimeProof(
        runtime="llama.cpp (xllamacpp 0.1)", plan=plan, plan_name="mine", file_bytes=2_000_000, tensor_bytes=1_900_000,
        plan_loss=0.012, runtime_loss=0.0125, difference=1e-4, agreement=1.0, unit="nats", positions=16,
        prompt_speed=100.0, generation_speed=50.0, peak_bytes=10**8, tokens="the same", data="text",
    )  # fmt: skip


OFFERED = {"openvino": "onnxruntime", "onnxruntime": "openvino"}
"""The runtime that an ONNX file is measured in where the other one is missing."""


@pytest.mark.parametrize("missing", [*OFFERED, "both"])
def test_a_runtime_that_is_not_installed_is_not_offered(
    missing: str, live: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {name: None if missing in (name, "both") else importlib.util.find_spec("json") for name in OFFERED}
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: there[name] if name in there else find(name))

    async def story(person: Person) -> None:
        await person.act(lambda: person.window.document.open_path("demo:language-model"))
        await person.until(lambda: person.state.session is not None and person.state.session.model.cannot_run is None)
        await person.act(lambda: person.window.reveal("deploy"))
        forms = person.window.panels["deploy"].forms
        names = [layer.name for layer in person.state.session.model.layers if layer.tied_to is None]
        await person.act(lambda: edits.assign(person.context.workspace, names, weights="int8-channel", algorithm="rtn"))
        await person.click(forms.cards["onnx"].head)
        assert forms.chosen.is_possible and forms.runtime == OFFERED.get(missing, AUTO)
        assert forms.measure_button.isEnabled() == (missing != "both")
        if missing == "both":
            assert "pip install 'quantization-workbench[openvino]'" in html.unescape(forms.measure_button.toolTip())

    live(story)


def test_the_copied_command_writes_what_the_button_writes(
    live: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def story(person: Person) -> None:
        await person.act(lambda: person.window.document.open_path("demo:language-model"))
        await person.until(lambda: person.state.session is not None and person.state.session.model.cannot_run is None)
        await person.act(lambda: person.window.reveal("deploy"))
        forms = person.window.panels["deploy"].forms
        names = [layer.name for layer in person.state.session.model.layers if layer.tied_to is None]
        await person.act(lambda: edits.assign(person.context.workspace, names, weights="q8_0", algorithm="rtn"))
        await person.click(forms.cards["safetensors"].head)
        await person.type(forms.place, str(tmp_path / "button.safetensors"))
        await person.click(forms.export)
        await person.until(lambda: (tmp_path / "button.safetensors").exists())
        person.state.session.save(tmp_path / "demo.qwb")
        await person.act(lambda: person.context.workspace.saved(tmp_path / "demo.qwb", person.state.session))
        await person.click(forms.cards["gguf"].head)
        await person.type(forms.settings, "pre_tokenizer=gpt-2")
        await person.click(forms.copy)
        assert shlex.split(QApplication.clipboard().text())[-2:] == ["--set", "pre_tokenizer=gpt-2"]
        await person.click(forms.cards["safetensors"].head)
        assert not forms.settings.isVisible(), "it has no options"
        await person.type(forms.place, str(tmp_path / "command.safetensors"))
        await person.click(forms.copy)

    live(story, size=(1600, 900))
    command = shlex.split(QApplication.clipboard().text())
    assert command[0] == "workbench" and main(command[1:]) == 0
    written = (tmp_path / "command.safetensors").read_bytes()
    assert written == (tmp_path / "button.safetensors").read_bytes()
    assert json.loads(written[8 : 8 + int.from_bytes(written[:8], "little")])


def test_the_form_of_the_target_is_selected_whenever_the_target_changes(live: Callable[..., None]) -> None:
    """After a model for llama.cpp, one for ONNX Runtime would have been written as GGUF."""

    async def story(person: Person) -> None:
        await person.act(lambda: person.context.workspace.show_target("gguf"))
        await person.open(sessions.full(1))
        await person.act(lambda: person.window.reveal("deploy"))
        forms = person.window.panels["deploy"].forms
        assert forms.chosen.form.kind == "gguf"
        await person.act(lambda: person.context.workspace.show_target("onnxruntime"))
        assert forms.chosen.form.kind == "onnx" and forms.place.text().endswith(".onnx")
        await person.click(forms.cards["torchao"].head)
        kind = forms.chosen.form.kind
        await person.act(lambda: edits.assign(person.context.workspace, ["model.layers.0.mlp.up_proj"], weights="fp16"))
        assert forms.chosen.form.kind == kind != "onnx", "what the user selects stays while the plan is edited"

    live(story)


def test_the_chosen_card_is_whole_when_the_panel_is_first_seen(live: Callable[..., None]) -> None:
    """It was scrolled to where the cards lay before their places were known: the first one lost its frame."""

    async def story(person: Person) -> None:
        session = sessions.full(1)
        names = [layer.name for layer in session.model.layers if layer.tied_to is None]
        await person.open(replace(session, plan=session.plan.assign(names, weights="q4_0", algorithm="rtn")))
        await person.act(lambda: person.context.workspace.show_target("gguf"))
        await person.act(lambda: person.window.reveal("deploy"))
        forms = person.window.panels["deploy"].forms
        assert forms.rows[0].form.kind == forms.chosen.form.kind == "gguf" and forms.chosen.is_possible
        assert forms.area.verticalScrollBar().maximum() > 0 == forms.area.verticalScrollBar().value()
        state = forms.cards["gguf"].state
        assert state.shown == state.text() and state.text().endswith("B of tensors")

    live(story)


def test_cards_are_no_wider_than_a_narrow_panel(qapp: QApplication) -> None:
    """At twice the size on a screen of 1080 lines the figure at the end of each was beyond the edge."""
    card = Card(FORMS[1], lambda form: None)
    card.resize(420, 60)
    refused = Deployment(form=FORMS[1], nbytes=math.nan, holds="", refused=(Refusal(layers=("a" * 60,), reason="no"),))
    card.show_deployment(refused)
    card.show()
    qapp.processEvents()
    assert card.minimumSizeHint().width() < 300 and card.width() == 420
    assert card.state.shown == card.state.text(), "what is most important is whole"
    card.close()


def test_losses_of_an_encoder_have_its_own_unit(live: Callable[..., None]) -> None:
    """Tables said nats before there was a row, and the audit's always."""

    async def story(person: Person) -> None:
        session = sessions.full(1)
        assert "nats" not in {field.unit for field in audit_view.FIELDS}
        for output, runtime, loss in (
            (OutputKind.TOKEN_LOGITS, "nats", "nats"), (OutputKind.EMBEDDING, "1 - cosine", "½ d²"),
        ):  # fmt: skip
            await person.open(replace(session, sensitivities={}, model=replace(session.model, output=output)))
            await person.act(lambda: person.window.reveal("deploy"))
            models = person.window.panels["deploy"].table.records, person.window.panels["layers"].model
            for model, unit in zip(models, (runtime, loss), strict=True):
                titles = [model.headerData(column, Qt.Orientation.Horizontal) for column in range(model.columnCount())]
                units = {title.partition("(")[2].rstrip(")") for title in titles}
                assert unit in units and not units & ({"nats", "1 - cosine", "½ d²"} - {unit})
            header = person.window.panels["deploy"].table.horizontalHeader()
            for column in range(header.count()):
                assert header.sectionSize(column) >= header.sectionSizeHint(column), "no heading is cut"

    live(story)

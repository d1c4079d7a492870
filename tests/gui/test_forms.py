"""Forms ask for what a document lacks before a job starts, and put what is chosen first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sized
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QListWidget,
    QPushButton,
    QToolButton,
    QWidget,
)

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.errors import CancelledError, DataError
from workbench.gui.shell import settings
from workbench.gui.shell.dialogs import FormDialog
from workbench.gui.shell.forecast import ForecastLine, fitting_samples
from workbench.gui.shell.forms import Form
from workbench.gui.shell.number_field import NumberField
from workbench.gui.shell.widgets import label
from workbench.models.data.files import BUNDLED_TEXT, locate
from workbench.models.layer import LayerKind
from workbench.models.sources import open_model
from workbench.preflight import Estimate, duration
from workbench.session.session import Session
from workbench.steps import step
from workbench.steps.calibrate import CALIBRATE, CalibrateOptions
from workbench.steps.evaluate import EVALUATE, EvaluateOptions
from workbench.steps.files.export import ExportOptions
from workbench.steps.files.first_session import start
from workbench.steps.options import scheme_choices
from workbench.steps.preflight import costs as preflight_costs
from workbench.steps.score import ScoreOptions
from workbench.steps.session_data import KINDS, in_fields, last_data, offered_data


def fresh(folder: Path) -> Session:
    """Return a session of a model in a folder, before any step."""
    opened = sessions.opened()
    source = replace(opened.model.source, path=str(folder))
    return replace(opened, model=replace(opened.model, source=source), calibration=None, evaluation=None)


async def calibration_form(person: Person, folder: Path) -> Form:
    """Return the form of a calibration, asked for before any step."""
    await person.open(fresh(folder))
    await person.act(lambda: person.context.trigger("calibrate"))
    await person.until(lambda: person.dialog("form"), 10)
    form: Form = person.dialog("form").findChild(Form)
    return form


def test_a_calibration_without_data_is_not_started(live: Callable[..., None], tmp_path: Path) -> None:
    async def story(person: Person) -> None:
        form = await calibration_form(person, tmp_path)
        data = form.widgets["data"].findChild(QLineEdit)
        assert data.placeholderText() == f"Needed: {KINDS}"
        await person.click(person.dialog("form").start_button)
        assert person.dialog("form") is not None and not person.context.jobs.views
        assert form._problems["data"].text() == f"Needed: {KINDS}"
        await person.type(data, "words.txt")
        assert form._problems["data"].isHidden()
        await person.click(person.dialog("form").start_button)
        assert form._problems["data"].text() == f"There is no {Path('words.txt').absolute()}"
        assert not person.context.jobs.views, "a slip of the keyboard costs no job and no form"
        await person.act(person.dialog("form").reject)

    live(story)


def test_data_that_are_there_with_options_of_their_own_are_taken(live: Callable[..., None], tmp_path: Path) -> None:
    """A calibration on a folder of sentences leaves ``folder?text=sentences`` as what the evaluation begins with."""
    (tmp_path / "a.txt").write_text("One sentence.")

    async def story(person: Person) -> None:
        form = await calibration_form(person, tmp_path)
        data = form.widgets["data"].findChild(QLineEdit)
        for text, said in (
            (f"{tmp_path}?text=sentences", ""),
            (f"{tmp_path}?window=64&column=a", ""),
            (f"{tmp_path}-gone?text=sentences", f"There is no {tmp_path}-gone"),
            (f"{tmp_path}?txt=sentences", f"{tmp_path}?txt=sentences: there is no option 'txt'; the closest are text"),
        ):
            await person.act(lambda text=text: data.setText(text))
            assert form.problems().get("data", "").startswith(said) and bool(form.problems()) == bool(said)
        await person.act(person.dialog("form").reject)

    live(story)


def test_data_that_were_refused_stand_in_the_form_again(live: Callable[..., None], tmp_path: Path) -> None:
    (tmp_path / "long name.csv").write_text("a,b\n")

    async def story(person: Person) -> None:
        await person.open(fresh(tmp_path))
        for attempt in range(2):
            await person.act(lambda: person.context.trigger("calibrate"))
            await person.until(lambda: person.dialog("form"), 10)
            form = person.dialog("form").findChild(Form)
            line = form.widgets["data"].findChild(QLineEdit)
            if attempt == 0:
                await person.type(line, str(tmp_path / "long name.csv"))
                await person.type(form.widgets["column"], "story")
                await person.click(person.dialog("form").start_button)
                await person.until(lambda: person.dialog("error"))
                await person.act(person.dialog("error").reject)
        assert line.text() == str(tmp_path / "long name.csv") and form.widgets["column"].text() == "story"
        await person.act(person.dialog("form").reject)

    live(story)


def test_a_language_model_without_data_is_offered_bundled_text(live: Callable[..., None], tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")

    async def story(person: Person) -> None:
        for text in ("llama.cpp", "onnx", "explore"):
            settings.role.save(text)
            await person.open(fresh(tmp_path))
            await person.act(lambda: person.context.trigger("calibrate"))
            await person.until(lambda: person.dialog("form"), 10)
            field = person.dialog("form").findChild(Form).widgets["data"]
            line, menu = field.findChild(QLineEdit), field.findChild(QToolButton).menu()
            assert line.text() == ("" if text == "explore" else BUNDLED_TEXT)
            offered = [action for action in menu.actions() if BUNDLED_TEXT in action.text()]
            await person.act(offered[0].trigger)
            assert line.text() == BUNDLED_TEXT and locate(BUNDLED_TEXT, "calibration").file.is_file()
            await person.act(person.dialog("form").reject)

    assert offered_data(fresh(tmp_path).model) == (BUNDLED_TEXT,)
    assert offered_data(sessions.opened().model) == ()
    live(story)
    for content, offered in (
        ('{"is_encoder_decoder": true}', ()), ('{"is_encoder_decoder": false}', (BUNDLED_TEXT,)),
        ("[]", (BUNDLED_TEXT,)), ("{", (BUNDLED_TEXT,)),
    ):  # fmt: skip
        (tmp_path / "config.json").write_text(content)
        assert offered_data(fresh(tmp_path).model) == offered


def test_data_in_the_models_folder_are_offered(tmp_path: Path) -> None:
    session = fresh(tmp_path)
    assert last_data(session, None) == "" and CALIBRATE.missing(session, CalibrateOptions())
    np.save(tmp_path / "calibration_tokens.npy", np.zeros(8, np.int64))
    assert last_data(session, None) == str(tmp_path / "calibration_tokens.npy")
    assert CALIBRATE.first is not None and not CALIBRATE.missing(session, CALIBRATE.first(session))


def test_how_data_were_read_stands_in_the_fields_for_it(live: Callable[..., None]) -> None:
    options = EvaluateOptions(data="a.csv?column=text&window=2048&text=sentences")
    assert in_fields(options) == EvaluateOptions(data="a.csv?text=sentences", column="text", window=2048)
    assert in_fields(EvaluateOptions(data="a.csv")) == EvaluateOptions(data="a.csv")
    session = sessions.full(1)
    record = replace(session.calibration, path="demo:python-documentation?window=2048")

    async def story(person: Person) -> None:
        await person.open(replace(session, evaluation=record))
        await person.act(lambda: person.context.trigger("evaluate"))
        await person.until(lambda: person.dialog("form"), 10)
        value = person.dialog("form").findChild(Form).value()
        assert (value.data, value.window) == ("demo:python-documentation", 2048)
        await person.act(person.dialog("form").reject)

    live(story)


@pytest.mark.parametrize("path", ["demo:language-model", "demo:digits-classifier"])
def test_bundled_models_and_importance_matrices_need_no_data(path: str) -> None:
    session = fresh(Path(path))
    assert not CALIBRATE.missing(session, CalibrateOptions()) and not EVALUATE.missing(session, EvaluateOptions())
    assert not CALIBRATE.missing(fresh(Path("/nowhere")), CalibrateOptions(imatrix="some.gguf"))
    assert EVALUATE.missing(fresh(Path("/nowhere")), EvaluateOptions())


def test_chosen_schemes_come_first_and_are_counted(qapp: object) -> None:
    names = [choice.value for choice in scheme_choices()]
    chosen = (names[-1], names[7])
    form = Form(ScoreOptions(schemes=chosen))
    box = form.widgets["schemes"].findChild(QListWidget)
    assert "4.50 bits" in next(choice.label for choice in scheme_choices() if choice.value == "q4_k")
    values = [box.item(place).data(Qt.ItemDataRole.UserRole) for place in range(box.count())]
    assert values[:2] == [names[7], names[-1]] and sorted(values) == sorted(names)
    assert form.value().schemes == (names[7], names[-1])
    box.item(5).setCheckState(Qt.CheckState.Checked)
    assert set(form.value().schemes) == {*chosen, values[5]}
    form.deleteLater()


def test_a_mixtures_option_is_offered_for_mixtures_only(qapp: object) -> None:
    dense = sessions.opened().model
    experts = replace(dense.layers[1], kind=LayerKind.EXPERTS, shape=(4, *dense.layers[1].shape))
    mixed = replace(dense, layers=(*dense.layers[:1], experts, *dense.layers[2:]))
    for model, offered in ((dense, False), (mixed, True)):
        assert ("all_experts" in Form(CalibrateOptions(), model=model).widgets) is offered
    assert Form(CalibrateOptions(), model=dense).value() == CalibrateOptions(), "what is not offered keeps its default"


def test_a_form_says_how_long_it_takes_and_begins_with_the_samples_that_fit(
    live: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []

    def costs(model: object, data: Sized, *, batch_size: int, weights: bool) -> Estimate:
        asked.append((len(data), batch_size))
        each = 64.0 / batch_size
        return Estimate(
            seconds=60 + each * len(data), memory=2_000_000_000, samples=len(data), sample_seconds=each
        )  # fmt: skip

    monkeypatch.setattr(preflight_costs, "calibration", costs)
    session = start(open_model("demo:language-model"))

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.context.trigger("calibrate"))
        await person.until(lambda: person.dialog("form"), 10)
        line, samples = line_below(person), person.dialog("form").findChild(NumberField, "samples")
        await person.until(lambda: "It takes" in line().text(), 20)
        whole = asked[0][0]
        assert whole > 24 and asked == [(whole, 8)]
        assert samples.number == 24, "of 8 s each, beside the minute that does not depend on them, in five minutes"
        all_of_them = f"all {whole:,} samples take about {duration(60 + 8 * whole)}"
        assert line().text() == f"It takes about 4 min, 2 GB of memory; {all_of_them}."
        await person.type(samples, "14")
        await person.until(lambda: "It takes about 3 min" in line().text(), 10)
        assert len(asked) == 1 and samples.number == 14, "what the user has chosen stays"
        person.picture("estimated")
        samples.setValue(samples.minimum())
        await person.until(lambda: samples.text() == f"all {whole}", 10)
        assert samples.number is None, "how many all are is said where they are chosen"
        await person.act(person.dialog("form").reject)
        assert not any(view.listed for view in person.context.jobs.views), "no estimate is a job of the user"

    live(story)


@pytest.mark.parametrize(("seconds", "samples"), [(500.0, 100), (1000.0, 24), (9000.0, 16)])
def test_fewer_samples_are_offered_where_all_take_much_longer(seconds: float, samples: int) -> None:
    whole = Estimate(seconds=seconds, memory=1, samples=100, sample_seconds=seconds / 100)
    assert fitting_samples(whole) == samples
    assert fitting_samples(replace(whole, sample_seconds=0.0)) == 100, "what no sample decides stays"


def test_one_estimate_is_asked_at_a_time(qapp: QApplication) -> None:
    asked: list[tuple[Any, Callable[[tuple[Estimate | None]], None], object]] = []
    form = Form(CalibrateOptions())
    line, samples = ForecastLine(form, lambda *each: asked.append(each)), form.widgets["samples"]
    assert isinstance(samples, NumberField)
    for number in (20, 30, 40):
        samples.setValue(number)
        line._begin()
    assert [options.samples for options, *_ in asked] == [None], "trials of minutes do not pile up in the engine"
    asked[0][1]((None,))
    assert [options.samples for options, *_ in asked] == [None, 40], "what is in the form by then is asked next"
    asked[1][1]((Estimate(seconds=60, memory=1_000_000_000),))
    assert line.text().startswith("It takes about 60 s") and len(asked) == 2
    form.show()
    line._begin()
    samples.setValue(50)
    form.close()
    asked[2][1]((None,))
    assert len(asked) == 3, "nothing is asked for a form that is closed"


def test_a_short_run_says_how_many_samples_all_are_and_a_long_answer_is_not_cut(qapp: QApplication) -> None:
    asked: list[tuple[Any, Callable[[tuple[Estimate | str | None]], None], object]] = []
    form = Form(CalibrateOptions())
    line, samples = ForecastLine(form, lambda *each: asked.append(each)), form.widgets["samples"]
    window = QWidget()
    dialog = FormDialog(window, "Calibrate", "", form, "Calibrate")
    dialog.show()
    asked[0][1]((Estimate(seconds=0.4, memory=0, samples=64),))
    assert samples.text() == "all 64" and line.text() == "", "nobody waits for so short a run"
    line._begin()
    asked[1][1]((" ".join(["a reason of many words"] * 30),))
    for _ in range(3):
        qapp.processEvents()
    assert line.height() >= line.heightForWidth(line.width()) > 0, "its lower half was cut"
    window.close()


def line_below(person: Person) -> Callable[[], QLabel]:
    """Return the line of the open form that says how long it takes."""
    return lambda: next(
        each for each in person.dialog("form").findChildren(QLabel) if each.accessibleName() == "How long it takes"
    )


def test_a_form_whose_options_are_not_valid_estimates_nothing(
    live: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(preflight_costs, "calibration", lambda model, data, **options: asked.append(data))

    async def story(person: Person) -> None:
        await person.open(fresh(tmp_path))
        await person.act(lambda: person.context.trigger("calibrate"))
        await person.until(lambda: person.dialog("form"), 10)
        await person.settle(0.6)
        assert line_below(person)().text() == "" and not asked

    live(story)


def test_fields_of_a_form_are_aligned(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: person.context.trigger("calibrate"))
        await person.until(lambda: person.dialog("form"), 10)
        fields = person.dialog("form").findChildren(NumberField)
        assert len(fields) >= 3 and len({(field.x(), field.width()) for field in fields}) == 1
        assert min(field.width() - field.sizeHint().width() for field in fields) >= 0
        await person.act(person.dialog("form").reject)
        await person.act(lambda: person.window.reveal("plan"))
        plan = person.window.panels["plan"]
        boxes = (plan.weights, plan.inputs, plan.algorithm, plan.ranges, plan.target.box, plan.budget)
        assert len({box.mapTo(plan, QPoint()).x() for box in boxes}) == 1

    live(story)


def test_a_folder_is_chosen_without_kinds_of_files(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        for action, hidden in (("open_folder", True), ("open_file", False)):
            await person.act(lambda action=action: person.window.trigger(action))
            await person.until(lambda: person.dialog("path"), 10)
            assert person.dialog("path").findChild(QComboBox, "fileTypeCombo").isHidden() is hidden
            await person.act(person.dialog("path").reject)

    live(story)


def reason_below(person: Person) -> str:
    """Return what the open form says must be done first; empty where nothing must."""
    line = person.dialog("form").reason
    return line.text() if line.isVisible() else ""


def test_a_metric_that_needs_a_calibration_says_so_before_the_run_and_offers_it(
    live: Callable[..., None], tmp_path: Path
) -> None:
    async def story(person: Person) -> None:
        await person.open(fresh(tmp_path))
        await person.press(Qt.Key.Key_F6)
        await person.until(lambda: person.dialog("form"), 10)
        form = person.dialog("form")
        assert reason_below(person) == "The model has not been calibrated; calibrate first (F5)"
        assert not form.start_button.isEnabled()
        person.picture("not_calibrated")
        metric = form.findChild(QComboBox, "metric")
        await person.choose(metric, metric.findData("weight_error"))
        assert not reason_below(person) and form.start_button.isEnabled(), "which needs no data"
        await person.choose(metric, metric.findData("predicted_kl"))
        await person.click(form.first)
        await person.until(lambda: person.dialog("form") and person.dialog("form").windowTitle() == "Calibrate", 10)
        await person.act(person.dialog("form").reject)
        assert not any(view.listed for view in person.context.jobs.views) and person.dialog("error") is None

    live(story)


def test_steps_of_a_plan_that_learns_from_data_ask_for_the_calibration_first(
    live: Callable[..., None], tmp_path: Path
) -> None:
    session = start(open_model("demo:language-model"))
    name = session.model.layers[3].name
    learned = replace(session, plan=session.plan.assign([name], weights="int4-g32-asym", algorithm="gptq"))
    static = replace(session, plan=session.plan.assign([name], weights="int8-channel", inputs="int8-tensor"))
    first = "calibrate first, or change the plan (F5)"
    looks = f"The layer {name} is rounded by gptq, which looks at calibration data; {first}"
    within = f"The inputs of {name} are rounded within a range that calibration finds; {first}"

    async def story(person: Person) -> None:
        for each, reason in ((learned, looks), (static, within)):
            await person.open(each)
            await person.press(Qt.Key.Key_F8)
            assert person.dialog("form") is None and not person.context.jobs.views
            assert person.context.messages.entries[-1].text == reason
            person.window.reveal("deploy")
            await person.until(lambda: person.window.is_drawn)
            forms = person.window.panels["deploy"].forms
            assert not forms.export.isEnabled() and forms.export.toolTip() == reason
        await person.open(replace(session, plan=session.plan.assign([name], weights="int4-g32-asym")))
        assert person.window.bars.actions["evaluate"].isEnabled() and forms.export.isEnabled()

    live(story)


async def said_of_calibrate(person: Person) -> str:
    """Ask for a calibration; return what its form says once it no longer estimates."""
    await person.open(start(open_model("demo:language-model")))
    await person.act(lambda: person.context.trigger("calibrate"))
    await person.until(lambda: person.dialog("form"), 10)
    line = line_below(person)
    await person.until(lambda: "Estimating" not in line().text(), 20)
    return str(line().text())


def test_a_form_says_why_it_does_not_know_how_long_a_run_takes(
    live: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def costs(model: object, data: Sized, **options: object) -> Estimate:
        raise DataError("notes.txt holds 3 tokens; a sample takes 256: give more text")

    monkeypatch.setattr(preflight_costs, "calibration", costs)
    monkeypatch.setattr(step, "_estimates", {})

    async def story(person: Person) -> None:
        assert await said_of_calibrate(person) == (
            "It is not known how long it takes: notes.txt holds 3 tokens; a sample takes 256: give more text"
        )
        assert person.dialog("error") is None, "it was no work of the user's that failed"
        assert not any(entry.title == "Estimate" for entry in person.context.messages.entries), "the form has said it"
        await person.act(person.dialog("form").reject)

    live(story)


def test_a_cancelled_estimate_is_said_in_the_form_alone(
    live: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def costs(model: object, data: Sized, **options: object) -> Estimate:
        raise CancelledError("cancelled")

    monkeypatch.setattr(preflight_costs, "calibration", costs)
    monkeypatch.setattr(step, "_estimates", {})

    async def story(person: Person) -> None:
        assert await said_of_calibrate(person) == "It is not known how long it takes: Estimate: cancelled"
        assert not person.context.messages.entries
        await person.act(person.dialog("form").reject)

    live(story)


def test_estimates_end_with_the_form_that_asked(live: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of forms that were closed stood in the queue before what the user wanted next."""
    begun, free = threading.Event(), threading.Event()

    def costs(model: object, data: Sized, **options: object) -> Estimate:
        begun.set()
        free.wait(20)
        return Estimate(seconds=9, memory=1)

    monkeypatch.setattr(preflight_costs, "calibration", costs)
    monkeypatch.setattr(step, "_estimates", {})

    async def story(person: Person) -> None:
        await person.open(start(open_model("demo:language-model")))
        for _ in range(3):
            await person.act(lambda: person.context.trigger("calibrate"))
            await person.until(lambda: person.dialog("form"), 10)
            await person.until(begun.is_set, 10)
            await person.act(person.dialog("form").reject)
        assert len(person.context.jobs.views) == 3 and all(view.status.over for view in person.context.jobs.views)
        assert not any(view.status == "failed" for view in person.context.jobs.views)
        free.set()

    live(story)


def test_the_form_of_scores_says_how_many_samples_all_are(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        session = sessions.full(1)
        await person.open(session)
        await person.act(lambda: person.context.trigger("score"))
        await person.until(lambda: person.dialog("form"), 10)
        samples = person.dialog("form").findChild(NumberField, "samples")
        assert samples.text() == f"all {session.calibration.samples}" and samples.number is None
        await person.type(samples, "all")
        assert samples.number is None and not samples.problem, "the word alone is enough"
        await person.type(samples, "4")
        samples.show_count(77)
        assert samples.text() == "4" and samples.number == 4, "what is typed stays"
        await person.act(person.dialog("form").reject)

    live(story)


def test_a_model_of_pictures_is_asked_for_no_tokens(qapp: QApplication) -> None:
    pictures, text = (open_model(f"demo:{name}").summary for name in ("digits-classifier", "language-model"))
    for options in (CalibrateOptions(), EvaluateOptions()):
        fields = Form(options, model=pictures).widgets
        assert fields.keys() & {"window", "stride", "imatrix"} == set() and {"data", "column"} <= fields.keys()
        assert "window" in Form(options, model=text).widgets


def test_the_mnemonic_of_every_label_goes_to_its_field_and_all_schemes_are_chosen_at_once(
    live: Callable[..., None],
) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        for name in ("calibrate", "score", "export"):
            await person.act(person.window.actions_by_id[name].trigger)
            await person.until(lambda: person.dialog("form"), 10)
            dialog = person.dialog("form")
            for title in (each for each in dialog.findChildren(QLabel) if "&" in each.text() and each.isVisible()):
                key = title.text().partition("&")[2][0].upper()
                await person.act(partial(QTest.keyClick, dialog, key, Qt.KeyboardModifier.AltModifier))
                assert QApplication.focusWidget() is title.buddy(), (name, title.text())
            if name == "score":
                schemes, every = dialog.findChild(QListWidget), _button(dialog, "Choose None")
                await person.click(every)
                ticked = [schemes.item(place).checkState() for place in range(schemes.count())]
                assert set(ticked) == {Qt.CheckState.Unchecked} and every.text() == "Choose &All"
                await person.click(every)
                assert every.text() == "Choose &None" and schemes.item(70).checkState() is Qt.CheckState.Checked
            await person.act(dialog.reject)

    live(story)


def _button(dialog: QWidget, text: str) -> QPushButton:
    return next(each for each in dialog.findChildren(QPushButton) if each.text().replace("&", "") == text)


def test_the_options_of_an_export_are_typed_into_its_form(live: Callable[..., None], tmp_path: Path) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: person.context.trigger("export"))
        await person.until(lambda: person.dialog("form"), 10)
        dialog = person.dialog("form")
        form = dialog.findChild(Form)
        kind = form.widgets["kind"]
        await person.choose(kind, kind.findData("recipe"))
        assert "--" not in kind.currentText() and "field “Options”" in kind.currentText()
        await person.type(form.widgets["out"].findChild(QLineEdit), str(tmp_path / "recipe.json"))
        await person.type(form.widgets["settings"], " tool=auto-round ")
        assert form.value().settings == ("tool=auto-round",)
        await person.act(dialog.accept)
        await person.until(lambda: (tmp_path / "recipe.json").exists(), 20)

    live(story)


def test_the_form_of_exports_starts_with_what_the_target_loads(live: Callable[..., None], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    session = sessions.full(1)
    source = replace(session.model.source, path=str(folder))
    session = replace(session, model=replace(session.model, source=source))

    async def story(person: Person) -> None:
        await person.open(session, tmp_path / "mine.qwb")
        for target, kind, out in (("gguf", "gguf", "tiny-llama-5.73bit.gguf"), ("", "plan", "")):
            await person.act(lambda target=target: person.context.workspace.show_target(target))
            await person.act(lambda: person.context.trigger("export"))
            await person.until(lambda: person.dialog("form"), 10)
            options = person.dialog("form").findChild(Form).value()
            assert options.kind == kind and options.out == (out and str(tmp_path / out))
            await person.act(person.dialog("form").reject)

    live(story)


def test_the_ending_of_an_exports_path_follows_its_kind(qapp: QApplication) -> None:
    """GGUF's ending stood on behind the path of an ONNX file, which the export then refused."""
    form = Form(ExportOptions(kind="gguf", out="/there/model-4.5bit.gguf"))
    box, line = form.findChild(QComboBox, "kind"), form.widgets["out"].findChild(QLineEdit)
    for kind, path in (
        ("onnx", "/there/model-4.5bit.onnx"), ("mlx", "/there/model-4.5bit"), ("plan", "/there/model-4.5bit.json"),
    ):  # fmt: skip
        box.setCurrentIndex(box.findData(kind))
        assert line.text() == path and form.value().out == path
    line.setText("/there/mine.bin")
    box.setCurrentIndex(box.findData("gguf"))
    assert line.text() == "/there/mine.bin", "an ending of the user's stays"


def test_the_form_that_run_all_asks_says_that_it_runs_all(live: Callable[..., None], tmp_path: Path) -> None:
    async def story(person: Person) -> None:
        await person.open(fresh(tmp_path))
        await person.act(lambda: person.context.trigger("run_all"))
        await person.until(lambda: person.dialog("form"), 10)
        dialog = person.dialog("form")
        assert dialog.start_button.text().replace("&", "") == "Run All"
        await person.act(dialog.reject)

    live(story)


def test_no_part_of_a_dialog_lies_over_another_on_a_low_screen(qapp: QApplication) -> None:
    """Qt makes a dialog two thirds as high as the screen at most: the list of schemes lay over what counts them."""
    parent = QWidget()
    form = Form(ScoreOptions())
    lines = [label("", wrap=True) for _ in range(9)]
    for line in lines:
        form.add(line)
    dialog = FormDialog(parent, "Title", "Text", form, "Start")
    dialog.show()
    for line in lines:
        line.setText("much to explain " * 30)
    form.grown.emit()
    for _ in range(5):
        qapp.processEvents()
    assert dialog.height() > qapp.primaryScreen().availableSize().height() * 2 / 3
    parts = [each for each in dialog.findChildren(QWidget) if each.isVisible() and each.parent() in (dialog, form)]
    for one, other in combinations(parts, 2):
        assert one.parent() is not other.parent() or not one.geometry().intersects(other.geometry()), (one, other)
    assert all(line.height() >= line.heightForWidth(line.width()) for line in lines)
    dialog.close()
    parent.close()

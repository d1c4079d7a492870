"""The German catalogue holds the words of menus, commands, panels, stages and roles, and a window speaks them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QLocale, Qt, QTranslator
from PySide6.QtWidgets import QApplication, QDialog, QLabel, QTabWidget

from tests.gui import sessions
from tests.gui.conftest import Person
from tests.gui.shown_texts import texts
from tests.gui.spoken import catalogue, of_jobs, of_sources, spoken
from workbench.deployment.targets import target, target_names, what_it_is
from workbench.errors import DataError
from workbench.gui.commands.actions import ACTIONS, MENUS
from workbench.gui.context.messages import Message
from workbench.gui.panels import PANELS
from workbench.gui.panels.calibration_data.sample_list import in_full
from workbench.gui.panels.jobs import MESSAGES
from workbench.gui.shell import words
from workbench.gui.shell.foreign import elided
from workbench.gui.shell.step_keys import missing
from workbench.models.data.datasets import open_dataset
from workbench.models.data.samples import Sample
from workbench.models.layer import LayerKind
from workbench.models.sources import open_model
from workbench.numerics.formats import FAMILIES
from workbench.planning.explain import Explanation, Step
from workbench.planning.plan import Plan
from workbench.preflight import Estimate
from workbench.steps.files.first_session import start
from workbench.steps.requirements import CALIBRATED, PLAN_CALIBRATED, PREDICTED, QUANTIZES, SCORED
from workbench.steps.timing.ceilings import measure_ceilings

CATALOGUE = catalogue()
NAMES = re.compile(
    r"(?<=ist nicht bekannt: ).*|(?<=möglich sind ).*|(?<=müssen ).*(?= sein)|pip install.*|nearby: .*|'utf-8' codec.*|"
    r"(Cortex|Xeon|NVIDIA|Linux|TensorRT|torch dynamic).*|a processor|within .* per weight|\S*[\d._/-]\S*|"
    r"\b(keep|gptq|MLX|GGUF blocks|Quantization Workbench|Details|Computer)\b"
)
"""Layers, schemes, numbers, chips, plans as a search named them, what the engine says, Qt's own words."""


def _words(text: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Za-zÄÖÜäöüß]{2,}", NAMES.sub(" ", text.replace("&", "")))}


ENGLISH = frozenset(
    set().union(*(_words(text) for text, spoken_as in CATALOGUE.items() if text != spoken_as))
    - set().union(*map(_words, CATALOGUE.values()))
)
"""Words of the window that no German text has."""


def uninstall(app: QApplication) -> None:
    """Speak English again."""
    for translator in app.findChildren(QTranslator):
        app.removeTranslator(translator)
        translator.deleteLater()
    words._patterns.clear()


@pytest.fixture
def german(qapp: QApplication) -> Iterator[None]:
    """The application in German."""
    words.install(qapp, "de")
    yield
    uninstall(qapp)


def test_the_catalogue_is_complete_and_its_mnemonics_are_unique() -> None:
    missing = spoken() - {source for source, text in CATALOGUE.items() if text}
    assert not missing, f"{len(missing)} texts without a translation in de.ts: {sorted(missing)}"
    assert len(spoken()) > 750
    for menu in MENUS:
        texts = [CATALOGUE.get(action.text, action.text) for action in ACTIONS if action.menu == menu]
        keys = Counter(text[text.index("&") + 1].lower() for text in texts if "&" in text)
        assert not [key for key, count in keys.items() if count > 1], (menu, keys)


OTHER_WORDS = (
    "evaluier", "Evaluation", "Engine", "Stapel", "Anleitung", "Tour ", "Metrik", "Maschine", "Stichprobe", "Feld Plan",
    "fehlgeschlagen", "Gleitkomma-Modell", "Wichtigkeitsmatrix", "Schlüssel und Werte", "höher ist", "niedriger ist",
    "gegenwärtig", " pro ", "{n} Probe", "Token-ID", "Rechnerverbund", "Etikett", "Datenträger", "so dass",
    "State Dict",
)  # fmt: skip
"""What other words the same things have had: evaluations, the engine, batches, the guide, metrics, samples, panels."""


def test_one_thing_has_one_german_word() -> None:
    translations = {source: each for source, each in CATALOGUE.items() if any(word in each for word in OTHER_WORDS)}
    assert translations == {}
    assert not [each for each in CATALOGUE.values() if re.search(r"(?<!des )\bTokens\b", each)], "the plural is Token"


def test_the_catalogue_has_the_pattern_of_every_text_that_is_put_together() -> None:
    known = {words.PLACE.sub("{}", source) for source in CATALOGUE}
    made = {text for text in of_sources()[1] if sum(map(str.isalpha, text)) > 2}
    assert len(made) > 30 and not made - known, f"without a pattern in de.ts: {sorted(made - known)}"


def test_the_catalogue_has_every_family_of_schemes() -> None:
    """They are the menus of a layer's schemes, and headings of the heatmap."""
    assert len(FAMILIES) > 5 and not {family.title for family in FAMILIES} - set(CATALOGUE)


def test_the_catalogue_has_what_jobs_are_called_and_what_they_say() -> None:
    known, made = {words.PLACE.sub("{}", source) for source in CATALOGUE}, of_jobs()
    assert len(made) > 60 and not made - known, f"without a pattern in de.ts: {sorted(made - known)}"


def test_no_label_means_nothing_to_who_reads_it_first() -> None:
    vague = re.compile("Keep / Take|keep in FP|It counts|shall go|Judge the Data|^(Decides|Place|Take|Other)$")
    assert not [text for text in spoken() if vague.search(text.replace("&", ""))]


def test_a_pattern_keeps_names_and_translates_words(german: None) -> None:
    assert words.tr("runs the whole plan") == "führt den ganzen Plan aus"
    assert words.tr("12 layers refused") == "12 Schichten abgelehnt"
    assert words.tr("1 layer refused") == "1 Schicht abgelehnt"
    assert words.tr("tied to layers: one tensor, stored once") == "gekoppelt an layers: ein Tensor, einmal gespeichert"
    both = "model.layers.0.weights and 2 more: they run as one matrix and must share one scheme\nruns the whole plan"
    assert words.tr(both).splitlines() == [
        "model.layers.0.weights und 2 weitere: sie laufen als eine Matrix und müssen ein Schema teilen",
        "führt den ganzen Plan aus",
    ]
    for name in ("model.embed_tokens", "layers {} of {w}", "mine; yours", "a\nb", "plan (2)"):
        assert words.tr(name) == name


UNDOABLE = {
    "Lock 2 layers": "2 Schichten sperren", "Unlock head": "head entsperren",
    "Fewer bits for 1 layer": "Weniger Bits für 1 Schicht", "More bits for 12 layers": "Mehr Bits für 12 Schichten",
    "Set 3 layers to int8-channel": "3 Schichten auf int8-channel setzen",
    "Set head to inputs int8-token": "Eingaben von head auf int8-token setzen",
    "Set 2 layers to floating-point inputs": "Eingaben von 2 Schichten auf Gleitkomma setzen",
    "Set 2 layers to keep FP": "2 Schichten in Gleitkomma lassen",
    "Set the input range of head (manual)": "Bereich der Eingaben von head setzen (von Hand)",
    "Repair 4 layers for ONNX Runtime": "4 Schichten für ONNX Runtime reparieren",
    "Paint the inputs of 4 layers": "Malen: Eingaben von 4 Schichten",
    "Choose the target ONNX Runtime": "Ziel ONNX Runtime wählen",
    "Search within 4.5 bits per weight": "Suche innerhalb von 4.5 Bits je Gewicht",
    "Edit the plan as text": "Plan als Text bearbeiten",
    "head: bf16 to keep saves 5.3e-11 nats for 131 kB": "head: von bf16 auf keep spart 5.3e-11 nats für 131 kB",
    "A search leaves out 1 layer, 26 % of the weights: head (embedding) stays int8-channel":
        "Eine Suche lässt 1 Schicht aus, 26 % der Gewichte: head (Einbettung) bleibt int8-channel",
    "Sum of the losses of all layers; lower is better. It includes weights. The rounded inputs of 6 layers have no "
    "scores yet; score them to include them.":
        "Summe der Verluste aller Schichten; kleiner ist besser. Sie enthält Gewichte. Die gerundeten Eingaben von "
        "6 Schichten haben noch keine Werte; sie bewerten, um sie einzubeziehen.",
    "134 plans; 1 layer locked; for ONNX Runtime": "134 Pläne; 1 Schicht gesperrt; für ONNX Runtime",
}  # fmt: skip


@pytest.mark.parametrize("text", UNDOABLE)
def test_what_can_be_undone_and_what_comes_next_is_said_in_german(german: None, text: str) -> None:
    assert words.tr(text) == UNDOABLE[text]


@pytest.mark.parametrize("smaller", [None, Step(scheme="int3", nbytes=-9.0, loss=-0.02)])
def test_why_a_layer_has_its_scheme_is_said_in_german(german: None, smaller: Step | None) -> None:
    bigger = Step(scheme="int5", nbytes=1200.0, loss=0.001)
    reason = Explanation(layer="a.b", layers=("a.b",), scheme="int4", saved=9000.0, added=0.01, price=2e-6,
                    bigger=bigger, smaller=smaller, unit="nats")  # fmt: skip
    for more in (
        "The next 118 kB take c.d from q3_k to q4_k and avoid 0.00325 nats",
        "No larger scheme avoids any loss",
    ):
        said = words.tr(f"a.b: {reason.sentence}. {more}.")
        assert "nähme" in said and not _words(said) & ENGLISH


def test_sentences_behind_a_title_are_found_as_one_entry(german: None) -> None:
    both = {source: text for source, text in CATALOGUE.items() if ". " in source and not words.PLACE.search(source)}
    assert len(both) > 20
    for source, text in both.items():
        assert words.tr(f"Undone: {source}") == f"Rückgängig gemacht: {text}"


def test_keys_are_called_as_in_the_menus(german: None) -> None:
    said = words.tr("this plan was exported\nClick to see it; Ctrl+Shift+E does it again")
    assert said.endswith("Strg+Umschalt+E macht es noch einmal")


def test_what_a_step_lacks_is_said_in_german(german: None) -> None:
    session = start(open_model("demo:language-model"))
    name = session.model.layers[3].name
    plans = [session.plan.assign([name], weights="int8-channel", **chosen)
             for chosen in ({"algorithm": "gptq"}, {"inputs": "int8-tensor"}, {})]  # fmt: skip
    plans.append(replace(plans[-1], transforms=("awq",)))
    lacking = [missing(replace(session, plan=plan), [each])[0] for plan in plans
               for each in (CALIBRATED, SCORED, PREDICTED, QUANTIZES, PLAN_CALIBRATED)]  # fmt: skip
    lacking.append(missing(session, [QUANTIZES])[0])
    assert len({*lacking}) == 8 and not [text for text in lacking if text and words.tr(text) == text]


def test_why_data_cannot_be_opened_is_said_in_german(german: None, tmp_path: Path) -> None:
    """The form of a step says so below its estimate."""
    model = open_model("demo:language-model")
    for name, content in (("empty.txt", ""), ("short.txt", "two words"), ("a.xyz", "x"), ("t.csv", "a,b\nc,d\n")):
        (tmp_path / name).write_text(content)
    (tmp_path / "p.png").write_bytes(b"x")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 " * 900)
    reasons = []
    for name in (
        "gone.txt",
        "empty.txt",
        "short.txt",
        "a.xyz",
        "t.csv?column=x",
        "p.png",
        "latin.txt",
        "short.txt?a=1",
    ):
        with pytest.raises(DataError) as raised:
            open_dataset(tmp_path / name, model, split="calibration")
        reasons.append(str(raised.value))
    spoken_here = {reason: words.tr(reason).replace(str(tmp_path), "") for reason in reasons}
    assert not {text: reason for reason, text in spoken_here.items() if reason == text or _words(text) & ENGLISH}


def test_what_a_runtime_quantizes_is_said_in_german(german: None) -> None:
    linear = start(open_model("demo:language-model")).model.layers[3]
    others = [replace(linear, kind=kind, parameter="own") for kind in LayerKind]
    for layer in (replace(linear, axes=(1, 0)), *others):
        for sentence in ("torchao quantizes linear modules", "MLX quantizes embeddings and linear modules",
                         "GPTQ checkpoints quantize linear modules"):  # fmt: skip
            said = words.tr(f"{sentence} stored outputs x inputs, not {what_it_is(layer)}")
            assert "Ausgänge x Eingänge" in said and not _words(said) & ENGLISH, said
    reason = target("torchao").legal(others[0], "int8-channel")
    assert reason and "lineare Module" in words.tr(f"{linear.name}: {reason}")


def test_why_a_target_refuses_a_scheme_is_said_in_german(german: None) -> None:
    layers = [layer for demo in ("language-model", "digits-classifier") for layer in
              open_model(f"demo:{demo}").summary.layers[:2]]  # fmt: skip
    layers += [replace(layers[1], kind=kind) for kind in LayerKind]
    weights = ("keep", "int2-g32", "int4-g48-asym", "int8-tensor-asym", "fp8-e4m3-channel", "nf4-b64", "q4_k", "mxfp4")
    inputs = (None, "int8-token", "int8-tensor-asym", "nvfp4")
    reasons = {reason for name in target_names() for layer in layers for scheme in weights for given in inputs
               if (reason := target(name).legal(layer, scheme, given))}  # fmt: skip
    english = {reason: said for reason in reasons if _words(said := words.tr(reason)) & ENGLISH}
    assert len(reasons) > 150 and not english, english
    assert not [reason for reason in reasons if re.search(r"[?*[]", reason)], "no pattern instead of a name"
    assert words.tr("weights must be int2 or int4, not q4_k") == "Gewichte müssen int2 oder int4 sein, nicht q4_k"


def test_what_ended_and_what_it_took_is_said_in_german(german: None) -> None:
    ended = Message(level="warning", title="Done: Evaluate “p” on d", text="it took 2 min", when=0.0)
    assert MESSAGES[1].shown(ended) == "⚠ Fertig: “p” mit d auswerten: es dauerte 2 min"
    spent = Estimate(seconds=60, memory=10**9, took=90.0, peak=10**9, compiling=9.0)
    for outcome in (spent.outcome, replace(spent, compiling=0.0).outcome):
        assert words.tr(f"Evaluate: {outcome}").startswith("Auswerten: dauerte 2 min und brauchte 1 GB")


def test_what_results_say_is_said_in_german(german: None) -> None:
    sample = Sample(index=1, text="a b", tokens=256, label=3)
    audit = "the layers' losses add up: together 0.01 nats (0.009 to 0.011), one by one 0.01, predicted 0.01"
    said = (
        f"p: {audit} together and 0.02 one by one (8 samples)", "p: the layers' losses do not add up (8 samples)",
        "the 92 most changed, 50 flips among them", "× 0.930 (fitted)",
        measure_ceilings().how, "demo: 8 samples, seed 0, sha256:84b0", "sample 79, position 121",
        "0.00212 nats, 0.00201 to 0.00225 (Predicted KL)", "sample 7, row 2, column 3", "weights as they are",
        "flipped", "the same against int4",
        "1.09× as fast as floating point, batch 1", "loss 9e-6 nats as int8-tensor, symmetric: ±4.61",
        "GPTQ checkpoints quantize linear modules stored outputs x inputs, not a convolution; keep it",
        "a.b · q4_k: 0.1 nats (predicted, corrected), 470 kB · this cell: −1.30 MB · ⚠ torchao refuses it: 2 bits: "
        "weights must be int2, not q4_k", "9 cells, 7 of them measured, the others predicted and corrected",
        "The plan has changed since", "no such layer", "Matches 3 layers: a, b and 1 more", "&Wait, Then Close",
        "Choose two different evaluations.", "Nothing matches", "x (12 layers)", "q4_k for 3 selected layers",
        "kl: +0.1 nats (95 % between -0.1 and +0.2); this difference is not resolved with 30 samples; about 90 would "
        "be needed", "s.qwb cannot be read: it is a folder, and a file is expected",
        "the session could not be written to /a/b: the disk is full, or the file larger than allowed; what was there "
        "before is untouched. Make room or choose another place, and try again",
    )  # fmt: skip
    assert in_full(sample) == "Beispiel 2, Label 3, 256 Token\na b"
    assert not {text: words.tr(text) for text in said if words.tr(text) == text or _words(words.tr(text)) & ENGLISH}


def test_what_labels_are_is_said_in_german(german: None, tmp_path: Path) -> None:
    model = open_model("demo:digits-classifier")
    for labels in (np.eye(8, 10), np.full((8, 10), 0.1)):
        np.savez(tmp_path / "d.npz", x=np.arange(512, dtype=np.float32).reshape(8, 8, 8), labels=np.float32(labels))
        (note,) = open_dataset(tmp_path / "d.npz", model, split="calibration").notes
        assert "Labels sind Zeilen" in words.tr(note) and not _words(words.tr(note)) & ENGLISH


def test_english_has_no_patterns(qapp: QApplication) -> None:
    words.install(qapp, "de")
    uninstall(qapp)
    assert words.tr("12 layers refused") == "12 layers refused"


def test_translations_keep_what_is_filled_in_and_the_keys() -> None:
    for source, text in CATALOGUE.items():
        assert sorted(re.findall(r"\{[^}]*\}", source)) == sorted(re.findall(r"\{[^}]*\}", text)), source
        assert ("&" in source) == ("&" in text), (source, text)
        assert (source[-1:] == "…") == (text[-1:] == "…"), (source, text)


def test_the_compiled_catalogue_is_that_of_the_source(german: None) -> None:
    for source, text in CATALOGUE.items():
        assert words.tr(source) == words.FLAG.sub(words._field, text), "compile it: python -m workbench.gui.shell.words"


def test_a_german_window(german: None, live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        titles = [menu.title().replace("&", "") for menu in person.window.menus.values()]
        assert titles == ["Datei", "Bearbeiten", "Ausführen", "Ansicht", "Hilfe"]
        await person.open(sessions.full(1))
        assert person.window.docks["layers"].windowTitle() == "Schichten"
        assert person.window.stepper.buttons[1].text() == "Kalibrieren"
        assert person.window.actions_by_id["save"].text() == "&Speichern"
        assert person.window.start_page.role_buttons.button(3).text() == "Erkunden"
        board = person.window.panels["plan"].dashboard
        assert "," not in board.tiles[1].value.text(), "numbers stay as they are"
        person.picture("german")

    live(story)


def test_no_panel_of_a_german_window_has_an_english_sentence(german: None, live: Callable[..., None]) -> None:
    full, shown, tabs = sessions.full(1), dict[str, str](), set[str]()
    unscored = replace(full, plan=Plan(), plans={}, sensitivities={}, evaluations=(), timings=(), results={})

    async def story(person: Person) -> None:
        for session in (sessions.opened(), unscored):
            await person.open(session)
            await person.layer("model.layers.0.self_attn.k_proj")
            for spec in PANELS:
                await person.act(lambda name=spec.id: person.window.reveal(name))
                shown.update({text: f"{spec.id}: {where}" for where, text in texts(person.window.panels[spec.id])})
        await person.open(full)
        await person.layer("model.layers.0.self_attn.k_proj")
        for spec in PANELS:
            await person.act(lambda name=spec.id: person.window.reveal(name))
            for pages in person.window.panels[spec.id].findChildren(QTabWidget):
                for place in range(pages.count()):
                    tabs.add(pages.tabText(place))
                    await person.act(lambda pages=pages, place=place: pages.setCurrentIndex(place))
            shown.update({text: f"{spec.id}: {where}" for where, text in texts(person.window.panels[spec.id])})
        menus = (*person.window.menus.values(), person.window.recent_menu)
        for part in (person.window.status, person.window.stepper, person.window.start_page, *menus):
            shown.update({text: f"{type(part).__name__}: {where}" for where, text in texts(part)})
        legend = person.window.panels["pareto"].plot.item.legend
        tabs.update(label.text for _, label in legend.items)
        assert len(shown) > 700 and len(tabs) > 15 and tabs <= {*CATALOGUE.values()}
        lines = {line: where for text, where in shown.items() for line in text.splitlines()}
        english = {line: where for line, where in lines.items() if _words(line) & ENGLISH}
        assert not english, "\n".join(f"{where}: {line}" for line, where in english.items())

    live(story, size=(1920, 1080))


def _dialogs() -> list[QDialog]:
    return [each for each in QApplication.topLevelWidgets() if isinstance(each, QDialog) and each.isVisible()]


def test_no_dialog_of_a_german_window_is_english(german: None, live: Callable[..., None]) -> None:
    asking = [action.id for action in ACTIONS if action.text.endswith("…")] + ["guide", "about", "tour"]
    untranslated = {source for source, text in CATALOGUE.items() if text != source}

    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        shown = dict[str, str]()
        for name in asking:
            if not person.window.actions_by_id[name].isEnabled() or name in ("set_scheme", "columns"):  # lists
                continue
            await person.act(person.window.actions_by_id[name].trigger)
            await person.until(_dialogs, 10)
            for dialog in _dialogs():
                shown |= {text: f"{name}: {where}" for where, text in texts(dialog)}
                shown[dialog.windowTitle()] = f"{name}: title"
                await person.act(dialog.reject)
        assert len(shown) > 200
        english = {text: where for text, where in shown.items()
                   if text in untranslated or _words(text) & ENGLISH}  # fmt: skip
        assert not english, "\n".join(f"{where}: {text}" for text, where in english.items())

    live(story, size=(1920, 1080))


async def _layers_from_the_right(person: Person) -> None:
    """Names of layers end at the right border of their column, each level further in, behind the mark of a block."""
    view, ends = person.window.panels["layers"].view, []
    for name in ("model.embed_tokens", "model.layers.0.mlp.up_proj"):
        area = view.visualRect(view.model().index_of(name, 0))
        area.setLeft(0)
        picture = view.viewport().grab(area).toImage()
        ground = picture.pixelColor(picture.width() - 1, 2).lightness()
        rows, columns = range(2, picture.height() - 2), range(picture.width() - 2)
        ends.append(max(
            x for x in columns if any(abs(picture.pixelColor(x, y).lightness() - ground) > 90 for y in rows)
        ))  # fmt: skip
    width = view.header().sectionViewportPosition(0) + view.header().sectionSize(0)
    assert [round((width - end) / view.indentation()) for end in ends] == [1, 2], (width, ends)


def test_a_window_from_right_to_left(qapp: QApplication, live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        first, *_, last = person.window.stepper.buttons
        assert first.x() > last.x()
        arrows = {each.text() for each in person.window.stepper.findChildren(QLabel)}
        assert arrows == {"‹"}, "from one stage to the next is to the left"
        await person.layer("model.layers.0.mlp.up_proj")
        heat = person.window.panels["sensitivity"].heatmap
        await person.click(heat.viewport(), heat.cell_rect(3, 4).center())
        assert heat.cells.chosen[3] == 4, "a click hits the cell that is painted there"
        person.picture("right-to-left")
        await _layers_from_the_right(person)
        front, header = (person.window.panels[name] for name in ("pareto", "accuracy"))
        await person.act(lambda: person.window.reveal("pareto"))
        axis, plane = (each.geometry() for each in (front.plot.item.getAxis("left"), front.plot.item.vb))
        assert axis.right() <= plane.left() + 1, "numbers of an axis grow to the right in every language"
        heading = header.table.model().headerData(4, Qt.Orientation.Horizontal)
        assert heading == "\u206895 % low\u2069", "a heading that begins with a number is not turned round"
        await person.act(lambda: person.window.reveal("deploy"))
        assert person.window.panels["deploy"].forms.chosen is not None, "a row is selected"
        refine, box = person.window.panels["sensitivity"].refine, header.pair.first
        listed = box.itemDelegate().displayText("5.5 bits (text)", QLocale())
        for text in (refine.text(), listed, person.window.actions_by_id["open_file"].text()):
            assert text[0] == "\u2068" and text[-1] == "\u2069", "its dots and numbers stay where they are"
        assert person.window.actions_by_id["cancel"].text().endswith("\t\u2068Ctrl+.\u2069"), "not .+Ctrl"
        assert not any("\u2068" in title for title, _ in person.window.bars.titled()), "the palette isolates its own"
        await person.act(lambda: person.window.reveal("compare"))
        compare = person.window.panels["compare"].next_step
        assert compare.text().count("\u2068") == 1 and "\u2068" not in compare.accessibleName()
        assert elided(box.fontMetrics(), "model.layers.0.mlp", 60)[-2:] == "…\u2069"
        assert not person.window.panels["plan"].text.edit.isRightToLeft(), "JSON is written from the left"

    qapp.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    try:
        live(story)
    finally:
        qapp.setLayoutDirection(Qt.LayoutDirection.LeftToRight)

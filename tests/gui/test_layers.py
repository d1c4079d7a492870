"""The tree of layers: filters, columns that a person chooses, a table for the clipboard, layers that are alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QMenu

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.context import edits
from workbench.gui.shell import settings
from workbench.gui.tables.copying import Index, selected_rows
from workbench.gui.tables.layer_columns import BITS, CACHE, COLUMNS, LOSS, MEASURED, SCHEME, SIZE, TIME
from workbench.gui.tables.layer_filter import Filter, FilterError, parse
from workbench.gui.tables.layers import LayersModel
from workbench.insight import quantities
from workbench.insight.decisions import decisions
from workbench.insight.layer_facts import PlanFacts
from workbench.planning.totals import layer_bits

UP = "model.layers.1.mlp.up_proj"
EDITABLE = Qt.ItemFlag.ItemIsEditable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Filter()),
        ("  MLP up ", Filter(words=("mlp", "up"))),
        ("kind:linear scheme:int4", Filter(kinds=("linear",), schemes=("int4",))),
        ("attn re:layers\\.[01]\\.", Filter(words=("attn",), expression="layers\\.[01]\\.")),
        ("worst 10 mlp", Filter(words=("mlp",), worst=10)),
        ("worst 0", Filter(worst=0)),
        (f"worst {'9' * 5000}", Filter(words=("worst", "9" * 5000))),
    ],
)
def test_what_a_filter_means(text: str, expected: Filter) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(("text", "count"), [("worst 0", 0), ("worst 2", 2), ("worst 999999999999", 7)])
def test_as_many_of_the_worst_layers_as_the_filter_says(text: str, count: int) -> None:
    layers = sessions.summary(1).layers[:7]
    assert len(layers) == 7 and len(parse(text).of(layers, lambda layer: "", lambda layer: 1.0)) == count


@pytest.mark.parametrize("expression", ["layers[", "(" * 5000, "(?=a)", "(a)\\1", "x" * 10_001])
def test_a_broken_expression_is_refused(expression: str) -> None:
    with pytest.raises(FilterError, match="regular expression"):
        parse(f"re:{expression}")


@pytest.mark.parametrize(
    ("expression", "count"),
    [(r"(\w+\.?)+X$", 0), ("a{99999999999999999999}", 0), ("Q_PROJ", 1), (r"[[:digit:]]\.MLP", 3)],
)
def test_an_expression_takes_no_long_time_and_either_case(expression: str, count: int) -> None:
    layers = sessions.summary(1).layers
    hostile = replace(layers[0], name="a" * 5000)
    found = parse(f"re:{expression}").of([*layers, hostile], lambda layer: "", lambda layer: 0.0)
    assert len(found) == count and hostile not in found


def test_the_filter_narrows_the_tree(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(3))
        panel = person.window.panels["layers"]
        await person.type(panel.filter, "re:layers\\.[12]\\..*k_proj")
        assert tuple(panel.model.rows.layers) == ("model.layers.1.self_attn.k_proj", "model.layers.2.self_attn.k_proj")
        await person.type(panel.filter, "kind:embedding")
        assert tuple(panel.model.rows.layers) == ("model.embed_tokens",)
        await person.type(panel.filter, "worst 4")
        losses = [panel.model.facts(person.state.session.model.by_name[name]).loss for name in panel.model.rows.layers]
        every = [panel.model.facts(layer).loss for layer in person.state.session.model.layers]
        assert losses == sorted(every, reverse=True)[:4]
        person.picture("worst")
        await person.type(panel.filter, "re:[")
        assert "regular expression" in panel._count.text() and len(panel.model.rows.layers) == 23  # "re:" was good

    live(story)


def test_columns_are_chosen_and_remembered(live: Callable[..., None]) -> None:
    session = sessions.full(2)
    predicted = session.sensitivities["predicted_kl"]
    measured = replace(predicted, metric="measured_kl", score=np.full_like(predicted.score, 0.125))
    session = replace(session, sensitivities={**session.sensitivities, "measured_kl": measured})

    async def story(person: Person) -> None:
        await person.open(session)
        view = person.window.panels["layers"].view
        assert view.isColumnHidden(MEASURED) and view.isColumnHidden(TIME)
        await person.press(Qt.Key.Key_C, control=True, shift=True)
        menu = next(item for item in person.window.findChildren(QMenu) if item.objectName() == "columns")
        action = next(item for item in menu.actions() if item.text() == "Measured")
        await person.click(menu, menu.actionGeometry(action).center())
        assert not view.isColumnHidden(MEASURED)
        hidden = settings.hidden_columns()
        assert hidden is not None and "Measured" not in hidden and "Time" in hidden
        index = person.window.panels["layers"].model.index_of(UP, MEASURED)
        assert index.data() == "1.25e-1"

    live(story)


def test_rows_are_copied_and_alike_layers_selected(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(3))
        panel = person.window.panels["layers"]
        await person.act(lambda: person.context.workspace.select([UP]))
        await person.press(Qt.Key.Key_M, control=True, shift=True)
        assert set(person.state.selection) == {f"model.layers.{block}.mlp.up_proj" for block in range(3)}
        await person.press(Qt.Key.Key_C, panel.view, control=True)
        lines = QApplication.clipboard().text().split("\n")
        assert lines[0].split("\t")[:3] == ["Layer", "Scheme", "Loss (nats)"] and len(lines) == 4
        assert {line.split("\t")[0] for line in lines[1:]} == set(person.state.selection)
        shown = person.state.assignments[UP].weights
        cells = next(line for line in lines if line.startswith(UP)).split("\t")
        assert cells[1] == shown and float(cells[2]) == person.state.session.table("predicted_kl").of(UP, shown)

    live(story)


def test_the_cache_is_edited_in_a_column_of_its_own(live: Callable[..., None]) -> None:
    block = "model.layers.1.self_attn"

    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        view, model = person.window.panels["layers"].view, person.window.panels["layers"].model
        assert view.isColumnHidden(CACHE)
        await person.press(Qt.Key.Key_C, control=True, shift=True)
        menu = next(item for item in person.window.findChildren(QMenu) if item.objectName() == "columns")
        action = next(item for item in menu.actions() if item.text() == "Cache")
        await person.click(menu, menu.actionGeometry(action).center())
        assert model.index_of(UP, CACHE).data() == "" and not model.flags(model.index_of(UP, CACHE)) & EDITABLE
        await person.layer(f"{block}.q_proj")
        await person.layer(f"{block}.v_proj", CACHE, Qt.KeyboardModifier.ShiftModifier)
        await person.press(Qt.Key.Key_F2, view)
        editor = view.findChild(QComboBox)
        assert "int8-tensor" not in [editor.itemText(row) for row in range(editor.count())]
        await person.pick(editor, "int8-token")
        held = {part: person.state.assignments[f"{block}.{part}"].cache for part in ("q_proj", "k_proj", "v_proj")}
        assert held == {"q_proj": None, "k_proj": "int8-token", "v_proj": "int8-token"}
        assert person.state.undo_name == "Set 2 layers to cache int8-token"
        person.picture("cache")

    live(story)


def test_selecting_thousands_of_layers_asks_for_few_cells(
    live: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    session, calls = sessions.opened(sessions.summary(150)), [0]
    parent = LayersModel.parent

    def counted(model: LayersModel, *index: Index) -> QModelIndex:
        calls[0] += 1
        return parent(model, *index)

    monkeypatch.setattr(LayersModel, "parent", counted)
    names = tuple(layer.name for layer in session.model.layers)

    async def story(person: Person) -> None:
        await person.open(session)
        panel = person.window.panels["layers"]
        calls[0] = 0
        await person.act(lambda: person.context.workspace.select(names))
        assert set(panel.selected()) == set(names) and len(names) > 1000
        assert calls[0] < 100 * len(names), "Qt compares every range with every other"
        calls[0] = 0
        await person.act(lambda: person.context.workspace.select(names[1::3]))
        assert set(panel.selected()) == set(names[1::3]) and calls[0] < 15 * len(names), "what is selected is forgotten"
        some = (*names[300:900:7], names[0], *names[20:40])
        await person.act(lambda: person.context.workspace.select(some))
        assert set(panel.selected()) == set(some)
        assert {index.row() for index in selected_rows(panel.view)} == {
            panel.model.index_of(name).row() for name in some
        }
        await person.type(panel.filter, "q_proj")
        assert set(panel.selected()) == {name for name in some if "q_proj" in name}

    live(story)


def test_a_block_shows_the_sums_and_the_worst_of_its_layers(live: Callable[..., None]) -> None:
    session = sessions.full(2)
    table = session.sensitivities["predicted_kl"]
    block = [layer for layer in session.model.layers if layer.block == "model.layers.1"]

    async def story(person: Person) -> None:
        await person.open(session)
        model = person.window.panels["layers"].model

        def shown(column: int) -> str:
            places = (model.index(place, column) for place in range(model.rowCount()))
            return next(index.data() for index in places if model.row_at(index).label == "model.layers.1")

        schemes = {layer.name: person.state.assignments[layer.name].weights for layer in block}
        losses = {name: table.of(name, scheme) if scheme != "keep" else 0.0 for name, scheme in schemes.items()}
        bits = sum(layer_bits(layer, schemes[layer.name]) for layer in block)
        assert shown(SIZE) == quantities.data_size(bits / 8) and shown(LOSS) == quantities.loss(sum(losses.values()))
        assert shown(BITS) == f"{bits / sum(layer.parameters for layer in block):.2f}"
        assert shown(SCHEME) == f"{len(set(schemes.values()))} schemes"
        index = model.index_of(block[0].name).parent()
        assert max(losses, key=losses.get) in index.data(Qt.ItemDataRole.ToolTipRole)
        told = model.index_of(block[0].name).data(Qt.ItemDataRole.ToolTipRole)
        assert f"{quantities.data_size(block[0].nbytes)} unquantized" in told, "a file can hold it in fewer bytes"
        await person.layer(block[0].name)
        await person.press(Qt.Key.Key_0, person.window, control=True)
        assert shown(SIZE) != quantities.data_size(bits / 8), "an edit changes the sums"

    live(story)


def test_the_next_decision_goes_through_the_layers_by_what_more_bits_save(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(3))
        panel = person.window.panels["layers"]
        await person.type(panel.filter, "kind:embedding")
        facts = PlanFacts(person.state.session, person.state.assignments, person.state.metric)
        ordered = decisions(facts)
        assert len(ordered) > 2
        await person.act(lambda: person.context.workspace.select([ordered[1].layer]))  # where the user was before
        for expected in (*ordered, ordered[0]):
            await person.act(lambda: person.window.trigger("next_decision"))
            assert person.state.selection == (expected.layer,)
            assert person.window.context.messages.entries[-1].title == expected.sentence("nats")
        assert panel.filter.text() == ""

    live(story)


@pytest.mark.parametrize("size", [(1280, 720), (1440, 900)])
def test_no_number_of_the_tree_is_cut_at_the_border(live: Callable[..., None], size: tuple[int, int]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(3))
        view = person.window.panels["layers"].view
        header, width = view.header(), view.viewport().width()
        metrics = view.fontMetrics()
        for unit in ("nats", "½ d²"):
            assert metrics.horizontalAdvance(COLUMNS[LOSS].heading(unit)) + 10 <= header.sectionSize(LOSS)
        assert header.sectionViewportPosition(LOSS) + header.sectionSize(LOSS) <= width
        shown = [column for column in range(header.count()) if not header.isSectionHidden(column)]
        starts = [header.sectionViewportPosition(column) for column in shown]
        ends = [start + header.sectionSize(column) for start, column in zip(starts, shown, strict=True)]
        assert not [end for start, end in zip(starts, ends, strict=True) if start < width - 4 and end > width]

    live(story, size=size)


def test_the_menu_of_a_right_click_is_about_the_layer_under_the_mouse(live: Callable[..., None]) -> None:
    """X11 sends press and menu in one turn: the panel had not drawn the selection, and the menu was the old layer's."""

    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        first, second = (layer.name for layer in person.state.session.model.layers[1:3])
        await person.layer(first)
        panel = person.window.panels["layers"]
        view, before = panel.view, person.state.assignments[first]
        spot = view.visualRect(panel.model.index_of(second)).center()

        def right_click() -> None:
            QTest.mousePress(view.viewport(), Qt.MouseButton.RightButton, pos=spot)
            event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, spot, view.viewport().mapToGlobal(spot))
            QApplication.sendEvent(view.viewport(), event)

        await person.act(right_click)
        (menu,) = (each for each in panel.findChildren(QMenu) if each.isVisible())
        assert menu.actions()[0].text() == second
        next(action for action in menu.actions() if action.text().startswith("&Lock")).trigger()
        await person.act(menu.close)
        await person.act(lambda: QTest.mouseRelease(view.viewport(), Qt.MouseButton.RightButton, pos=spot))
        assert person.state.session.locked == {second} and person.state.assignments[first] is before

    live(story)


@pytest.mark.parametrize("way", ["menu", "keys"])
def test_all_layers_are_selected_without_joining_each_block_with_all_before(
    live: Callable[..., None], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    blocks, asked = 300, list[int]()

    async def story(person: Person) -> None:
        await person.open(sessions.opened(sessions.summary(blocks), with_weights=False))
        view = person.window.panels["layers"].view
        await person.act(view.expandAll)
        parent = LayersModel.parent
        monkeypatch.setattr(LayersModel, "parent", lambda model, *index: asked.append(1) or parent(model, *index))
        if way == "keys":
            await person.act(lambda: QTest.keyClick(view, Qt.Key.Key_Home))
            await person.act(lambda: QTest.keyClick(view, Qt.Key.Key_End, Qt.KeyboardModifier.ShiftModifier))
        else:
            await person.act(lambda: person.window.trigger("select_all"))
        assert len(person.state.selection) == len(person.state.session.model.layers) == 7 * blocks + 2
        assert len(view.chosen.numbers) >= 7 * blocks + 2 and len(asked) < 20 * 8 * blocks, "300 x 300 more"
        leaf = person.window.panels["layers"].model.index_of("model.layers.0.mlp.up_proj")
        assert view.isExpanded(leaf.parent()) and not view.isExpanded(leaf), "Qt would keep a note of every layer"
        asked.clear()
        await person.act(lambda: person.context.workspace.select(["lm_head"]))
        assert len(asked) < 3 * blocks, "Qt asked where each of the ranges is that were selected"

    live(story)


def test_what_is_locked_already_is_no_step_to_undo(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        workspace, names = person.context.workspace, ["model.layers.0.mlp.up_proj", "model.layers.0.mlp.gate_proj"]
        await person.act(lambda: edits.lock(workspace, names[:1], False))
        assert not person.state.undo_name
        await person.act(lambda: edits.lock(workspace, names, True))
        before = person.state.session
        await person.act(lambda: edits.lock(workspace, names[1:], True))
        assert person.state.session is before
        await person.act(workspace.undo)
        assert not person.state.session.locked and not person.state.undo_name

    live(story)

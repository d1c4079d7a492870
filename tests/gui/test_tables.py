"""Sums and pictures that are kept up with edits are what they would be from scratch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.tables.fields import METRIC_UNIT, Field, Number
from workbench.gui.tables.layer_columns import NAME, SCHEME
from workbench.gui.tables.layer_rows import tree
from workbench.gui.tables.records import RecordsView
from workbench.gui.tables.row_painter import bar_heights
from workbench.insight import quantities, schemes
from workbench.insight.arrangement import by_family
from workbench.insight.dashboard import Dashboard
from workbench.insight.fronts import uniform_plans
from workbench.insight.legality import refusals
from workbench.insight.plan_parts import Parts
from workbench.models.summary import quantizable
from workbench.planning.latest import changed_layers
from workbench.planning.plan import KEEP, Plan
from workbench.planning.totals import layer_bits
from workbench.session.workspace import Workspace

UP, SEEN = "model.layers.1.mlp.up_proj", "model.layers.0.self_attn.q_proj"


def test_the_parts_after_edits_are_those_of_a_fresh_sum() -> None:
    workspace, sums = Workspace(), Parts()
    workspace.open(sessions.full(3), None)
    sums.of(workspace.state)
    names = [layer.name for layer in workspace.state.session.model.layers]  # type: ignore[union-attr]
    for step, scheme in enumerate(("int4-g32-asym", "nf4-b64", KEEP, "int8-channel", "int4-g32-asym")):
        chosen = names[step::3]
        session = workspace.state.session
        assert session is not None
        workspace.edit("x", lambda now, c=chosen, s=scheme: _assigned(now, c, s))  # type: ignore[misc]
        parts = sums.of(workspace.state)
        fresh = Parts().of(workspace.state)
        assert [part.scheme for part in parts] == [part.scheme for part in fresh]
        for item, other in zip(parts, fresh, strict=True):
            assert (item.layers, item.weights, item.bits) == (other.layers, other.weights, other.bits)
            assert item.loss == other.loss or math.isnan(item.loss) and math.isnan(other.loss)
        stored = [layer for layer in session.model.layers if layer.tied_to is None]
        held = workspace.state.assignments
        assert sum(part.layers for part in parts) == len(session.model.layers), "the tied head is in the list, too"
        assert sum(part.bits for part in parts) == sum(layer_bits(item, held[item.name].weights) for item in stored)


def test_a_uniform_plan_is_the_same_as_the_uniform_plan_in_whatever_order_its_losses_were_added() -> None:
    session = sessions.full(8)
    names, seen = [layer.name for layer in session.model.layers], list[str]()
    for scheme in session.sensitivities["predicted_kl"].schemes:
        workspace = Workspace()
        workspace.open(replace(session, plan=Plan().assign(names, weights=scheme), plans={}), None)
        figures = Dashboard().figures(workspace.state)
        here = [each for figure in figures for each in figure.differences if each.against == f"{scheme} everywhere"]
        seen += [each.text for each in here if each.kind == "uniform"]
    assert len(seen) > 10 and set(seen) == {"the same"}


def test_a_plan_is_compared_with_uniform_plans_that_its_target_runs() -> None:
    workspace = Workspace()
    workspace.open(sessions.full(2), None)
    session, assignments = workspace.state.session, workspace.state.assignments
    table = session.sensitivities["predicted_kl"]
    kept = {name for name, _, _ in uniform_plans(session, table, None, assignments, "gguf")}
    runs = {
        scheme for scheme in table.schemes
        if not refusals(Plan.uniform(quantizable(session.model.layers), scheme), session.model.layers, "gguf")
    }  # fmt: skip
    every = {name for name, _, _ in uniform_plans(session, table, None, assignments, "")}
    assert kept == runs and kept < every
    workspace.show_target("gguf")
    against = {each.against for figure in Dashboard().figures(workspace.state) for each in figure.differences}
    assert against <= {f"{name} everywhere but in embeddings" for name in kept}


def test_the_last_saved_plan_is_one_that_the_user_saved() -> None:
    session = sessions.full(2)
    names = [layer.name for layer in session.model.layers]
    first, second, third = (Plan().assign(names, weights=scheme) for scheme in ("int8-channel", "int4-g64", "int4-g32"))
    workspace = Workspace()
    workspace.open(replace(session, plan=first, plans={"mine": third}), None)
    workspace.edit("second", lambda now: replace(now, plan=second))
    workspace.undo()
    workspace.edit("lock", lambda now: replace(now, locked=frozenset(names[:1])))
    assert list(workspace.state.session.plans) == ["mine", "Branch 1"]
    figures = Dashboard().figures(workspace.state)
    assert {each.against for figure in figures for each in figure.differences if each.kind == "saved"} == {"mine"}


def test_columns_make_room_for_longer_texts_unless_the_user_has_set_them(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.opened())
        parts, names = person.window.panels["plan"].parts, [layer.name for layer in person.state.session.model.layers]
        before = parts.columnWidth(0)
        workspace = person.context.workspace
        await person.act(lambda: workspace.edit("x", lambda now: _assigned(now, names, "int4-g32-asym-zfp16")))
        assert len(parts.records.records) == 1 and parts.columnWidth(0) >= parts.sizeHintForColumn(0) > before
        await person.act(lambda: parts.setColumnWidth(0, 40))
        await person.act(lambda: workspace.edit("x", lambda now: _assigned(now, names, "int8-channel")))
        assert parts.columnWidth(0) == 40

    live(story)


def _assigned(session: object, names: list[str], scheme: str) -> object:
    return replace(session, plan=session.plan.assign(names, weights=scheme))  # type: ignore[attr-defined, type-var]


def test_changed_layers_are_found_by_identity() -> None:
    workspace = Workspace()
    workspace.open(sessions.full(2), None)
    before = workspace.state.assignments
    assert changed_layers(before, before) == []
    workspace.edit("x", lambda now: _assigned(now, [UP], "int8-channel"))  # type: ignore[arg-type, return-value]
    assert changed_layers(before, workspace.state.assignments) == [UP]
    assert changed_layers({}, before) is None


@pytest.mark.parametrize(
    ("counts", "bars", "height", "heights"),
    [
        ([0, 0, 0, 0], 4, 10, []),
        ([0, 4, 0, 1, 0], 4, 10, [10, 0, 5]),
        ([1, 3, 0, 1, 16], 3, 8, [4, 2, 8]),
        ([7], 4, 10, [10]),
        ([10_000, 1], 2, 10, [10, 1]),
    ],
)
def test_bars_are_square_roots_of_summed_bins(counts: list[int], bars: int, height: int, heights: list[int]) -> None:
    assert bar_heights(np.array(counts, np.int64), bars, height).tolist() == heights


def test_a_layer_has_no_rows_below_it_that_others_would_share() -> None:
    rows = tree(sessions.opened().model)
    with pytest.raises(AssertionError, match="no block"):
        rows.add("below", rows.layers[SEEN])
    assert {rows.children(number) for number in rows.layers.values()} == {()}


def test_columns_stand_by_family_and_keep_their_scores() -> None:
    table = sessions.table(sessions.summary(2))
    grouped = by_family(table)
    families = [schemes.family_of(name) for name in grouped.schemes]
    assert len(set(families)) == 1 + sum(a != b for a, b in zip(families, families[1:], strict=False))
    assert sorted(grouped.schemes) == sorted(table.schemes)
    one_family = [name for name in grouped.schemes if schemes.family_of(name) == families[0]]
    assert one_family == sorted(one_family, key=schemes.reference_bits), "a scheme scored later stands in its place"
    later = replace(table, schemes=table.schemes[::-1], score=table.score[:, ::-1])
    assert [schemes.reference_bits(name) for name in by_family(later).schemes] == [
        schemes.reference_bits(name) for name in grouped.schemes
    ]
    for name in table.schemes:
        assert np.array_equal(grouped.score[:, grouped.column[name]], table.score[:, table.column[name]])


def test_a_row_paints_its_cells_its_selection_and_its_focus(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        panel = person.window.panels["layers"]
        view = panel.view

        def row() -> np.ndarray:
            image = view.viewport().grab(view.visualRect(panel.model.index_of(SEEN, SCHEME))).toImage()
            return np.frombuffer(image.bits(), np.uint32).copy()

        plain = row()
        assert len(set(plain.tolist())) > 2, "the scheme's name is painted"
        await person.layer(SEEN, SCHEME)
        focused = row()
        assert not np.array_equal(plain, focused)
        await person.press(Qt.Key.Key_F, person.window, control=True)  # the keyboard goes to the filter
        assert person.state.selection == (SEEN,) and not np.array_equal(focused, row())
        assert not np.array_equal(plain, row()), "selected, without the frame of the keyboard"
        await person.press(Qt.Key.Key_L, person.window, control=True)
        assert panel.model.index_of(SEEN).data().endswith("(locked)")

    live(story)


def test_names_that_are_cut_still_differ(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(6, "encoder_of_pictures.stages.layers"))
        view = person.window.panels["layers"].view
        await person.act(lambda: view.setColumnWidth(NAME, 130))
        await person.settle(0.2)
        names = {text for text, _, is_name, _ in view._texts if is_name and text.startswith("encoder")}
        shown = {static.text() for (text, *_), (static, *_) in view._texts.items() if text in names}
        assert len(names) > 1 and len(shown) == len(names) and all("…" in text for text in shown)

    live(story)


def test_columns_of_a_short_table_only_grow_while_it_changes(qapp: QApplication) -> None:
    view = RecordsView("Names", (Field("Name", str),))
    view.show_records(("a" * 12,))
    width = view.columnWidth(0)
    view.show_records(("a", "b"))
    assert view.columnWidth(0) == width, "they do not jump while a slider moves"
    view.show_records(("a" * 20, "b", "c"))
    assert view.columnWidth(0) > width
    view.show_records([str(number) for number in range(80)])
    assert view.columnWidth(0) < width, "those of a long one are fitted again"
    view.deleteLater()


@pytest.mark.parametrize(
    ("value", "narrow", "text"),
    [(0.66, False, "6.6e-1"), (0.96, False, "9.6e-1"), (0.996, False, "1.0"), (-0.996, False, "−1.0"),
     (1.04, False, "1.0"), (0.94, True, "9e-1"), (0.96, True, "1.0"), (120.0, True, "1e2"), (120.0, False, "120")],
)  # fmt: skip
def test_cells_of_heatmaps_have_one_style_below_1(value: float, narrow: bool, text: str) -> None:
    assert quantities.cell(value, narrow) == text


@pytest.mark.parametrize("unit", [METRIC_UNIT, "nats"])
def test_a_column_of_losses_has_one_style_below_1(unit: str) -> None:
    losses = Number("Loss", float, unit=unit)
    assert [losses.shown(value) for value in (0.23, 0.00151, 4.6e-4, -1.2e-7, 0.99951, 12.3)] == [
        "2.30e-1", "1.51e-3", "4.60e-4", "−1.20e-7", "1.00", "12.3"]  # fmt: skip
    assert losses.shown(0.0) == "0" and losses.shown(math.nan) == quantities.NONE

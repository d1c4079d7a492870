"""Every table, plot and key figure can be copied as plain numbers and as a picture, by right click and by command."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import shiboken6
from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QAbstractItemView, QApplication, QMenu, QTableView, QTreeView

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench import gui
from workbench.errors import ExportError
from workbench.gui.commands.output import _save_table
from workbench.gui.plots.histogram import Histogram
from workbench.gui.plots.plot import Plot
from workbench.gui.shell import dialogs
from workbench.gui.shell.copying import copy_lines, put
from workbench.gui.tables import copying
from workbench.gui.tables.files import as_cell, raw_rows

LARGE = sessions.opened(sessions.summary(1430), with_weights=False)
"""10,012 layers."""


@pytest.mark.parametrize(("value", "cell"), [
    ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"), ("@SUM(A1)", "'@SUM(A1)"), ("+1+cmd", "'+1+cmd"),
    ("-2+3+cmd", "'-2+3+cmd"), ("a\tb\n=c", "a\\tb\\n=c"), ("\t=c", "\\t=c"), ("\x1b[31m", "\\x1b[31m"),
    ("-1.5e-3", "-1.5e-3"), ("-inf", "-inf"), (-2, "-2"), ("+5", "+5"), ("-", "-"), ("", ""), ("layer.0", "layer.0"),
])  # fmt: skip
def test_no_name_becomes_a_formula_or_another_cell(value: object, cell: str) -> None:
    assert as_cell(value) == cell


def entry(menu: QMenu, words: str) -> None:
    """Choose an entry of a menu."""
    next(action for action in menu.actions() if action.text().replace("&", "") == words).trigger()


def test_every_table_offers_its_cell_rows_numbers_and_picture(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        await person.layer(person.state.session.model.layers[1].name)
        observed = 0
        for name, panel in list(person.window.panels.items()):
            await person.act(lambda name=name: person.window.reveal(name))
            for view in panel.findChildren(QAbstractItemView):
                if isinstance(view, QTreeView) or not view.isVisible() or not view.model().rowCount():
                    continue
                if view.selectionBehavior() != view.SelectionBehavior.SelectRows:
                    continue
                cell = view.model().index(0, 0)
                view.customContextMenuRequested.emit(view.visualRect(cell).center())
                menu = next(each for each in view.findChildren(QMenu) if each.objectName() == "copies")
                QApplication.clipboard().clear()
                entry(menu, "Copy the Table")
                await person.until(QApplication.clipboard().text, 10)  # on a busy machine it takes more than a frame
                copied = [line.split("\t") for line in QApplication.clipboard().text().split("\n")]
                assert copied == [list(map(str, row)) for row in raw_rows(view.model())], name
                entry(menu, "Copy the Cell")
                assert QApplication.clipboard().text() == str([*raw_rows(view.model())][1][0]), name
                entry(menu, "Copy the Picture")
                assert not QApplication.clipboard().pixmap().isNull(), name
                await person.act(menu.close)
                observed += 1
        assert observed >= 4, "tables that were looked at"

    live(story)


def test_every_plot_gives_its_numbers(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        await person.layer(person.state.session.model.layers[1].name)
        received = set()
        for name, panel in list(person.window.panels.items()):
            await person.act(lambda name=name: person.window.reveal(name))
            for plot in panel.findChildren(Plot):
                head, *rows = (line.split("\t") for line in plot.data_lines())
                assert all(len(row) == len(head) for row in rows), plot.accessibleName()
                assert all(np.isfinite(float(number)) for row in rows for number in row[1:])
                if rows:
                    received.add(type(plot).__name__)
                titles = [action.text().replace("&", "") for action in plot.context_menu().actions()]
                assert titles.count("Copy the Numbers") == 1
        assert {"Histogram", "FrontPlot", "Comparison", "KernelTimes"} <= received, received

    live(story)


def test_the_menu_of_a_plot_of_amounts_makes_its_axes_logarithmic_or_linear(live: Callable[..., None]) -> None:
    """The numbers to copy stay the same, only where they stand changes; a histogram's check box follows."""

    def numbers(plot: Plot) -> np.ndarray:
        return np.array([row.split("\t")[-2:] for row in [*plot.data_lines()][1:]], float).ravel()

    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        await person.layer(person.state.session.model.layers[1].name)
        switched = set()
        for name, panel in list(person.window.panels.items()):
            await person.act(lambda name=name: person.window.reveal(name))
            for plot in panel.findChildren(Plot):
                before, was, place = numbers(plot), plot.is_log, plot.viewRange()
                entry = [each for each in plot.context_menu().actions() if each.text() == "&Logarithmic"]
                assert bool(entry) is (bool(plot.logarithmic) or isinstance(plot, Histogram))
                if not entry or not plot.isVisible() or not before.size:
                    continue
                assert entry[0].isChecked() is was
                await person.act(entry[0].trigger)
                assert plot.is_log is not was and plot.viewRange() != place, plot.accessibleName()
                np.testing.assert_allclose(numbers(plot), before, rtol=1e-9, atol=1e-12)
                if isinstance(plot, Histogram) and name == "distributions":
                    assert panel.log.isChecked() is plot.is_log
                await person.act(next(each for each in plot.context_menu().actions() if each.isChecked() is not was
                                      and each.isCheckable()).trigger)  # fmt: skip
                assert plot.is_log is was
                np.testing.assert_allclose(plot.viewRange(), place, rtol=0.3)
                switched.add(type(plot).__name__)
        assert {"Agreement", "Histogram", "FrontPlot"} <= switched, switched

    live(story)


def test_the_numbers_of_a_histogram_and_of_the_heatmap_are_exact(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        session = sessions.full(2)
        await person.open(session)
        await person.layer(session.model.layers[1].name)
        front = person.window.panels["pareto"].plot
        await person.act(lambda: person.window.reveal("pareto"))
        await person.until(lambda: front.picture is not None)
        rows = [line.split("\t") for line in [*front.data_lines()][1:]]
        losses = [float(loss) for name, _, loss in rows if name == "best plans"]
        assert losses == front.picture.loss.tolist() and min(losses) < max(losses) * 1e-5, "below what is drawn"
        name = person.state.selection[0]
        panel = person.window.panels["distributions"]
        known = session.statistics[name, "weight"]
        histogram = next(plot for plot in panel.findChildren(Plot) if plot._statistics is known)
        counts = [int(line.split("\t")[3]) for line in [*histogram.data_lines()][1:]]
        assert sum(counts) == known.count
        table = session.sensitivities["predicted_kl"]
        heat = person.window.panels["sensitivity"].heatmap
        await person.act(lambda: heat.setFocus())
        await person.act(lambda: person.context.trigger("copy_table"))
        head, *rows = (line.split("\t") for line in QApplication.clipboard().text().split("\n"))
        assert set(head[1:]) == set(table.schemes) and [row[0] for row in rows] == list(table.layers)
        assert all(float(rows[1][at]) == table.of(rows[1][0], head[at]) for at in range(1, len(head)))
        await person.act(lambda: person.context.trigger("copy_picture"))
        assert not QApplication.clipboard().pixmap().isNull()

    live(story)


def test_a_key_figure_is_copied_with_its_interval(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        tile = person.window.panels["plan"].dashboard.tiles[0]
        await person.act(tile.setFocus)
        await person.press(Qt.Key.Key_C, tile, control=True)
        assert tile.value.text() in QApplication.clipboard().text()
        assert "smaller" in QApplication.clipboard().text() or "same size" in QApplication.clipboard().text()

    live(story)


@pytest.mark.parametrize("command", ["copy_table", "copy_picture"])
def test_without_anything_to_copy_a_line_says_so(live: Callable[..., None], command: str) -> None:
    async def story(person: Person) -> None:
        assert not person.window.actions_by_id[command].isEnabled()

    live(story)


@pytest.mark.parametrize("way", ["file", "keys", "menu"])
def test_ten_thousand_rows_are_worked_out_between_frames(
    live: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The event loop goes on while rows are worked out, and all of them arrive."""

    async def asked(*_: object) -> Path:
        return tmp_path / "layers.csv"

    monkeypatch.setattr(dialogs, "ask_save_path", asked)

    async def story(person: Person) -> None:
        await person.open(LARGE)
        panel, turns = person.window.panels["layers"], list[float]()
        path, board = tmp_path / "layers.csv", QApplication.clipboard()
        board.clear()
        beat = QTimer(interval=0)
        beat.timeout.connect(lambda: turns.append(0.0))

        def begin() -> None:
            beat.start()
            if way == "keys":
                panel.copy()
            else:
                copying.copy_table(panel.view) if way == "menu" else person.window.trigger("save_table")

        await person.act(begin)
        await person.until(path.exists if way == "file" else board.text)
        beat.stop()
        text = path.read_text(encoding="utf-8-sig") if way == "file" else board.text()
        assert len(turns) > 20, "turns of the event loop"
        assert {layer.name for layer in LARGE.model.layers} <= set(re.split(r"[,\t\n]", text))

    live(story)


def test_all_texts_are_put_on_the_clipboard_in_one_way() -> None:
    """Which leaves control characters out: names of files and layers are a stranger's."""
    sources = (Path(gui.__file__).parent).rglob("*.py")
    own = [each.name for each in sources if "clipboard().setText(" in each.read_text(encoding="utf-8")]
    assert own == ["copying.py"]


def test_nothing_is_copied_of_lines_that_raise(live: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    raised = list[str]()

    def lines() -> Iterator[str]:
        yield "the first"
        time.sleep(0.02)
        yield "the last of this frame"
        raise ValueError("no more")

    async def story(person: Person) -> None:
        monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: raised.append(str(error)))
        put("as before")
        copy_lines(person.window, lines)
        await person.until(lambda: raised, 10)
        await asyncio.sleep(0.05)
        assert raised == ["no more"] and QApplication.clipboard().text() == "as before"

    live(story)


def test_a_table_that_goes_while_it_is_saved_is_told(tmp_path: Path, live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(LARGE)
        view = QTableView()
        view.setModel(person.window.panels["layers"].model)
        saving = asyncio.ensure_future(_save_table(view, tmp_path / "rows.csv"))
        await asyncio.sleep(0)
        shiboken6.delete(view)
        with pytest.raises(ExportError, match="closed before it was saved"):
            await asyncio.wait_for(saving, 10)
        assert not [*tmp_path.iterdir()]

    live(story)

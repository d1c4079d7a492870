"""The printable report of a session: every panel's plots and tables, drawn anew in the light palette."""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QLabel, QTableView, QWidget

from workbench.atomic import replacing
from workbench.errors import ExportError
from workbench.gui.context.context import Context
from workbench.gui.panels import PANELS
from workbench.gui.panels.panel import Panel
from workbench.gui.plots.heatmap import Heatmap
from workbench.gui.plots.multiples import Multiples
from workbench.gui.plots.plot import Plot
from workbench.gui.report.page import Figure, Section, Table, page
from workbench.gui.report.pictures import png, svg
from workbench.gui.shell import theme
from workbench.gui.tables.files import rows_of
from workbench.insight import quantities
from workbench.insight.layer_table import layer_rows
from workbench.insight.sums import shown_unit
from workbench.sensitivity.metrics import metric_title
from workbench.session.workspace import State

LEFT_OUT = ("layers", "plan", "jobs")
"""Panels that the report has another form of, or that are about the window only."""

PLOT, WIDE = QSize(520, 300), QSize(980, 420)
MOST_ROWS = 300
WORDS = ("figure", "verdict", "coverage", "device", "why", "brush", "line.figures", "pair.words", "audit.words")
"""Where panels keep their sentences."""
NOTHING = ("No audit yet", "Not judged yet", "Not measured yet")
"""How sentences begin that say what could still be done, of no use on paper either."""
_HINT = re.compile(r"; click .*$")  # what a mouse would do, of no use on paper


def html(context: Context, live: Mapping[str, Any]) -> str:
    """Return the report of the open session; ``live`` panels lend what the session does not hold.

    Raises ExportError without a session.
    """
    state = context.workspace.state
    if state.session is None:
        raise ExportError("there is nothing to report; open a model or a session first")
    sections = [_summary(state), _plan(state)]
    for spec in PANELS:
        if spec.id not in LEFT_OUT:
            panel = spec.make(context, theme.LIGHT)
            try:
                sections += _of_panel(spec.title, panel, live.get(spec.id), state)
            finally:
                panel.deleteLater()
    made = time.strftime("%Y-%m-%d %H:%M")
    return page(f"Quantization of {state.session.model.name}", f"{state.session.plan.name}, {made}", sections)


def write(context: Context, live: Mapping[str, Any], path: Path) -> None:
    """Write the report; raises ExportError."""
    text = html(context, live)
    with replacing(path, ExportError, "the report") as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


# -------------------------------------------------------------------- sections


def _summary(state: State) -> Section:
    session, totals = state.session, state.totals
    assert session is not None
    rows = [["", ""], ["Model", session.model.name], ["Fingerprint", session.model.fingerprint]]
    rows.append(["Layers", f"{len(session.model.layers):,}"])
    for which in ("calibration", "evaluation"):
        record = getattr(session, which)
        if record is not None:
            rows.append([which.capitalize(), f"{record.name}, {record.samples:,} samples, {record.content_hash}"])
    if totals is not None:
        rows.append(["Size", f"{quantities.data_size(totals.nbytes)} ({totals.nbytes:,} bytes)"])
        rows.append(["Bits per weight", f"{totals.bits_per_weight:.4f}"])
        title = metric_title(state.metric, shown_unit(session, state.metric))
        rows.append([f"Loss ({title})", quantities.number(totals.predicted, 4)])
    made = session.environment
    rows.append(["Made with", f"workbench {made.workbench}, Python {made.python}, torch {made.torch}, {made.device}"])
    return Section(title="Summary", words=session.notes, tables=(Table(caption="The session", rows=rows),))


def _plan(state: State) -> Section:
    session = state.session
    assert session is not None
    rules = [["Layers", "Weights", "Inputs", "Algorithm"]]
    for rule in session.plan.rules:
        given = rule.assignment
        rules.append([rule.pattern, given.weights, given.inputs or "floating point", given.algorithm])
    words = [f"Transforms, in order: {', '.join(session.plan.transforms)}."] if session.plan.transforms else []
    words += [state.plan_error] if state.plan_error else []
    tables = (_cut("The plan's rules", rules), _cut("Layers", layer_rows(session, state.assignments, state.metric)))
    return Section(title="Plan", words=words, tables=tables)


def _of_panel(title: str, panel: Panel, live: Panel | None, state: State) -> list[Section]:
    """Return the section of a panel; none where it has nothing to show."""
    panel.resize(WIDE)
    panel.redraw(State(), state)
    if live is not None:
        panel.borrow(live)
    if panel.empty_text:
        return []
    figures = [figure for widget in panel.findChildren(QWidget) if (figure := _figure(panel, widget)) is not None]
    tables = [_cut(view.accessibleName(), rows_of(view.model())) for view in panel.findChildren(QTableView)]
    tables = [table for table in tables if len(table.rows) > 1]
    words = [text for name in WORDS if (text := _words(panel, name))]
    return [Section(title=title, words=words, figures=figures, tables=tables)] if figures or tables else []


def _figure(panel: Panel, widget: QWidget) -> Figure | None:
    """Return the picture of a widget that is one; it leaves its layout, which would choose its size."""
    if isinstance(widget, Heatmap) and widget.cells is not None:
        size, vector = whole_size(widget), False
    elif isinstance(widget, Plot) and any(item.isVisible() for item in widget.item.items):
        size, vector = PLOT, True
    elif isinstance(widget, Multiples) and widget.accessibleDescription():
        size, vector = WIDE, False
    else:
        return None
    widget.setParent(None)
    try:
        if vector:
            return Figure(caption=widget.accessibleName(), svg=svg(widget, size).decode())
        return Figure(caption=widget.accessibleName(), png=png(widget, size))
    finally:
        widget.setParent(panel)


def whole_size(heatmap: Heatmap) -> QSize:
    """Return how large a heatmap has to be to show all of up to 120 rows."""
    assert heatmap.cells is not None
    rows, columns = min(len(heatmap.cells.rows), 120), len(heatmap.cells.columns)
    return QSize(260 + 46 * columns, 190 + heatmap.row_height * rows)


def _words(panel: Panel, name: str) -> str:
    found: Any = panel
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, QLabel):
        return ""
    text = _HINT.sub("", _plain(found.text()))
    return "" if text.startswith(NOTHING) else text


def _plain(text: str) -> str:
    """Return a label's rich text without its marks."""
    from PySide6.QtGui import QTextDocumentFragment

    return QTextDocumentFragment.fromHtml(text).toPlainText() if "<" in text else text


def _cut(caption: str, rows: list[list[str]]) -> Table:
    return Table(caption=caption, rows=rows[: MOST_ROWS + 1], cut=max(len(rows) - MOST_ROWS - 1, 0))


# -------------------------------------------------------------------- from a file


def write_from_file(session: Path, out: Path) -> Path:
    """Write the report of the session file ``session`` to ``out``; raises SessionError, ExportError."""
    if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from workbench.gui.app import application
    from workbench.gui.context.runner import NoJobs
    from workbench.gui.screenshot import worst_layer
    from workbench.session.session import Session
    from workbench.session.workspace import Workspace

    theme.apply(application(), theme.LIGHT)
    context = Context(Workspace(), NoJobs())
    context.workspace.open(Session.load(session), session)
    context.workspace.select((worst_layer(context),))
    write(context, {}, out)
    return out


def main() -> None:
    """Write the report of a session file: ``python -m workbench.gui.report.report S.qwb out.html``."""
    parser = argparse.ArgumentParser(description="Write a session's printable report.")
    parser.add_argument("session", help="a .qwb file")
    parser.add_argument("out", help="the HTML file to write")
    options = parser.parse_args()
    write_from_file(Path(options.session), Path(options.out))


if __name__ == "__main__":
    main()

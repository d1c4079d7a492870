"""The precision transitions as a matrix (what the model stores down, what the plan makes of it across) and a table."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QAbstractItemView, QTableWidget, QTableWidgetItem

from workbench.gui.shell.widgets import named
from workbench.gui.shell.words import tr
from workbench.gui.tables.copying import offer_copies
from workbench.gui.tables.fields import Field, Number
from workbench.gui.tables.files import RAW
from workbench.insight import quantities
from workbench.insight.plan_parts import LAYERS_TIP, Transition

MOST_ROWS = 4
"""So many stored types are seen at once; more scroll."""


def _after(move: Transition) -> str:
    return "kept" if move.before == move.after else move.after


FIELDS = (
    Field("From", lambda move: move.before, tip="How the model stores the weight"),
    Field("To", _after, words=True, tip="How the plan stores it"),
    Number("Layers", lambda move: move.layers, tip=LAYERS_TIP),
    Number("Count", lambda move: move.weights, quantities.count, tip="Number of weights"),
    Number("Before", lambda move: move.nbytes[0], quantities.data_size, unit="bytes",
           tip="Bytes of their weights as the model stores them"),
    Number("After", lambda move: move.nbytes[1], quantities.data_size, unit="bytes",
           tip="Bytes of their weights under the plan"),
    Number("Saved", lambda move: 1 - move.nbytes[1] / move.nbytes[0] if move.nbytes[0] else None, quantities.share,
           unit="share", key=lambda move: move.nbytes[0] - move.nbytes[1], tip="Share of the bytes before"),
)  # fmt: skip


class TransitionMatrix(QTableWidget):
    """A cell for each pair: how many layers, and how many bytes they took and take."""

    def __init__(self) -> None:
        super().__init__()
        tip = "Down: how the model stores weights. Across: how the plan stores them. Layers and bytes"
        named(self, "Precision-transition matrix", tip)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTabKeyNavigation(False)
        offer_copies(self)

    def show_transitions(self, moves: Sequence[Transition]) -> None:
        """Show every pair that occurs; others stay empty."""
        befores = list(dict.fromkeys(move.before for move in moves))
        afters = list(dict.fromkeys(_after(move) for move in moves))
        self.clear()
        self.setRowCount(len(befores))
        self.setColumnCount(len(afters))
        self.setVerticalHeaderLabels(befores)
        self.setHorizontalHeaderLabels([tr(after) for after in afters])
        for move in moves:
            before, after = (quantities.data_size(size) for size in move.nbytes)
            sizes = before if before == after else f"{before} → {after}"
            item = QTableWidgetItem(f"{tr(quantities.plural(move.layers, 'layer'))}\n{sizes}")
            item.setData(RAW, str(move.layers))
            item.setTextAlignment(Qt.AlignmentFlag.AlignCenter)
            item.setToolTip(tr(f"From {move.before} to {move.after}: {sizes}"))
            self.setItem(befores.index(move.before), afters.index(_after(move)), item)
        self.resizeColumnsToContents()
        self._fit(len(befores))

    def _fit(self, rows: int) -> None:
        """Take the height of the rows, and no more."""
        height = 2 * QFontMetrics(self.font()).lineSpacing() + 8
        for row in range(rows):
            self.setRowHeight(row, height)
        inside = self.horizontalHeader().sizeHint().height() + min(max(rows, 1), MOST_ROWS) * height
        self.setFixedHeight(inside + 2 * self.frameWidth() + self.horizontalScrollBar().sizeHint().height())

"""What quantization changed most: tokens or samples by their KL, and whether the answer flipped."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QVBoxLayout, QWidget

from workbench.gui.shell.fitted_label import FittedLabel
from workbench.gui.tables.fields import Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.measurement.evaluation import Changed, Evaluation

TAIL = 70
"""Letters of the context that are shown, those before the token."""


def context_of(one: Changed) -> str:
    """Return the end of the context on one line."""
    text = " ".join(one.context.split())
    return text if len(text) <= TAIL else f"…{text[-TAIL:]}"


FIELDS = (
    Number("KL", lambda change: change.kl, unit="nats",
           tip="Divergence from floating point at this token or sample; lower is better"),
    Field("Flip", lambda change: change.flipped, lambda flipped: "flipped" if flipped else "",
          key=lambda change: not change.flipped, tip="The most likely answer is a different one"),
    Field("FP", lambda change: change.baseline, tip="The floating-point model's most likely answer"),
    Field("Quantized", lambda change: change.quantized, tip="The quantized model's most likely answer"),
    Field("Actual", lambda change: change.actual, tip="What follows in the data, or the label"),
    Number("Sample", lambda change: change.sample + 1, tip="Number of the sample in the evaluation data"),
    Number("Token", lambda change: None if change.position < 0 else change.position + 1,
           text=lambda change: "" if change.position < 0 else f"{change.position + 1:,}",
           tip="Position in the sample; empty for a whole sample"),
    Field("Context", lambda change: " ".join(change.context.split()), text=context_of,
          tip="The text up to and including the token"),
)  # fmt: skip


MOST_WIDTH = 420
"""Pixels for the name of an evaluation."""


class ChangedView(QWidget):
    """An evaluation to choose, the newest first, and what it changed most."""

    def __init__(self) -> None:
        super().__init__()
        self._runs: tuple[Evaluation, ...] = ()
        self.run = QComboBox()
        self.run.setAccessibleName("Evaluation whose changes are listed")
        self.run.setToolTip("Which evaluated plan; evaluations made by an older version list nothing")
        self.run.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.run.setMaximumWidth(MOST_WIDTH)
        self.run.activated.connect(lambda _: self._show())
        self.flips = QCheckBox("Only fl&ips")
        self.flips.setToolTip("Only where the most likely answer became another one")
        self.flips.toggled.connect(lambda _: self._show())
        self.figure = FittedLabel()
        self.figure.setProperty("role", "muted")
        self.table = RecordsView("What quantization changed most", FIELDS)
        top = QHBoxLayout()
        top.addWidget(self.run)
        top.addWidget(self.flips)
        top.addWidget(self.figure, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 0, 0)
        column.addLayout(top)
        column.addWidget(self.table, 1)

    def show_runs(self, runs: Sequence[Evaluation]) -> None:
        """Offer the evaluations."""
        self._runs = tuple(reversed(runs))
        self.run.clear()
        for one in self._runs:
            self.run.addItem(f"{one.plan_name} ({one.bits_per_weight:.2f} bits, {one.data_name})")
        self._show()

    def _show(self) -> None:
        place = self.run.currentIndex()
        changed = self._runs[place].changed if 0 <= place < len(self._runs) else ()
        flips = sum(one.flipped for one in changed)
        shown = [one for one in changed if one.flipped or not self.flips.isChecked()]
        self.table.show_records(sorted(shown, key=lambda one: -one.kl))
        if not changed:
            self.figure.setText("This evaluation kept no single tokens or samples; evaluate again (F8) to see them")
        else:
            self.figure.setText(f"the {len(changed):,} most changed, {quantities.plural(flips, 'flip')} among them")

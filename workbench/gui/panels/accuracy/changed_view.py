"""What quantization changed most: tokens or samples by their KL, and whether the answer flipped."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QVBoxLayout, QWidget

from workbench.gui.shell.fitted_label import FittedLabel
from workbench.gui.tables.records import Field, RecordsView
from workbench.insight import quantities
from workbench.measurement.evaluation import Changed, Evaluation

TAIL = 70
"""Letters of the context that are shown, those before the token."""


def context_of(one: Changed) -> str:
    """Return the end of the context on one line."""
    text = " ".join(one.context.split())
    return text if len(text) <= TAIL else f"…{text[-TAIL:]}"


FIELDS = (
    Field(title="KL", text=lambda one: quantities.number(one.kl), numeric=True, key=lambda one: one.kl,
          tip="Divergence from floating point at this place, in nats; lower is better"),
    Field(title="Flip", text=lambda one: "flipped" if one.flipped else "", key=lambda one: not one.flipped,
          tip="The most likely answer is another one"),
    Field(title="FP", text=lambda one: one.baseline, tip="What the floating-point model holds most likely"),
    Field(title="Quantized", text=lambda one: one.quantized, tip="What the quantized model holds most likely"),
    Field(title="Actual", text=lambda one: one.actual, tip="What follows in the data, or the label"),
    Field(title="Sample", text=lambda one: f"{one.sample + 1:,}", numeric=True, key=lambda one: one.sample,
          tip="Which sample of the evaluation data"),
    Field(title="Token", text=lambda one: "" if one.position < 0 else f"{one.position + 1:,}", numeric=True,
          key=lambda one: one.position, tip="Place in the sample; empty for a whole sample"),
    Field(title="Context", text=context_of, tip="The text up to and with the token"),
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

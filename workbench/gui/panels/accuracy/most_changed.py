"""What quantization changed most: tokens or samples by their KL, and whether the answer flipped."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QCheckBox, QComboBox, QWidget

from workbench.gui.shell.foreign import as_line
from workbench.gui.shell.widgets import combo, fill, fitted, row, switch
from workbench.gui.tables.fields import Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.measurement.evaluation import Changed, Evaluation

TAIL = 70
"""Letters of the context that are shown, those before the token."""


def context_of(change: Changed) -> str:
    """Return the end of the context on one line."""
    text = " ".join(change.context.split())
    return text if len(text) <= TAIL else f"…{text[-TAIL:]}"


FIELDS = (
    Number("KL", lambda change: change.kl, unit="nats",
           tip="Divergence from floating point at this token or sample; lower is better"),
    Field("Flip", lambda change: change.flipped, lambda flipped: "flipped" if flipped else "", words=True,
          key=lambda change: not change.flipped, tip="The most likely answer is a different one"),
    Field("FP", lambda change: change.baseline, tip="The floating-point model's most likely answer"),
    Field("Quantized", lambda change: change.quantized, tip="The quantized model's most likely answer"),
    Field("Actual", lambda change: change.actual, tip="What follows in the data, or the label"),
    Number("Sample", lambda change: change.sample + 1, tip="Number of the sample in the evaluation data"),
    Number("Token", lambda change: None if change.position < 0 else change.position + 1,
           text=lambda change: "" if change.position < 0 else quantities.whole(change.position + 1),
           tip="Position in the sample; empty for a whole sample"),
    Field("Context", lambda change: " ".join(change.context.split()), text=context_of,
          tip="The text up to and including the token"),
)  # fmt: skip

MOST_WIDTH = 420
"""Pixels for the name of an evaluation."""


class MostChanged(QWidget):
    """An evaluation to choose, the newest first, and what it changed most."""

    def __init__(self) -> None:
        super().__init__()
        self._runs: tuple[Evaluation, ...] = ()
        self.run = combo(
            "Evaluation whose changes are listed", chosen=self._show,
            tip="Which evaluated plan; evaluations made by an older version list nothing",
        )  # fmt: skip
        self.run.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.run.setMaximumWidth(MOST_WIDTH)
        tip = "Only where the most likely answer became another one"
        self.flips = switch(QCheckBox(), "Only fl&ips", lambda _: self._show(), tip)
        self.figure = fitted()
        self.table = RecordsView("What quantization changed most", FIELDS)
        fill(self, row(self.run, self.flips, self.figure, stretch=self.figure), self.table, stretch=self.table)

    def show_runs(self, runs: Sequence[Evaluation]) -> None:
        """Offer the evaluations."""
        self._runs = tuple(reversed(runs))
        self.run.clear()
        self.run.addItems([as_line(run_title(run)) for run in self._runs])
        self._show()

    def _show(self) -> None:
        place = self.run.currentIndex()
        changed = self._runs[place].changed if 0 <= place < len(self._runs) else ()
        self.table.show_records(by_divergence(changed, flips=self.flips.isChecked()))
        if not changed:
            self.figure.setText("This evaluation kept no single tokens or samples; evaluate again (F8) to see them")
        else:
            flips = quantities.plural(sum(change.flipped for change in changed), "flip")
            self.figure.setText(f"the {quantities.whole(len(changed))} most changed, {flips} among them")


def by_divergence(changed: Sequence[Changed], *, flips: bool = False) -> list[Changed]:
    """Return what changed, the most changed first; only the flips with ``flips``."""
    return sorted((change for change in changed if change.flipped or not flips), key=lambda change: -change.kl)


def run_title(run: Evaluation) -> str:
    """Return what tells an evaluation from others."""
    return f"{run.plan_name} ({quantities.fixed(run.bits_per_weight, 2)} bits, {run.data_name})"

"""Two evaluated plans against each other, sample by sample: is their difference resolved?"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from workbench.gui.context.context import Context
from workbench.measurement.evaluation import Evaluation
from workbench.measurement.paired import Difference
from workbench.steps.checks.compare_plans import COMPARE_PLANS, ComparePlansOptions, run_of


class PairedLine(QWidget):
    """Chooses two evaluations, newest first; ``Compare`` says in words what differs."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self._context = context
        self._runs: tuple[Evaluation, ...] = ()
        self.first, self.second = self._plans("The first plan"), self._plans("The plan that it is compared with")
        self.button = QPushButton("Co&mpare")
        self.button.setToolTip("Resample the same samples of both: a 95 % interval of their difference")
        self.button.clicked.connect(self.compare)
        self.words = QLabel()
        self.words.setWordWrap(True)
        self.words.setProperty("role", "muted")
        self.words.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        line = QHBoxLayout()
        for widget in (self.first, QLabel("against"), self.second, self.button):
            line.addWidget(widget)
        line.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addLayout(line)
        layout.addWidget(self.words)
        self.words.hide()

    def show_runs(self, runs: Sequence[Evaluation]) -> None:
        """Offer the evaluations, the newest first; what was said of others is dropped."""
        self._runs = tuple(reversed(runs))
        for place, box in enumerate((self.first, self.second)):
            box.clear()
            for run in self._runs:
                box.addItem(f"{run.plan_name} ({run.bits_per_weight:.2f} bits, {run.data_name})")
            box.setCurrentIndex(min(place, len(self._runs) - 1))
        self._say("")
        self.setVisible(len(self._runs) > 1)

    def compare(self) -> None:
        """Compare the chosen evaluations in the engine."""
        self._context.tasks.start(self._comparing())

    async def _comparing(self) -> None:
        runs, chosen = self._runs, (self.first.currentIndex(), self.second.currentIndex())
        if chosen[0] == chosen[1] or min(chosen) < 0:
            self._say("Choose two different evaluations.")
            return
        first, second = (run_of(runs[place]) for place in chosen)
        request = COMPARE_PLANS.request(
            self._context.workspace.state.session, ComparePlansOptions(first=first, second=second)
        )
        found = await self._context.runner.run(request.reduced(), self.compare)
        if found is not None and self._runs is runs:
            self._say(in_words(found))

    def _plans(self, name: str) -> QComboBox:
        box = QComboBox()
        box.setAccessibleName(name)
        box.setToolTip(f"{name}; its value minus the other's is shown")
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        box.setMinimumContentsLength(22)
        box.activated.connect(lambda _: self._say(""))
        return box

    def _say(self, text: str) -> None:
        self.words.setText(text)
        self.words.setVisible(bool(text))


def in_words(found: Sequence[Difference]) -> str:
    """Return a sentence for each metric; what is shown where there is none in common."""
    return "\n".join(one.sentence() for one in found) or "The two evaluations have no metric in common."

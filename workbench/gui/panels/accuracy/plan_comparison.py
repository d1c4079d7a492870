"""Two evaluated plans against each other, sample by sample: is their difference resolved?"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QComboBox, QSizePolicy

from workbench.gui.panels.accuracy.most_changed import run_title
from workbench.gui.panels.panel import PanelPart
from workbench.gui.shell.foreign import as_line
from workbench.gui.shell.widgets import button, combo, fill, label, row
from workbench.insight.quantities import marked_in
from workbench.measurement.evaluation import Evaluation
from workbench.measurement.paired import Difference
from workbench.session.workspace import State
from workbench.steps.checks.compare_plans import COMPARE_PLANS, ComparePlansOptions, run_of


class PlanComparison(PanelPart):
    """Chooses two evaluations, newest first; ``Compare`` says in words what differs."""

    def _build(self) -> None:
        self._runs: tuple[Evaluation, ...] = ()
        self.first, self.second = self._plans("The first plan"), self._plans("The plan that it is compared with")
        tip = "Resample the same samples of both: a 95 % interval of their difference"
        self.button = button("Co&mpare", self.compare, tip)
        self.words = label(role="muted", wrap=True)
        self.words.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.words.hide()
        line = row(self.first, label("against"), self.second, self.button)
        line.setStretchFactor(self.first, 1)
        line.setStretchFactor(self.second, 1)
        fill(self, line, self.words, top=0, gap=2)

    def _plans(self, name: str) -> QComboBox:
        return combo(name, (), lambda: self._say(""), f"{name}; its value minus the other's is shown", letters=22)

    def redraw(self, old: State, new: State) -> None:
        """Offer the evaluations, the newest first; what was said of others is dropped."""
        runs = new.session.evaluations if new.session else ()
        if old.session is not None and old.session.evaluations is runs:
            return
        self._runs = tuple(reversed(runs))
        for place, box in enumerate((self.first, self.second)):
            box.clear()
            box.addItems([as_line(run_title(run)) for run in self._runs])
            box.setCurrentIndex(min(place, len(self._runs) - 1))
        self._say("")
        self.setVisible(len(self._runs) > 1)

    def compare(self) -> None:
        """Compare the chosen evaluations in the engine."""
        runs, chosen = self._runs, (self.first.currentIndex(), self.second.currentIndex())
        if chosen[0] == chosen[1] or min(chosen) < 0:
            self._say("Choose two different evaluations.")
            return
        first, second = (run_of(runs[place]) for place in chosen)
        options = ComparePlansOptions(first=first, second=second)

        def answered(differences: Sequence[Difference]) -> None:
            if self._runs is runs:
                sentences = "\n".join(marked_in(difference.sentence()) for difference in differences)
                self._say(sentences or "The two evaluations have no metric in common.")

        self.context.runner.ask(COMPARE_PLANS.request(self.state.session, options), answered)

    def _say(self, text: str) -> None:
        self.words.setText(text)
        self.words.setVisible(bool(text))

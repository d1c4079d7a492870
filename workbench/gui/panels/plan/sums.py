"""What the present plan comes to: bytes, bits per weight, predicted loss and the time of its kernels, in a line."""

from __future__ import annotations

from workbench.gui.shell.fitted_label import FittedLabel
from workbench.insight.latest import same_objects
from workbench.insight.sums import sums_in_words
from workbench.session.workspace import State

TOLD = (
    "Bytes of the whole model; bits per weight, scales included; the loss of all layers by the metric that is chosen, "
    "lower is better; the median times of the layers' kernels one after another, where they were timed"
)


class PlanSums(FittedLabel):
    """Shows a state's sums; the shorter wordings leave the time, then the loss's name out."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("What the plan comes to")
        self.setToolTip(TOLD)
        self._of: tuple[object, ...] = ()

    def show_state(self, state: State) -> None:
        """Show the state's sums; nothing where its plan does not fit the model."""
        session, totals = state.session, state.totals
        of = (totals, state.assignments, session.timings if session else None, state.metric)
        if same_objects(of, self._of):
            return
        self._of = of
        if session is None or totals is None:
            self.clear()
        else:
            self.say(*sums_in_words(session, state.assignments, totals, state.metric))

"""What the present plan comes to: bytes, bits per weight, predicted loss and the time of its kernels, in a line."""

from __future__ import annotations

from workbench.gui.shell.fitted_label import FittedLabel
from workbench.gui.shell.options import shown_unit
from workbench.insight import quantities
from workbench.insight.roofline import plan_time
from workbench.measurement.units import short_unit
from workbench.planning.plan import Assignment
from workbench.sensitivity.metrics import metric_title
from workbench.session.session import Session
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

    def take(self, state: State) -> None:
        """Show the state's sums; nothing where its plan does not fit the model."""
        session, totals = state.session, state.totals
        of = (totals, state.assignments, session.timings if session else None, state.metric)
        if len(of) == len(self._of) and all(a is b for a, b in zip(of, self._of, strict=True)):
            return
        self._of = of
        if session is None or totals is None:
            self.clear()
            return
        unit = shown_unit(state)
        title = metric_title(state.metric, unit)
        size = f"{quantities.data_size(totals.nbytes)} · {totals.bits_per_weight:.3f} bits per weight"
        missing = "not known with transforms" if session.plan.transforms else "not scored"
        known = f"{quantities.number(totals.predicted)} {short_unit(unit)}".rstrip()
        loss = missing if totals.predicted is None else known
        time = _latency(session, state)
        self.say(f"{size} · {title} {loss} · {time}", f"{size} · {loss} · {time}", f"{size} · {loss}", size)


def _latency(session: Session, state: State) -> str:
    """Say how long the plan's kernels take at the smallest batch that was timed."""
    batch = min((timing.batch for timing in session.timings), default=None)
    found = None if batch is None else plan_time(session.model, state.assignments, session.timings, batch)
    if found is None:
        return "kernels not timed"
    missing = f" ({quantities.plural(found.missing, 'layer')} not timed)" if found.missing else ""
    return f"kernels {quantities.microseconds(found.microseconds)} at batch {batch}{missing}"


def latency(session: Session, assignments: dict[str, Assignment]) -> float | None:
    """Return the microseconds of a plan's kernels at the smallest batch that was timed; None if any of them was not."""
    batch = min((timing.batch for timing in session.timings), default=None)
    found = None if batch is None else plan_time(session.model, assignments, session.timings, batch)
    return None if found is None or found.missing else found.microseconds

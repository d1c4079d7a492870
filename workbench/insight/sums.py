"""What a plan comes to, in a line: bytes, bits per weight, loss and the time of its kernels."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.insight import quantities
from workbench.insight.plan_differences import smallest_batch_time
from workbench.measurement.units import short_unit
from workbench.planning.plan import Assignment
from workbench.planning.totals import Totals
from workbench.sensitivity.metrics import BY_NAME, metric_title
from workbench.session.session import Session


def shown_unit(session: Session | None, metric: str) -> str:
    """Return the unit of a metric's scores for the session's model."""
    table = session.table(metric) if session else None
    return BY_NAME[metric].unit if table is None else table.unit


def sums_in_words(
    session: Session, assignments: Mapping[str, Assignment], totals: Totals, metric: str
) -> tuple[str, ...]:
    """Return the sums of the session's plan in four wordings: the shorter ones leave out the loss's name, then more."""
    unit = shown_unit(session, metric)
    size = f"{quantities.data_size(totals.nbytes)} · {totals.bits_per_weight:.3f} bits per weight"
    if totals.predicted is None:
        loss = "not known with transforms" if session.plan.transforms else "not scored"
    else:
        loss = f"{quantities.number(totals.predicted)} {short_unit(unit)}".rstrip()
    time = _time_in_words(session, assignments)
    return (
        f"{size} · {metric_title(metric, unit)} {loss} · {time}", f"{size} · {loss} · {time}", f"{size} · {loss}", size,
    )  # fmt: skip


def _time_in_words(session: Session, assignments: Mapping[str, Assignment]) -> str:
    """Say how long the plan's kernels take at the smallest batch that was timed."""
    time = smallest_batch_time(session, assignments)
    if time is None:
        return "kernels not timed"
    missing = f" ({quantities.plural(time.missing, 'layer')} not timed)" if time.missing else ""
    return f"kernels {quantities.microseconds(time.microseconds)} at batch {time.batch}{missing}"

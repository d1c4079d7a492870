"""What a plan comes to, in a line: bytes, bits per weight, loss and the time of its kernels."""

from __future__ import annotations

import math
from collections.abc import Mapping

from workbench.insight import quantities
from workbench.insight.plan_differences import smallest_batch_time
from workbench.measurement.units import short_unit
from workbench.models.layer import LayerKind
from workbench.models.summary import quantizable
from workbench.planning.plan import KEEP, Assignment
from workbench.planning.totals import Totals
from workbench.sensitivity.confidence import relative_width
from workbench.sensitivity.metrics import BY_NAME, metric_title
from workbench.session.session import Session


def shown_unit(session: Session | None, metric: str) -> str:
    """Return the unit of a metric's scores for the session's model."""
    table = session.table(metric) if session else None
    return BY_NAME[metric].unit if table is None else table.unit


def whole_bits(session: Session, totals: Totals) -> float:
    """Return the bits per weight over the whole model: embeddings and unquantized tensors count too."""
    return 8 * totals.nbytes / session.model.parameters if session.model.parameters else math.nan


def left_out(session: Session, assignments: Mapping[str, Assignment]) -> tuple[str, ...]:
    """Say which layers a search leaves as they are although they are not locked: in full, and shorter; or nothing."""
    model = session.model
    searched = {layer.name for layer in quantizable(model.layers)} | session.locked
    others = [layer for layer in model.stored if layer.name not in searched]
    if not others or not assignments:
        return ("",)
    share = sum(layer.parameters for layer in others) / max(model.parameters, 1)
    schemes = sorted({assignments[layer.name].weights for layer in others})
    stay = ", ".join("in floating point" if scheme == KEEP else scheme for scheme in schemes)
    names = others[0].name if len(others) == 1 else f"{others[0].name} and {len(others) - 1} more"
    kind = " (embedding)" if others[0].kind is LayerKind.EMBEDDING else ""
    count = quantities.plural(len(others), "layer")
    short = f"A search leaves out {count}, {share:.0%} of the weights"
    return f"{short}: {names}{kind} stays {stay}", short, f"{count} left out"


def sums_in_words(
    session: Session, assignments: Mapping[str, Assignment], totals: Totals, metric: str
) -> tuple[str, ...]:
    """Return the sums of the session's plan in five wordings: the shorter ones leave out the loss's name, then more."""
    unit = shown_unit(session, metric)
    bits = f"{totals.bits_per_weight:.3f} bits per weight"
    size = f"{quantities.data_size(totals.nbytes)} · {bits}"
    whole = f"{size} ({whole_bits(session, totals):.2f} in the whole model)"
    if totals.predicted is None:
        loss = "not known with transforms" if session.plan.transforms else "not scored"
    else:
        width = relative_width(totals.predicted, totals.error)
        sure = "" if width is None else f" ±{100 * width:.2g} %"
        loss = f"{quantities.number(totals.predicted)} {short_unit(unit)}".rstrip() + sure
    time = _time_in_words(session, assignments)
    return (
        f"{whole} · {metric_title(metric, unit)} {loss} · {time}", f"{whole} · {loss} · {time}", f"{whole} · {loss}",
        f"{size} · {loss}", size,
    )  # fmt: skip


def _time_in_words(session: Session, assignments: Mapping[str, Assignment]) -> str:
    """Say how long the plan's kernels take at the smallest batch that was timed."""
    time = smallest_batch_time(session, assignments)
    if time is None:
        return "kernels not timed"
    missing = f" ({quantities.plural(time.missing, 'layer')} not timed)" if time.missing else ""
    return f"kernels {quantities.microseconds(time.microseconds)} at batch {time.batch}{missing}"

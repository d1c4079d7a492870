"""What a plan's sums count: their unit, bits over the whole model, and what a search leaves out."""

from __future__ import annotations

import math
from collections.abc import Mapping

from workbench.insight import quantities
from workbench.insight.latest import Latest
from workbench.models.layer import Layer, LayerKind
from workbench.models.summary import ModelSummary, quantizable
from workbench.planning.plan import KEEP, Assignment
from workbench.planning.totals import Totals
from workbench.sensitivity.metrics import BY_NAME
from workbench.session.session import Session


def shown_unit(session: Session | None, metric: str) -> str:
    """Return the unit of a metric's scores for the session's model."""
    table = session.table(metric) if session else None
    return BY_NAME[metric].unit if table is None else table.unit


def whole_bits(session: Session, totals: Totals) -> float:
    """Return the bits per weight over the whole model: embeddings and unquantized tensors count too."""
    return 8 * totals.nbytes / session.model.parameters if session.model.parameters else math.nan


@Latest
def _others(model: ModelSummary, locked: frozenset[str]) -> list[Layer]:
    searched = {layer.name for layer in quantizable(model.layers)} | locked
    return [layer for layer in model.stored if layer.name not in searched]


def left_out(session: Session, assignments: Mapping[str, Assignment]) -> tuple[str, ...]:
    """Say which layers a search leaves as they are although they are not locked: in full, and shorter; or nothing."""
    model, others = session.model, _others(session.model, session.locked)
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

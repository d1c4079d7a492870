"""What a plan's sums count: their unit, bits over the whole model, and what a search leaves out."""

from __future__ import annotations

import math

from workbench.deployment.targets import target as target_of
from workbench.insight import quantities
from workbench.measurement.units import is_divergence, loss_unit
from workbench.models.layer import Layer, LayerKind
from workbench.models.summary import ModelSummary, searchable
from workbench.planning.latest import Latest
from workbench.planning.plan import KEEP
from workbench.planning.totals import Totals, cached_layers, quantized_inputs
from workbench.sensitivity.metrics import BY_NAME, metric_title
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session
from workbench.session.workspace import State


def shown_unit(session: Session | None, metric: str) -> str:
    """Return the unit of a metric's scores for the session's model."""
    table, unit = session.table(metric) if session else None, BY_NAME[metric].unit
    if table is not None:
        return table.unit
    return loss_unit(session.model.output) if session is not None and is_divergence(unit) else unit


def note_in_words(session: Session | None, note: str) -> str:
    """Return a note of a session, where it begins with a metric's name with the metric's title."""
    name, joint, text = note.partition(": ")
    return f"{metric_title(name, shown_unit(session, name))}{joint}{text}" if joint and name in BY_NAME else note


_rounded, _cached = Latest(quantized_inputs), Latest(cached_layers)


def activations(state: State) -> tuple[list[str], list[str]]:
    """Return what of the plan's rounded activations its predicted loss includes, and what it does not (no scores)."""
    session = state.session
    if session is None or not state.assignments:
        return [], []
    rounded, cached = _rounded(session.model, state.assignments), _cached(session.model.layers, state.assignments)
    included, missing = list[str](), list[str]()
    for what, places, table in (
        ("the rounded inputs", rounded, session.inputs_table(state.metric)),
        ("the rounded keys and values", cached, session.cache_table(state.metric)),
    ):
        if places:
            (included if table is not None else missing).append(f"{what} of {quantities.plural(len(places), 'layer')}")
    return included, missing


def whole_bits(session: Session, totals: Totals) -> float:
    """Return the bits per weight over the whole model: embeddings and unquantized tensors count too."""
    return 8 * totals.nbytes / session.model.parameters if session.model.parameters else math.nan


@Latest
def _others(model: ModelSummary, table: Sensitivity | None, locked: frozenset[str], target: str) -> list[Layer]:
    searched = {layer.name for layer in searchable(model.layers)} | locked
    tables, legal = model.embeddings, target_of(target).legal if target else None
    for layer in model.layers:
        if layer.name in tables:
            scored = () if table is None else [name for name in table.schemes if table.of(layer.name, name) >= 0]
            runs = any(legal is None or not legal(layer, name, None) for name in scored)
            if layer.name in locked or table is not None and not runs:
                searched.discard(layer.name)
    return [layer for layer in model.stored if layer.name not in searched]


def left_out(state: State) -> tuple[str, ...]:
    """State which layers a search leaves as they are: in full, and shorter; or nothing.

    Locked layers are not listed, but embeddings are: locking one is how a user leaves it out.
    """
    session, assignments = state.session, state.assignments
    if session is None or not assignments:
        return ("",)
    others = _others(session.model, session.table(state.metric), session.locked, state.target)
    if not others:
        return ("",)
    model = session.model
    share = sum(layer.parameters for layer in others) / max(model.parameters, 1)
    schemes = sorted({assignments[layer.name].weights for layer in others})
    stay = ", ".join("in floating point" if scheme == KEEP else scheme for scheme in schemes)
    names = others[0].name if len(others) == 1 else f"{others[0].name} and {len(others) - 1} more"
    kind = " (embedding)" if others[0].kind is LayerKind.EMBEDDING else ""
    count = quantities.plural(len(others), "layer")
    short = f"A search leaves out {count}, {quantities.fixed(100 * share, 0)} % of the weights"
    return f"{short}: {names}{kind} stays {stay}", short, f"{count} left out"

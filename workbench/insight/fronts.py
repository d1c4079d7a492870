"""The front of best plans, what stands beside it (uniform, evaluated and present plans), why a layer is as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from workbench.errors import WorkbenchError
from workbench.insight import quantities
from workbench.insight.legality import refused_cells, within_target
from workbench.insight.roofline import plan_microseconds
from workbench.insight.sums import activations
from workbench.measurement.units import is_divergence, short_unit
from workbench.models.layer import Layer
from workbench.models.summary import searchable
from workbench.planning.budgets import MeasuredTimes
from workbench.planning.constraints import Constraints
from workbench.planning.explain import explain, next_purchase
from workbench.planning.latest import same_objects
from workbench.planning.plan import KEEP, Assignment, Plan, resolve
from workbench.planning.search.search import Front, pareto
from workbench.planning.totals import Totals, cached_layers, layer_bits, quantized_inputs, totals
from workbench.sensitivity.table import Sensitivity
from workbench.session.calibrated_ranges import identity
from workbench.session.session import Session
from workbench.session.workspace import State

UniformPlan = tuple[str, float, float]
"""A scheme for every layer: its name, cost and loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """An evaluated plan: its ``cost``, the measured value with its interval, and the prediction or None."""

    name: str
    cost: float
    value: float
    low: float
    high: float
    predicted: float | None


SharedChoices = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picture:
    """Everything that is drawn; costs in ``cost_unit`` (MB or µs), losses in ``unit``."""

    cost: np.ndarray
    bits_per_weight: np.ndarray
    loss: np.ndarray
    unit: str
    cost_unit: str = "MB"
    present: tuple[float, float] | None = None
    uniform: tuple[UniformPlan, ...] = ()
    measured: tuple[Measured, ...] = ()
    apart: str = ""
    """What follows "everywhere" in the name of a uniform plan."""
    weights_only: bool = False
    """Whether the present plan's loss lacks that of its rounded inputs or cache, which have no scores."""

    def same_but_present(self, other: Picture) -> bool:
        """Return whether only the current plan may differ."""
        names = ("uniform", "measured", "unit", "cost_unit", "apart", "weights_only")
        return self.loss is other.loss and all(getattr(self, name) == getattr(other, name) for name in names)


def front_of(session: Session, table: Sensitivity, batch: int | None, target: str = "") -> Front:
    """Return the front by size, or by the kernel times at a batch size, of what ``target`` runs (empty: anything).

    Raises WorkbenchError where there is none.
    """
    rules = within_target(Constraints(locked=session.locked, keep_inputs=True), target, session.model)
    _, inputs, cache = session.tables(table.metric)
    times = None if batch is None else MeasuredTimes.from_timings(session.timings, batch)
    return pareto(session.model, table, session.plan, constraints=rules, inputs=inputs, cache=cache, times=times)


def picture_of(
    state: State, front: Front, uniform: tuple[UniformPlan, ...], measured: tuple[Measured, ...], batch: int | None
) -> Picture:
    """Return what is drawn of a front of the state's session."""
    session = state.session
    assert session is not None
    table, by_size = session.require_table(state.metric), front.microseconds is None
    cost, loss = present_cost(state, batch), state.totals.predicted if state.totals else None
    return Picture(
        cost=front.nbytes / 1e6 if front.microseconds is None else front.microseconds,
        bits_per_weight=front.bits_per_weight, loss=front.loss, unit=short_unit(table.unit) or "rel. error",
        cost_unit="MB" if by_size else "µs", present=None if cost is None or loss is None else (cost, loss),
        uniform=uniform, measured=measured if is_divergence(table.unit) else (),
        apart=apart(session, state.assignments), weights_only=bool(activations(state)[1]),
    )  # fmt: skip


def present_cost(state: State, batch: int | None) -> float | None:
    """Return the current plan's MB, or its microseconds at a batch size; None where a scheme was not timed."""
    if batch is None:
        return state.totals.nbytes / 1e6 if state.totals else None
    return None if state.session is None else plan_microseconds(state.session, state.assignments, batch)


def shared_choices(session: Session, assignments: Mapping[str, Assignment]) -> SharedChoices:
    """Return what uniform plans take over from a plan: the schemes of the layers' inputs, those of keys and values, and
    the embeddings that stay in floating point."""
    if not assignments:
        return (), (), ()
    model = session.model
    cached, tables = cached_layers(model.layers, assignments), sorted(model.embeddings)
    floating = tuple(name for name in tables if assignments[name].weights == KEEP)
    return tuple(quantized_inputs(model, assignments).items()), tuple(cached.items()), floating


def apart(session: Session, assignments: Mapping[str, Assignment]) -> str:
    """Return what uniform plans leave as it is, to follow the word "everywhere"; empty where that is nothing."""
    return " but in embeddings" if shared_choices(session, assignments)[-1] else ""


def uniform_plans(
    session: Session, table: Sensitivity, batch: int | None, assignments: Mapping[str, Assignment], target: str
) -> tuple[UniformPlan, ...]:
    """Return one scheme for every layer that a search may change, and that ``target`` (empty: any) runs there;
    activations, and embeddings in floating point, are as in ``assignments``.

    The last ones, by size and by time, are kept: dashboard, front and report show the same.
    """
    choices, beside = (*shared_choices(session, assignments), target), session.tables(table.metric)[1:]
    basis = session.model, table, *beside, session.timings if batch is not None else None, batch
    known = _uniform.get(batch is None)
    if known is None or not same_objects(known[0], basis) or known[1] != choices:
        known = _uniform[batch is None] = basis, choices, _uniform_plans(session, table, batch, choices)
    return known[2]


_uniform: dict[bool, tuple[tuple[object, ...], tuple[*SharedChoices, str], tuple[UniformPlan, ...]]] = {}


def _uniform_plans(
    session: Session, table: Sensitivity, batch: int | None, choices: tuple[*SharedChoices, str]
) -> tuple[UniformPlan, ...]:
    *activations, floating, target = choices
    rounded, cached = map(dict[str, str], activations)
    layers = [x for x in searchable(session.model.layers) if x.name in table.row and x.name not in floating]
    stored = [table.row[layer.name] for layer in layers if layer.tied_to is None]
    refused = refused_cells(session.model, table, target)[stored]
    runs = [scheme for scheme, cells in zip(table.schemes, refused.T, strict=True) if not cells.any()]
    _, *beside = session.tables(table.metric)
    if batch is None and table.directions is None:
        return tuple(plan for plan in _uniform_sums(session, table, layers, rounded, cached) if plan[0] in runs)
    plans = []
    for scheme in runs:
        uniform = _assigned(session, layers, scheme, rounded, cached)
        sums = totals(session.model, uniform, table, *beside)
        cost = sums.nbytes / 1e6 if batch is None else plan_microseconds(session, uniform, batch)
        if sums.predicted is not None and cost is not None:
            plans.append((scheme, cost, sums.predicted))
    return tuple(plans)


def uniform_assignments(
    session: Session, table: Sensitivity, scheme: str, assignments: Mapping[str, Assignment]
) -> dict[str, Assignment]:
    """Return what one of :func:`uniform_plans` gives every layer."""
    *activations, floating = shared_choices(session, assignments)
    layers = [x for x in searchable(session.model.layers) if x.name in table.row and x.name not in floating]
    return _assigned(session, layers, scheme, *map(dict[str, str], activations))


def _assigned(
    session: Session, layers: list[Layer], scheme: str, rounded: Mapping[str, str], cached: Mapping[str, str]
) -> dict[str, Assignment]:
    plain = resolve(Plan.uniform(layers, scheme), session.model.layers)
    return {name: replace(of, inputs=rounded.get(name), cache=cached.get(name)) for name, of in plain.items()}


def _uniform_sums(
    session: Session, table: Sensitivity, layers: list[Layer], rounded: Mapping[str, str], cached: Mapping[str, str]
) -> tuple[UniformPlan, ...]:
    """Return uniform plans by size where losses of layers simply add up: whole columns of the table at once."""
    _, *beside = session.tables(table.metric)
    plain = resolve(replace(session.plan, rules=(), transforms=()), session.model.layers)
    base = {name: replace(of, inputs=rounded.get(name), cache=cached.get(name)) for name, of in plain.items()}
    sums = totals(session.model, base, table, *beside)
    stored = [layer for layer in layers if layer.tied_to is None]
    losses = table.score[[table.row[layer.name] for layer in stored]].sum(axis=0)
    alike = Counter((layer.matrix, layer.parameters, layer.dtype) for layer in stored)
    examples = {(layer.matrix, layer.parameters, layer.dtype): layer for layer in stored}

    def bits(scheme: str) -> int:
        return sum(count * layer_bits(examples[kind], scheme) for kind, count in alike.items())

    plans = []
    for scheme, loss in zip(table.schemes, losses, strict=True):
        if sums.second_order is not None and not np.isnan(loss):
            nbytes = sums.nbytes + (bits(scheme) - bits(KEEP)) / 8
            plans.append((scheme, nbytes / 1e6, table.whole(sums.second_order + float(loss))))
    return tuple(plans)


def evaluated_plans(session: Session, batch: int | None) -> tuple[Measured, ...]:
    """Return the evaluated plans; by time only those that the session still holds."""
    plans = []
    for run in session.evaluations:
        cost = run.nbytes / 1e6 if batch is None else _time_of(session, run.plan_hash, batch)
        divergence = run.divergence
        if divergence is not None and cost is not None:
            plans.append(
                Measured(name=run.plan_name, cost=cost, value=divergence.value, low=divergence.low,
                         high=divergence.high, predicted=run.predicted_kl)
            )  # fmt: skip
    return tuple(plans)


def _time_of(session: Session, plan_hash: str, batch: int) -> float | None:
    for plan in (session.plan, *session.plans.values()):
        if identity(session, plan) == plan_hash:
            return plan_microseconds(session, resolve(plan, session.model.layers), batch)
    return None


def why(
    front: Front, layer: str, assignments: Mapping[str, Assignment], totals: Totals, table: Sensitivity | None
) -> str:
    """Return a few sentences about a layer of a plan; what is wrong where it cannot be explained."""
    try:
        explanation = explain(front, assignments, layer, table, totals.nbytes)
    except WorkbenchError as error:
        return str(error)
    sentence = quantities.marked_in(explanation.sentence)
    unit = (short_unit(table.unit) if table is not None else "") or "of the loss"
    purchase = next_purchase(front, totals.nbytes)
    if purchase is None:
        return f"{layer}: {sentence}. No larger scheme avoids any loss."
    layers = purchase.layers[0] if len(purchase.layers) == 1 else quantities.plural(len(purchase.layers), "layer")
    return (
        f"{layer}: {sentence}. The next {quantities.data_size(purchase.nbytes)} take {layers} from "
        f"{purchase.before} to {purchase.after} and avoid {quantities.loss(purchase.loss)} {unit}."
    )

"""Plans of one model with what each costs, and the layers that two of them store differently."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.errors import WorkbenchError
from workbench.insight import quantities
from workbench.insight.layer_facts import weight_loss
from workbench.insight.roofline import PlanTime, plan_time
from workbench.planning.latest import Latest
from workbench.planning.plan import Assignment, Plan, resolve
from workbench.planning.totals import Totals, layer_bits, totals
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session
from workbench.session.workspace import State

PRESENT = ""
"""Stands among the names of plans for the plan that is edited; no saved plan has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedPlan:
    """A plan by its name, what it gives every layer, and what that costs (None where it does not fit the model).

    ``microseconds`` is the time of its kernels, None where one of them was not timed.
    """

    name: str
    plan: Plan
    assignments: Mapping[str, Assignment] = field(default_factory=dict)
    totals: Totals | None = None
    microseconds: float | None = None

    @property
    def title(self) -> str:
        """Its name, or what the window calls the plan that is edited."""
        return self.name or "current plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A layer that two plans store differently: schemes, bytes and losses of both."""

    layer: str
    schemes: tuple[str, str]
    nbytes: tuple[float, float]
    losses: tuple[float, float]
    assignments: tuple[Assignment, Assignment] = (Assignment(), Assignment())

    def sentence(self, unit: str) -> str:
        """Describe what changes and by how much: ``int4-g32 to int8, +35 kB, −0.0004 nats``."""
        parts = [quantities.signed(self.nbytes[1] - self.nbytes[0], quantities.data_size)]
        if not math.isnan(change := self.losses[1] - self.losses[0]):
            parts.append(f"{quantities.signed(change, quantities.number)} {unit}".rstrip())
        return f"{self.schemes[0]} to {self.schemes[1]}, {', '.join(parts)}"


def priced(session: Session, name: str, plan: Plan, metric: str) -> PricedPlan:
    """Return a plan with its totals for the session's model, the loss by the table of ``metric``."""
    try:
        assignments = resolve(plan, session.model.layers)
    except WorkbenchError:
        return PricedPlan(name=name, plan=plan)
    time = smallest_batch_time(session, assignments)
    return PricedPlan(
        name=name, plan=plan, assignments=assignments,
        totals=totals(session.model, assignments, *session.tables(metric)),
        microseconds=None if time is None or time.missing else time.microseconds,
    )  # fmt: skip


def smallest_batch_time(session: Session, assignments: Mapping[str, Assignment]) -> PlanTime | None:
    """Return the time of a plan's kernels at the smallest batch that was timed; None where none was."""
    batch = min((timing.batch for timing in session.timings), default=None)
    return None if batch is None else plan_time(session.model, assignments, session.timings, batch)


def differences(session: Session, first: PricedPlan, second: PricedPlan, metric: str) -> tuple[Difference, ...]:
    """Return the stored layers whose schemes differ, in model order; none where a plan does not fit the model."""
    if not first.assignments or not second.assignments:
        return ()
    tables = session.tables(metric)
    rows = []
    for layer in session.model.stored:
        a, b = first.assignments[layer.name], second.assignments[layer.name]
        schemes = _schemes(a), _schemes(b)
        if schemes[0] != schemes[1]:
            rows.append(
                Difference(
                    layer=layer.name, schemes=schemes,
                    nbytes=(layer_bits(layer, a.weights) / 8, layer_bits(layer, b.weights) / 8),
                    losses=(_loss(layer.name, a, *tables), _loss(layer.name, b, *tables)), assignments=(a, b),
                )
            )  # fmt: skip
    return tuple(rows)


def contrasted(state: State) -> Mapping[str, Difference]:
    """Return the layers in which the two plans that the user marked differ, by name; none where none are marked."""
    if state.session is None or not state.contrast or not state.assignments:
        return {}
    return _contrasted(state.session, state.assignments, state.contrast, state.metric)


def _differing(
    session: Session, present: Mapping[str, Assignment], names: tuple[str, str], metric: str
) -> Mapping[str, Difference]:
    plans = {**session.plans, PRESENT: session.plan}
    sides = []
    for name in names:
        try:
            resolved = present if name == PRESENT else resolve(plans[name], session.model.layers)
        except (WorkbenchError, KeyError):  # a plan that does not fit the model, or was deleted
            return {}
        sides.append(PricedPlan(name=name, plan=plans[name], assignments=resolved))
    first, second = sides
    return {row.layer: row for row in differences(session, first, second, metric)}


_contrasted = Latest(_differing)


def _loss(
    layer: str, assignment: Assignment, table: Sensitivity | None, inputs: Sensitivity | None, cache: Sensitivity | None
) -> float:
    """Return what the layer's weight and, where scored, its input and cache add to the loss; NaN without a table."""
    others = ((inputs, assignment.inputs), (cache, assignment.cache))
    weights = weight_loss(table, layer, assignment.weights)
    return weights + sum(losses.of(layer, scheme) for losses, scheme in others if losses and scheme)


def _schemes(assignment: Assignment) -> str:
    parts = (assignment.weights, assignment.inputs, assignment.cache and f"cache {assignment.cache}")
    return " · ".join(part for part in parts if part)

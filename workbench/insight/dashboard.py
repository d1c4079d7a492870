"""The key figures of a plan, each with its change since the last saved plan and against the best uniform one."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from workbench.insight import quantities
from workbench.insight.fronts import UniformPlan, apart, shared_choices, uniform_assignments, uniform_plans
from workbench.insight.layer_facts import weight_loss
from workbench.insight.plan_differences import priced, smallest_batch_time
from workbench.insight.roofline import PlanTime
from workbench.insight.sums import activations, shown_unit, whole_bits
from workbench.measurement.evaluation import Evaluation
from workbench.measurement.units import short_unit
from workbench.planning.latest import same_objects
from workbench.planning.plan import Assignment, Plan, resolve
from workbench.planning.totals import Totals, layer_bits, totals
from workbench.sensitivity.confidence import interval
from workbench.sensitivity.metrics import metric_title
from workbench.sensitivity.table import Sensitivity
from workbench.session.calibrated_ranges import identity
from workbench.session.edits import last_saved
from workbench.session.session import Session
from workbench.session.workspace import State

UNIFORM_LIMIT = 300
"""Layers up to which uniform plans are priced at once, within a frame."""

SIZE_TIP = (
    "Bytes of every tensor of the model under the plan: quantized weights with their scales and zero points, and what "
    "stays as it is; smaller than all of them unquantized."
)
BITS_TIP = (
    "8 × bytes ÷ weights, scales and zero points included: over the layers that are searched or quantized; in the "
    "whole model, embeddings and all unquantized tensors count too."
)
TIME_TIP = "Sum of the median times of the layers' kernels, one after another, at the smallest batch that was timed."


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How a figure differs from that of another plan, such as ``−35 kB``; ``better`` is None where it is equal.

    ``kind`` of the other plan: ``saved`` or ``uniform``; ``against`` is its name.
    """

    kind: str
    against: str
    text: str
    better: bool | None

    @property
    def sentence(self) -> str:
        """The difference and the plan that it is from."""
        return f"{self.text} {'as' if self.better is None else 'against'} {self.against}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFigure:
    """A figure as it is shown: ``detail`` is its interval or what else belongs to it, ``tip`` says what it is.

    ``short`` stands in place of a detail for which there is no room.
    """

    title: str
    value: str
    detail: str = ""
    short: str = ""
    differences: tuple[Difference, ...] = ()
    tip: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Amounts:
    """The plan's figures as numbers, None where one is not known; ``name`` and ``kind`` of the plan."""

    name: str
    kind: str = "saved"
    size: float | None = None
    bits: float | None = None
    predicted: float | None = None
    measured: float | None = None
    time: float | None = None


class Dashboard:
    """Makes the key figures of states; what did not change since the last one is not computed again."""

    def __init__(self) -> None:
        self._basis: tuple[object, ...] = ()
        self._saved = _Amounts(name="")
        self.waits = False
        """Whether the best uniform plan is not known yet; :func:`best_uniform` finds it."""

    def figures(self, state: State) -> tuple[KeyFigure, ...]:
        """Return size, bits, predicted and measured loss and time of the state's plan; none without one."""
        session, sums, self.waits = state.session, state.totals, False
        if session is None or sums is None:
            return ()
        run = evaluation_of(session, session.plan, sums)
        time = smallest_batch_time(session, state.assignments)
        here = _amounts("", "saved", sums, _divergence(run), time)
        others = self._others(session, state)

        def differing(field: str, show: Callable[[float], str]) -> tuple[Difference, ...]:
            pairs = ((other, getattr(here, field), getattr(other, field)) for other in others)
            return tuple(_difference(other, a, b, show) for other, a, b in pairs if a is not None and b is not None)

        return (
            KeyFigure(title="Size", value=quantities.data_size(sums.nbytes), tip=SIZE_TIP,
                      detail=quantities.reduction(session.model.nbytes, sums.nbytes),
                      differences=differing("size", quantities.data_size)),
            KeyFigure(title="Bits per weight", value=quantities.fixed(sums.bits_per_weight, 3), tip=BITS_TIP,
                      detail=f"{quantities.fixed(whole_bits(session, sums), 2)} whole model",
                      differences=differing("bits", lambda bits: quantities.fixed(bits, 3))),
            _predicted(session, state, sums, differing("predicted", quantities.number)),
            _measured(run, differing("measured", quantities.number)),
            _timed(time, differing("time", quantities.microseconds)),
        )  # fmt: skip

    def _others(self, session: Session, state: State) -> tuple[_Amounts, ...]:
        """Return the last saved plan and the best uniform one that is not larger, where there are such."""
        others = []
        name = last_saved(session.plans)
        if name and session.plans[name].rules != session.plan.rules:
            runs = session.timings, session.evaluations, session.active_ranges
            basis = session.plans[name], session.model, session.sensitivities, *runs, state.metric
            if not same_objects(self._basis, basis):
                self._basis, self._saved = basis, _saved(session, name, state.metric)
            others.append(self._saved)
        best, self.waits = best_uniform(state, at_once=len(session.model.layers) <= UNIFORM_LIMIT)
        return tuple(others if best is None else (*others, best))


def best_uniform(state: State, *, at_once: bool = True) -> tuple[_Amounts | None, bool]:
    """Return what the best uniform plan that is not larger than the state's comes to (None where there is none), and
    whether it is still to be worked out, which takes many frames at thousands of layers: then not ``at_once``."""
    global _uniform
    session, table = state.session, state.session.table(state.metric) if state.session else None
    if session is None or table is None or state.totals is None:
        return None, False
    runs = session.timings, session.evaluations, session.active_ranges, session.plans
    basis = session.model, table, *session.tables(table.metric)[1:], *runs
    choices = (*shared_choices(session, state.assignments), state.target)
    if not same_objects(_uniform[0], basis) or _uniform[1] != choices:
        if not at_once:
            return None, True
        _uniform = basis, choices, uniform_plans(session, table, None, state.assignments, state.target), {}
    plans, amounts = _uniform[2:]
    fitting = (plan for plan in plans if plan[1] * 1e6 <= state.totals.nbytes + 0.5)
    best = min(fitting, key=lambda plan: plan[2], default=None)
    if best is not None and best not in amounts:
        if not at_once:
            return None, True
        amounts[best] = _uniform_amounts(session, state, table, best)
    return amounts[best] if best is not None else None, False


_uniform: tuple[tuple[object, ...], object, tuple[UniformPlan, ...], dict[UniformPlan, _Amounts]] = (), (), (), {}
"""What uniform plans depend on, what they are, and what those come to that were the best."""


def _uniform_amounts(session: Session, state: State, table: Sensitivity, best: UniformPlan) -> _Amounts:
    scheme, _, loss = best
    assigned = uniform_assignments(session, table, scheme, state.assignments)
    sums, time = totals(session.model, assigned), smallest_batch_time(session, assigned)
    name = f"{scheme} everywhere{apart(session, state.assignments)}"
    return replace(_amounts(name, "uniform", sums, _measured_like(session, assigned, sums), time), predicted=loss)


def _amounts(name: str, kind: str, sums: Totals, measured: float | None, time: PlanTime | None) -> _Amounts:
    return _Amounts(
        name=name, kind=kind, size=sums.nbytes, bits=sums.bits_per_weight, predicted=sums.predicted, measured=measured,
        time=time.microseconds if time and not time.missing else None,
    )  # fmt: skip


def _measured_like(session: Session, assigned: Mapping[str, Assignment], sums: Totals) -> float | None:
    """Return the measured loss of a plan of the session that stores and rounds every layer as ``assigned`` does."""
    for plan in session.plans.values():
        run = evaluation_of(session, plan, sums)
        of = resolve(plan, session.model.layers) if run is not None else {}
        if run and all((of[name].weights, of[name].inputs) == (a.weights, a.inputs) for name, a in assigned.items()):
            return _divergence(run)
    return None


def evaluation_of(session: Session, plan: Plan, totals: Totals) -> Evaluation | None:
    """Return the latest evaluation of a plan with the present ranges; hashed only where its bytes are those of one."""
    runs = [run for run in reversed(session.evaluations) if run.notes or run.nbytes == totals.nbytes]
    own = identity(session, plan) if runs else ""
    return next((run for run in runs if run.plan_hash == own), None)


def _divergence(run: Evaluation | None) -> float | None:
    metric = run.divergence if run else None
    return metric.value if metric else None


def _saved(session: Session, name: str, metric: str) -> _Amounts:
    plan = priced(session, name, session.plans[name], metric)
    if plan.totals is None:
        return _Amounts(name=name)
    run = evaluation_of(session, plan.plan, plan.totals)
    return replace(_amounts(name, "saved", plan.totals, _divergence(run), None), time=plan.microseconds)


def _difference(other: _Amounts, here: float, there: float, show: Callable[[float], str]) -> Difference:
    amount = 0.0 if math.isclose(here, there) else here - there  # sums of the same numbers in another order
    text = quantities.signed(amount, show) if amount else "the same"
    return Difference(kind=other.kind, against=other.name, text=text, better=None if not amount else amount < 0)


def between(low: float, high: float) -> str:
    """Return an interval in words."""
    return f"{quantities.number(low)} to {quantities.number(high)}"


def _width(low: float, high: float) -> str:
    return f"±{quantities.short(100 * (high - low) / (high + low), 2)} %" if high + low > 0 else ""


def _predicted(session: Session, state: State, totals: Totals, differences: tuple[Difference, ...]) -> KeyFigure:
    unit, table = shown_unit(session, state.metric), session.table(state.metric)
    sure = interval(totals.predicted, totals.error, totals.doubt)
    missing = "not known with transforms" if session.plan.transforms else "not scored"
    tip = "Sum of the scores of all layers' schemes, and of what their errors cost together; lower is better."
    if table is not None and table.samples:
        data = session.calibration.name if session.calibration else "the calibration data"
        tip += f"\nFrom {quantities.plural(table.samples, 'sample')} of {data}."
    if sure:
        tip += "\nThe range holds the mean of other samples of the same data 95 times in 100."
    remark = table.remark(totals.second_order) if table is not None else ""
    if remark:
        tip += f"\nCoarse plan: {quantities.marked_in(remark)}."
    title, missing_parts = _with_unit(metric_title(state.metric, unit), unit), activations(state)[1]
    if missing_parts:
        tip += (
            f"\nOf weights alone: {' and '.join(missing_parts)} have no scores yet. Sensitivity (F6) by the predicted "
            "KL of inputs, or of the KV cache, adds them."
        )
    if totals.predicted is None:
        return KeyFigure(title=title, value=quantities.NONE, detail=missing, tip=tip)
    return KeyFigure(
        title=title, value=quantities.number(totals.predicted), differences=differences, tip=tip,
        detail="of weights alone" if missing_parts else between(*sure) if sure else "",
        short="weights alone" if missing_parts else _width(*sure) if sure else "",
    )  # fmt: skip


def _with_unit(title: str, unit: str) -> str:
    return f"{title} ({short_unit(unit)})" if short_unit(unit) else title


def _measured(run: Evaluation | None, differences: tuple[Difference, ...]) -> KeyFigure:
    metric = run.divergence if run else None
    if run is None or metric is None:
        tip = "Evaluate the plan (F8) to measure it."
        return KeyFigure(title="Measured", value=quantities.NONE, detail="not evaluated", tip=tip)
    return KeyFigure(
        title=_with_unit(metric_title("measured_kl", metric.unit), metric.unit), value=quantities.number(metric.value),
        detail=between(metric.low, metric.high), short=_width(metric.low, metric.high), differences=differences,
        tip=f"Divergence of the quantized model's outputs from the floating-point model's: the mean over "
        f"{quantities.plural(metric.samples, 'sample')} of {run.data_name}.\nThe range is the 95 % bootstrap interval.",
    )  # fmt: skip


def _timed(time: PlanTime | None, differences: tuple[Difference, ...]) -> KeyFigure:
    if time is None or time.missing:
        detail = "not timed" if time is None else f"{quantities.plural(time.missing, 'layer')} not timed"
        return KeyFigure(title="Kernels", value=quantities.NONE, detail=detail, tip=f"{TIME_TIP} Time them with F9.")
    ratio = f"{quantities.fixed(time.baseline / time.microseconds, 2)}×" if time.microseconds else ""
    return KeyFigure(
        title="Kernels", value=quantities.microseconds(time.microseconds), short=f"{ratio} as fast",
        detail=f"{ratio} as fast as floating point, batch {time.batch}",
        tip=f"{TIME_TIP}\nOn {time.device}.", differences=differences,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What layers take under a scheme: bits per weight, bytes and, where it is known, the sum of their scores."""

    bits: float
    nbytes: float
    loss: float


def cost_of(state: State, layers: Iterable[str], scheme: str | None) -> Cost:
    """Return what stored layers cost under a scheme, under their present ones for None; NaN is what is not known."""
    session = state.session
    assert session is not None
    table, bits, weights, losses = session.table(state.metric), 0, 0, 0.0
    for name in layers:
        layer = session.model.by_name[name]
        if layer.tied_to is None:
            present = scheme or state.assignments[name].weights
            bits += layer_bits(layer, present)
            weights += layer.parameters
            losses += weight_loss(table, name, present)
    return Cost(bits=bits / weights if weights else math.nan, nbytes=bits / 8, loss=losses)


def cost_in_words(state: State, layers: Collection[str], scheme: str) -> str:
    """Describe what layers take under a scheme: ``4.50 bits · 32.8 kB · 0.0012 nats``."""
    cost = cost_of(state, layers, scheme)
    parts = [f"{quantities.fixed(cost.bits, 2)} bits", quantities.data_size(cost.nbytes)]
    if not math.isnan(cost.loss):
        parts.append(f"{quantities.number(cost.loss)} {short_unit(shown_unit(state.session, state.metric))}".rstrip())
    return " · ".join(parts)


def change_in_words(state: State, layers: Collection[str], scheme: str) -> str:
    """Describe what a scheme would change for layers: ``−35 kB, +0.0004 nats``; empty where nothing would change."""
    session = state.session
    if session is None or any(name not in state.assignments for name in layers):
        return ""
    if all(state.assignments[name].weights == scheme for name in layers):
        return ""
    now, then = cost_of(state, layers, None), cost_of(state, layers, scheme)
    unit = short_unit(shown_unit(session, state.metric))
    parts = [quantities.signed(then.nbytes - now.nbytes, quantities.data_size)]
    if not math.isnan(then.loss - now.loss):
        parts.append(f"{quantities.signed(then.loss - now.loss, quantities.number)} {unit}".rstrip())
    return ", ".join(parts)

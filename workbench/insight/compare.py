"""Two sessions side by side: what they were made from, what each gives every layer, what each measured."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass

from workbench.errors import WorkbenchError
from workbench.insight.layer_facts import weight_loss
from workbench.insight.quantities import fixed, number
from workbench.measurement.evaluation import Metric
from workbench.planning.plan import Assignment, resolve
from workbench.planning.totals import Totals, layer_bits, plan_totals
from workbench.sensitivity.confidence import interval
from workbench.sensitivity.metrics import TABLE_METRICS, metric_title
from workbench.sensitivity.table import Sensitivity
from workbench.session.calibrated_ranges import identity
from workbench.session.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one session gives a layer: the assignment, bits per weight, and the loss by its table (None: unknown)."""

    assignment: Assignment
    bits: float
    loss: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPair:
    """A layer in both sessions; a side is None where the session's model has no such layer."""

    name: str
    first: Side | None
    second: Side | None

    @property
    def differs(self) -> bool:
        """Whether the sessions give the layer something else; losses of equal assignments do not count."""
        if self.first is None or self.second is None:
            return True
        return self.first.assignment != self.second.assignment


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A fact about both sessions, in words."""

    title: str
    first: str
    second: str

    @property
    def differs(self) -> bool:
        """Whether the two sessions differ in it."""
        return self.first != self.second


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricPair:
    """A metric on one data set: each session's evaluation of its plan, or the newest one of another; None where it has
    none.  ``plans`` name what was evaluated."""

    metric: str
    unit: str
    data: str
    first: Metric | None
    second: Metric | None
    plans: tuple[str, str]

    @property
    def differs(self) -> bool:
        """Whether the 95 % intervals do not overlap; unpaired, so a cautious answer."""
        if self.first is None or self.second is None:
            return True
        return self.first.high < self.second.low or self.second.high < self.first.low


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SessionComparison:
    """Facts, layers (those of the first model in its order, then what only the second has) and evaluations.

    Losses are in ``unit``: by a metric that both have in it, else those of the first one alone.
    """

    facts: tuple[Fact, ...]
    layers: tuple[LayerPair, ...]
    metrics: tuple[MetricPair, ...]
    unit: str

    @property
    def same_model(self) -> bool:
        """Whether both sessions are about the same weights."""
        return not next(fact.differs for fact in self.facts if fact.title == "Fingerprint")


def compare_sessions(first: Session, second: Session) -> SessionComparison:
    """Compare two sessions; a plan that its own model cannot resolve counts as everything kept."""
    known = (first.sensitivities, second.sensitivities)
    metrics = [name for name in TABLE_METRICS if name in known[0]]
    alike = (name for name in metrics if name in known[1] and known[1][name].unit == known[0][name].unit)
    metric = next(alike, *metrics[:1] or ("",))
    table, other = (tables.get(metric) for tables in known)
    same = other if table and other and other.unit == table.unit else None
    sides, facts = (_sides(first, table), _sides(second, same)), (_facts(first, table), _facts(second, other))
    names = dict.fromkeys([*sides[0], *sides[1]])
    return SessionComparison(
        facts=tuple(Fact(title=title, first=text, second=facts[1][title]) for title, text in facts[0].items()),
        layers=tuple(LayerPair(name=name, first=sides[0].get(name), second=sides[1].get(name)) for name in names),
        metrics=_metrics(first, second),
        unit=table.unit if table else "",
    )


def _sides(session: Session, table: Sensitivity | None) -> dict[str, Side]:
    try:
        assignments = resolve(session.plan, session.model.layers)
    except WorkbenchError:
        assignments = {layer.name: Assignment() for layer in session.model.layers}
    sides = {}
    for name, assignment in assignments.items():
        layer, loss = session.model.by_name[name], weight_loss(table, name, assignment.weights)
        bits = layer_bits(layer, assignment.weights) / max(layer.parameters, 1)
        sides[name] = Side(assignment=assignment, bits=bits, loss=None if math.isnan(loss) else loss)
    return sides


def _facts(session: Session, table: Sensitivity | None) -> dict[str, str]:
    """Return what is true of a session, in words, by title; an empty text where nothing is known."""
    data, environment, loss = session.calibration, session.environment, ""
    totals: Totals | None = None
    with contextlib.suppress(WorkbenchError):
        tables = (table, *session.tables(table.metric)[1:]) if table else ()
        totals = plan_totals(session.model, session.plan, *tables)
        if table and totals.predicted is not None:
            sure = interval(totals.predicted, totals.error, totals.doubt)
            range_text = f", {' to '.join(map(number, sure))}" if sure else ""
            loss = f"{number(totals.predicted, 6)} {table.unit}{range_text} ({metric_title(table.metric, table.unit)})"
    return {
        "Model": session.model.name,
        "Fingerprint": session.model.fingerprint,
        "Layers": f"{len(session.model.layers):,}",
        "Calibration": f"{data.name}: {data.samples} samples, seed {data.seed}, {data.content_hash}" if data else "",
        "Plan": session.plan.name,
        "Target": session.target,
        "Transforms": ", ".join(session.plan.transforms),
        "Locked layers": f"{len(session.locked):,}",
        "Bits per weight": fixed(totals.bits_per_weight, 3) if totals else "",
        "Bytes": f"{totals.nbytes:,}" if totals else "",
        "Loss of the plan": loss,
        "Workbench": environment.workbench,
        "Torch": environment.torch,
        "Device": environment.device,
    }


def _metrics(*sessions: Session) -> tuple[MetricPair, ...]:
    """Pair the values of every metric on every data set."""
    first, second = map(_measured, sessions)
    pairs, nothing = [], (None, "", "")
    for key in {**first, **second}:
        (a, ours, data), (b, theirs, other_data) = first.get(key, nothing), second.get(key, nothing)
        metric = a or b
        assert metric is not None
        pairs.append(MetricPair(
            metric=metric.name, unit=metric.unit, data=data or other_data, first=a, second=b, plans=(ours, theirs)
        ))  # fmt: skip
    return tuple(pairs)


def _measured(session: Session) -> dict[tuple[str, str], tuple[Metric | None, str, str]]:
    """Return by data and metric: the value, the name of its plan (marked where it is another one), that of the data."""
    runs, own = session.evaluations, identity(session, session.plan) if session.evaluations else ""
    return {
        (run.data_hash, name): (
            metric, run.plan_name if run.plan_hash == own else f"{run.plan_name} (not the present plan)", run.data_name
        )
        for run in sorted(runs, key=lambda run: run.plan_hash == own) for name, metric in run.metrics.items()
    }  # fmt: skip

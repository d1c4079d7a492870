"""Two sessions side by side: what they were made from, what each gives every layer, what each measured."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass

from workbench.errors import WorkbenchError
from workbench.insight.layer_facts import weight_loss
from workbench.measurement.evaluation import Evaluation, Metric
from workbench.planning.plan import Assignment, resolve
from workbench.planning.totals import Totals, layer_bits, plan_totals
from workbench.sensitivity.metrics import TABLE_METRICS
from workbench.sensitivity.table import Sensitivity
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
    """A metric on one data set: the newest evaluation of each session; None where it has none."""

    metric: str
    unit: str
    data: str
    first: Metric | None
    second: Metric | None

    @property
    def differs(self) -> bool:
        """Whether the 95 % intervals do not overlap; unpaired, so a cautious answer."""
        if self.first is None or self.second is None:
            return True
        return self.first.high < self.second.low or self.second.high < self.first.low


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SessionComparison:
    """Facts, layers (those of the first model in its order, then what only the second has) and evaluations."""

    facts: tuple[Fact, ...]
    layers: tuple[LayerPair, ...]
    metrics: tuple[MetricPair, ...]

    @property
    def same_model(self) -> bool:
        """Whether both sessions are about the same weights."""
        return not next(fact.differs for fact in self.facts if fact.title == "Fingerprint")


def compare_sessions(first: Session, second: Session) -> SessionComparison:
    """Compare two sessions; a plan that its own model cannot resolve counts as everything kept."""
    sides, facts = [_sides(first), _sides(second)], [_facts(first), _facts(second)]
    names = dict.fromkeys([*sides[0], *sides[1]])
    return SessionComparison(
        facts=tuple(Fact(title=title, first=text, second=facts[1][title]) for title, text in facts[0].items()),
        layers=tuple(LayerPair(name=name, first=sides[0].get(name), second=sides[1].get(name)) for name in names),
        metrics=_metrics(first.evaluations, second.evaluations),
    )


def _sides(session: Session) -> dict[str, Side]:
    table = _table(session)
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


def _table(session: Session) -> Sensitivity | None:
    return next((session.sensitivities[name] for name in TABLE_METRICS if name in session.sensitivities), None)


def _facts(session: Session) -> dict[str, str]:
    """Return what is true of a session, in words, by title; an empty text where nothing is known."""
    table, data, environment, loss = _table(session), session.calibration, session.environment, ""
    totals: Totals | None = None
    with contextlib.suppress(WorkbenchError):
        tables = (table, *session.tables(table.metric)[1:]) if table else ()
        totals = plan_totals(session.model, session.plan, *tables)
        if table and totals.predicted is not None:
            loss = f"{totals.predicted:.6g} ({table.metric}, {table.unit})"
    return {
        "Model": session.model.name,
        "Fingerprint": session.model.fingerprint,
        "Layers": f"{len(session.model.layers):,}",
        "Calibration": f"{data.name}: {data.samples} samples, seed {data.seed}, {data.content_hash}" if data else "",
        "Plan": session.plan.name,
        "Transforms": ", ".join(session.plan.transforms),
        "Locked layers": f"{len(session.locked):,}",
        "Bits per weight": f"{totals.bits_per_weight:.4f}" if totals else "",
        "Bytes": f"{totals.nbytes:,}" if totals else "",
        "Loss of the plan": loss,
        "Workbench": environment.workbench,
        "Torch": environment.torch,
        "Device": environment.device,
    }


def _metrics(*evaluations: tuple[Evaluation, ...]) -> tuple[MetricPair, ...]:
    """Pair the newest values of every metric on every data set."""
    names: dict[tuple[str, str], str] = {}
    newest: list[dict[tuple[str, str], Metric]] = []
    for runs in evaluations:
        names = {(run.data_hash, name): run.data_name for run in runs for name in run.metrics} | names
        newest.append({(run.data_hash, name): metric for run in runs for name, metric in run.metrics.items()})
    first, second = newest
    pairs = []
    for key in {**first, **second}:
        metric = first.get(key) or second[key]
        pair = MetricPair(
            metric=metric.name, unit=metric.unit, data=names[key], first=first.get(key), second=second.get(key)
        )
        pairs.append(pair)
    return tuple(pairs)

"""Two sessions side by side: what they were made from, what each gives every layer, what each measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from workbench.errors import WorkbenchError
from workbench.measurement.evaluation import Evaluation, Metric
from workbench.planning.plan import KEEP, Assignment, resolve
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
    """One thing that is true of a session, in words; equal facts do not differ."""

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
    both = first, second
    sides = [_sides(session) for session in both]
    names = dict.fromkeys([*sides[0], *sides[1]])
    return SessionComparison(
        facts=tuple(Fact(title=title, first=say(first), second=say(second)) for title, say in _FACTS.items()),
        layers=tuple(LayerPair(name=name, first=sides[0].get(name), second=sides[1].get(name)) for name in names),
        metrics=_metrics(first.evaluations, second.evaluations),
    )


def _assignments(session: Session) -> Mapping[str, Assignment]:
    try:
        return resolve(session.plan, session.model.layers)
    except WorkbenchError:
        return {layer.name: Assignment() for layer in session.model.layers}


def _sides(session: Session) -> dict[str, Side]:
    table = _table(session)
    sides = {}
    for name, given in _assignments(session).items():
        layer = session.model.by_name[name]
        score = float("nan") if table is None else table.of(name, given.weights)
        loss = 0.0 if given.weights == KEEP else score if score == score else None
        bits = layer_bits(layer, given.weights) / max(layer.parameters, 1)
        sides[name] = Side(assignment=given, bits=bits, loss=loss)
    return sides


def _table(session: Session) -> Sensitivity | None:
    return next((session.sensitivities[name] for name in TABLE_METRICS if name in session.sensitivities), None)


def _totals(session: Session) -> Totals | None:
    try:
        table = _table(session)
        beside = (session.inputs_table(table.metric), session.cache_table(table.metric)) if table else (None, None)
        return plan_totals(session.model, session.plan, table, *beside)
    except WorkbenchError:
        return None


def _bits(session: Session) -> str:
    totals = _totals(session)
    return "" if totals is None else f"{totals.bits_per_weight:.4f}"


def _bytes(session: Session) -> str:
    totals = _totals(session)
    return "" if totals is None else f"{totals.nbytes:,}"


def _loss(session: Session) -> str:
    totals, table = _totals(session), _table(session)
    if totals is None or table is None or totals.predicted is None:
        return ""
    return f"{totals.predicted:.6g} ({table.metric}, {table.unit})"


def _data(session: Session) -> str:
    record = session.calibration
    if record is None:
        return ""
    return f"{record.name}: {record.samples} samples, seed {record.seed}, {record.content_hash}"


_FACTS: dict[str, Callable[[Session], str]] = {
    "Model": lambda session: session.model.name,
    "Fingerprint": lambda session: session.model.fingerprint,
    "Layers": lambda session: f"{len(session.model.layers):,}",
    "Calibration": _data,
    "Plan": lambda session: session.plan.name,
    "Transforms": lambda session: ", ".join(session.plan.transforms),
    "Locked layers": lambda session: f"{len(session.locked):,}",
    "Bits per weight": _bits,
    "Bytes": _bytes,
    "Loss of the plan": _loss,
    "Workbench": lambda session: session.environment.workbench,
    "Torch": lambda session: session.environment.torch,
    "Device": lambda session: session.environment.device,
}


def _metrics(first: tuple[Evaluation, ...], second: tuple[Evaluation, ...]) -> tuple[MetricPair, ...]:
    """Pair the newest values of every metric on every data set."""
    newest: list[dict[tuple[str, str], tuple[Evaluation, Metric]]] = []
    for runs in (first, second):
        newest.append({(run.data_hash, name): (run, metric) for run in runs for name, metric in run.metrics.items()})
    pairs = []
    for key in dict.fromkeys([*newest[0], *newest[1]]):
        held = [evaluations.get(key) for evaluations in newest]
        run, metric = next(entry for entry in held if entry is not None)
        pairs.append(
            MetricPair(
                metric=metric.name, unit=metric.unit, data=run.data_name, first=held[0][1] if held[0] else None,
                second=held[1][1] if held[1] else None,
            )
        )  # fmt: skip
    return tuple(pairs)

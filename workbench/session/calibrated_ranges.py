"""From statistics to the ranges of every calibration method, and which of them is in force."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.errors import PlanError, RangeError, nearest
from workbench.models.summary import ModelSummary
from workbench.numerics.formats import parse_scheme, takes_range
from workbench.numerics.ranges import METHODS, REGISTRY, Loss, Range, RangeMethod, method_for, range_method
from workbench.numerics.scheme import Scheme
from workbench.numerics.statistics.histogram_moments import Moments
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.planning.latest import Latest
from workbench.planning.plan import Plan, resolve
from workbench.progress import Progress, silent

if TYPE_CHECKING:
    from workbench.session.session import Session

REFERENCE_SCHEME = "int8-tensor-asym"
"""Methods that depend on the number of levels are run for this scheme; for a layer with another static input scheme
:func:`ranges_of_plan` asks the method again."""

LOSS = Loss.name
COUNTED = frozenset(method.name for method in METHODS) - {LOSS}
"""The methods that look at how often values come, not at what errors cost: layers that share an input share them."""

Statistics = Mapping[tuple[str, str], LayerStatistics]


def all_ranges(statistics: Statistics, progress: Progress = silent) -> dict[tuple[str, str, str], Range]:
    """Return the range of every method for every (layer, tap).

    A tensor in which nothing finite was seen has none.  Layers that share an input share the work.
    """
    scheme = parse_scheme(REFERENCE_SCHEME)
    known: dict[tuple[str, bytes, bytes], Range | None] = {}
    ranges: dict[tuple[str, str, str], Range] = {}
    for number, ((layer, tap), observed) in enumerate(statistics.items()):
        progress(number / len(statistics), f"ranges of {layer}")
        key = _content(observed)
        for method in REGISTRY:
            if method.name == LOSS and not observed.costs.size:
                continue
            own = method.name, key, observed.costs.tobytes() if method.name not in COUNTED else b""
            if own not in known:
                known[own] = _tried(method, observed, scheme)
            if (chosen := known[own]) is not None:
                ranges[layer, tap, method.name] = chosen
    progress(1.0, "ranges computed")
    return ranges


def _tried(method: RangeMethod, observed: LayerStatistics, scheme: Scheme) -> Range | None:
    try:
        return method.range(observed, scheme)
    except RangeError:
        return None


def _content(statistics: LayerStatistics) -> bytes:
    """Return a hash of all that a range depends on, but for what errors cost."""
    hashed = hashlib.sha256(statistics.counts.tobytes())
    extremes = (statistics.minimum, statistics.maximum, statistics.minimum_total, statistics.maximum_total)
    hashed.update(repr((statistics.exponent, statistics.batches, extremes)).encode())
    return hashed.digest()


def range_by(ranges: Mapping[tuple[str, str, str], Range], layer: str, tap: str, method: str) -> Range | None:
    """Return the range that ``method`` chose, or ``mse`` for ``loss`` where the calibration noted no gradients."""
    found = ranges.get((layer, tap, method))
    return ranges.get((layer, tap, "mse")) if found is None and method == LOSS else found


def ranges_at(ranges: Mapping[tuple[str, str, str], Range], layer: str, tap: str) -> dict[str, Range]:
    """Return what every method chose for a tensor; to look through all tensors takes 20 ms."""
    found = {method.name: ranges.get((layer, tap, method.name)) for method in REGISTRY}
    return {name: chosen for name, chosen in found.items() if chosen is not None}


def ranges_in_force(
    summary: ModelSummary,
    plan: Plan,
    ranges: Mapping[tuple[str, str, str], Range],
    earlier: Mapping[tuple[str, str], Range],
    scheme: str | None = None,
) -> dict[tuple[str, str], Range]:
    """Return the range of every layer's input: set by hand where ``earlier`` has one, else by the plan's method.

    It is for inputs in ``scheme``, for those in the plan's own by default.
    """
    chosen = {key: value for key, value in earlier.items() if value.method == "manual"}
    for name, assignment in resolve(plan, summary.layers).items():
        form = parse_scheme(scheme or assignment.inputs or REFERENCE_SCHEME)
        calibrated = range_by(ranges, name, "input", method_for(form, assignment.range_method))
        if calibrated is not None:
            chosen.setdefault((name, "input"), calibrated)
    return chosen


def ranges_of_plan(session: Session, plan: Plan) -> dict[tuple[str, str], Range]:
    """Return the ranges that ``plan`` quantizes by: those in force, and for static inputs what its methods give.

    A range set by hand comes before any method.  Where there are statistics, the method runs for the layer's own
    scheme.  Raises RangeError for a method that does not exist.
    """
    ranges = dict(session.active_ranges)
    for name, scheme, method in _static_inputs(session, plan):
        statistics = session.statistics.get((name, "input"))
        calibrated = range_by(session.ranges, name, "input", method)
        if statistics is not None:
            ranges[name, "input"] = range_method(method).range(statistics, parse_scheme(scheme))
        elif calibrated is not None:
            ranges[name, "input"] = calibrated
    return ranges


def identity(session: Session, plan: Plan) -> str:
    """Return what results of ``plan`` are known by: its hash, with the ranges set by hand where it rounds by any.

    A range set by hand is the session's, not the plan's, but moving one changes what the plan's inputs are rounded to.
    """
    used = [(name, float(held.low), float(held.high)) for name, held in ranges_by_hand(session, plan).items()]
    return "sha256:" + hashlib.sha256(repr((plan.hash, used)).encode()).hexdigest() if used else plan.hash


def ranges_by_hand(session: Session, plan: Plan) -> dict[str, Range]:
    """Return the ranges set by hand that ``plan`` rounds inputs by, by layer in alphabetical order."""
    inputs = {name: _inputs_of(session, plan, name) for name in _by_hand(session.active_ranges)}
    return {
        name: session.active_ranges[name, "input"] for name, scheme in inputs.items()
        if scheme is not None and takes_range(parse_scheme(scheme))
    }  # fmt: skip


def _inputs_of(session: Session, plan: Plan, name: str) -> str | None:
    """Return the scheme of a layer's inputs as :func:`resolve` does, which looks at the whole plan."""
    layer = session.model.by_name.get(name)
    rule = plan.first(name) or (plan.first(layer.tied_to) if layer and layer.tied_to else None)
    return rule.assignment.inputs if rule else None


@Latest
def _by_hand(ranges: Mapping[tuple[str, str], Range]) -> tuple[str, ...]:
    """Return the layers whose inputs' range was set by hand; to look through 60,000 takes milliseconds."""
    return tuple(sorted(name for (name, tap), held in ranges.items() if held.method == "manual" and tap == "input"))


def set_by_hand(session: Session, layer: str, low: float | None, high: float | None) -> Session:
    """Return the session with the input range of ``layer`` set to ``low`` and ``high``, instead of any method's.

    Raises PlanError for an unknown layer, RangeError for numbers that do not enclose zero.
    """
    if layer not in session.model.by_name:
        raise PlanError(f"the model has no layer {layer!r}{nearest(layer, session.model.by_name)}")
    if low is None or high is None or not -math.inf < low <= 0 <= high < math.inf or low == high:
        raise RangeError(f"expected a low of at most 0 and a high of at least 0, not both 0; got {low} and {high}")
    statistics = session.statistics.get((layer, "input"))
    clipped = Moments.of(statistics).outside(low, high) if statistics is not None and statistics.count else 0.0
    manual = Range(low=low, high=high, method="manual", clipped=clipped)
    return replace(session, active_ranges={**session.active_ranges, (layer, "input"): manual})


def statistics_for_plan(session: Session) -> dict[tuple[str, str], LayerStatistics]:
    """Return what of the session's statistics :func:`ranges_of_plan` looks at for the session's plan."""
    keys = ((name, "input") for name, _, _ in _static_inputs(session, session.plan))
    return {key: session.statistics[key] for key in keys if key in session.statistics}


def _static_inputs(session: Session, plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Yield layer, scheme and range method of every static input whose range was not set by hand."""
    if all(rule.assignment.inputs is None for rule in plan.rules):
        return
    for name, assignment in resolve(plan, session.model.layers).items():
        active = session.active_ranges.get((name, "input"))
        if assignment.inputs is not None and (active is None or active.method != "manual"):
            scheme = parse_scheme(assignment.inputs)
            if takes_range(scheme):
                yield name, assignment.inputs, method_for(scheme, assignment.range_method)

"""Search: find the plan of the least loss within a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from workbench.errors import BudgetError, MissingResultError, PlanError
from workbench.insight.legality import more_of
from workbench.insight.roles import scored_for_others
from workbench.memory import parse_size
from workbench.numerics.ranges import REGISTRY as RANGES
from workbench.planning.budgets import GOALS, Budgets, MeasuredTimes
from workbench.planning.constraints import Constraints
from workbench.planning.plan import KEEP, Plan
from workbench.planning.search.search import search as search_plan
from workbench.planning.strategies import NAMES, OPTIMAL, simple_plan
from workbench.progress import Progress, silent
from workbench.sensitivity.metrics import ACTIVATION_METRICS, BY_NAME, WEIGHT_METRICS
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session
from workbench.steps.options import (
    BITS_PER_WEIGHT,
    SCHEMES,
    TARGET,
    Choice,
    OptionInfo,
    choices_of,
    option,
    scheme_name,
)
from workbench.steps.requirements import SCORED, tables, without_results
from workbench.steps.score import metric_name
from workbench.steps.search_rules import constraints_of, correction_of, input_names, with_activations, with_range_method
from workbench.steps.step import Step
from workbench.steps.timing.candidates import candidate_timings
from workbench.steps.timing.kernels import BATCH


def parse_allowed(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the pattern and the schemes of ``*.mlp.*=int4-g32-asym,keep``; raises ValueError."""
    pattern, sign, names = text.rpartition("=")
    schemes = tuple(name.strip() for name in names.split(",") if name.strip())
    if not (sign and pattern and schemes):
        raise ValueError(f"{text!r} is not a pattern with schemes; expected for example '*.mlp.*=int4-g32-asym,keep'")
    return pattern, schemes


METRIC = OptionInfo(
    label="Metric", parse=metric_name, empty="the best table in the session",
    choices=lambda: tuple(Choice(name, BY_NAME[name].title) for name in WEIGHT_METRICS),
    help="whose losses to minimise; refined: the predicted losses corrected by the measured ones",
)  # fmt: skip
BITS = replace(BITS_PER_WEIGHT, empty="no limit")
SIZE = OptionInfo(
    label="Bytes", minimum=1, parse=parse_size, unit="bytes", metavar="SIZE", empty="no limit",
    help="bytes of all tensors, such as 120MB or 1.5GiB",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """The budgets, of which a search needs at least one, and what it may choose.

    Layers that match a pattern of ``lock`` keep what the session's plan gives them; those that match a pattern of
    ``allow`` get one of its schemes (``keep`` only if it is listed; the first pattern that matches counts).  ``inputs``
    is the activation scheme of all other searched layers; of several the search chooses one or none for each layer, by
    the session's table of activation losses.  ``cache`` is the scheme in which the keys and values of all layers that
    are not locked are stored.  ``none`` instead of a scheme removes those of the session's plan.  Where there are
    tables for them, what activations and the cache cost counts in the loss.  With ``corrected`` a budget of loss means
    losses multiplied by the audit's correction.  ``range_method`` calibrates the static ranges of all layers that are
    not locked.
    """

    bits_per_weight: float | None = option(None, BITS)
    size: int | None = option(None, SIZE)
    microseconds: float | None = option(None, OptionInfo(
        label="Time", minimum=0.001, unit="µs", metavar="US", empty="no limit",
        help="kernel time of all timed layers in microseconds",
    ))  # fmt: skip
    loss: float | None = option(None, OptionInfo(
        label="Predicted loss", minimum=1e-12, metavar="L", empty="no limit",
        help="predicted loss, in the unit of the table",
    ))  # fmt: skip
    minimise: str = option("loss", OptionInfo(
        label="Minimise", choices=lambda: choices_of(GOALS), help="what the budgets leave open"
    ))  # fmt: skip
    metric: str | None = option(None, METRIC)
    schemes: tuple[str, ...] = option((), SCHEMES)
    inputs: tuple[str, ...] = option((), OptionInfo(
        label="Inputs", metavar="A,B,...", parse=scheme_name, empty="as in the session's plan",
        help="activation schemes of the searched layers, such as int8-token; of several the search chooses one or none "
        "for each layer, once they are scored (--metric predicted_kl_inputs); static: 8 bits by calibrated ranges, "
        "with a zero point where the target takes one; none: of no layer",
    ))  # fmt: skip
    cache: str | None = option(None, OptionInfo(
        label="KV cache", metavar="SCHEME", parse=scheme_name, empty="as in the session's plan",
        help="how keys and values are stored in the cache, such as int8-token, once it is scored (--metric "
        "predicted_kl_cache), or none",
    ))  # fmt: skip
    target: str | None = option(None, TARGET)
    lock: tuple[str, ...] = option((), OptionInfo(
        label="Lock", metavar="PATTERN", repeated=True,
        help="layers that keep what the session's plan gives them, unscored for those without a score; may be repeated",
    ))  # fmt: skip
    allow: tuple[tuple[str, tuple[str, ...]], ...] = option((), OptionInfo(
        label="Allow", metavar="PATTERN=A,B", repeated=True, parse=parse_allowed,
        help="layers that may have these schemes only (keep among them or not); may be repeated, the first match "
        "counts",
    ))  # fmt: skip
    shrink_unused: bool = option(False, OptionInfo(
        label="Shrink unused layers", help="give layers that the scored output does not depend on (a pooler, the tower "
        "of inputs that were not given) the smallest scheme; otherwise they stay as they are and count in no bits per "
        "weight, since another output or input may need them",
    ))  # fmt: skip
    strategy: str = option(OPTIMAL, OptionInfo(
        label="Strategy", choices=lambda: choices_of(NAMES),
        help="a simple rule to compare with, instead of the search; it looks at weights only, and a scheme of inputs "
        "is given to all layers",
    ))  # fmt: skip
    batch: int = option(1, BATCH)
    corrected: bool = option(False, OptionInfo(
        label="Corrected", help="multiply predicted losses by the correction of the session's audit, and say so"
    ))  # fmt: skip
    range_method: str | None = option(None, OptionInfo(
        label="Range method", choices=lambda: choices_of(RANGES.names()), empty="loss",
        help="how static ranges of inputs are calibrated",
    ))  # fmt: skip

    @property
    def budgets(self) -> Budgets:
        """The limits that the plan must keep."""
        return Budgets(
            nbytes=self.size, bits_per_weight=self.bits_per_weight, microseconds=self.microseconds, loss=self.loss
        )

    @property
    def timed(self) -> bool:
        """Whether kernel times matter."""
        return self.minimise == "microseconds" or self.microseconds is not None


def search(
    session: Session, *, bits_per_weight: float | None = None, size: int | None = None,
    microseconds: float | None = None, loss: float | None = None, minimise: str = "loss", metric: str | None = None,
    schemes: Sequence[str] | None = None, inputs: str | Sequence[str] | None = None, cache: str | None = None,
    target: str | None = None, lock: str | Sequence[str] = (),
    allow: Mapping[str, Sequence[str]] | Sequence[tuple[str, Sequence[str]]] | None = None, strategy: str = OPTIMAL,
    batch: int = 1, corrected: bool = False, range_method: str | None = None, shrink_unused: bool = False,
    progress: Progress = silent,
) -> Plan:  # fmt: skip
    """Return the plan that minimises ``minimise`` (``loss``, ``nbytes``, ``bits_per_weight``, ``microseconds``).

    Budgets, one at least: ``bits_per_weight``, ``size`` (bytes of the whole model), ``microseconds`` of all timed
    layers at ``batch`` rows, ``loss`` in the table's unit.  ``metric`` names the table (default: the best there is).
    The other arguments are those of :class:`SearchOptions`.  Raises MissingResultError, BudgetError, PlanError,
    RangeError.
    """
    patterns = allow.items() if isinstance(allow, Mapping) else allow or ()
    options = SearchOptions(
        bits_per_weight=bits_per_weight, size=size, microseconds=microseconds, loss=loss, minimise=minimise,
        metric=metric, schemes=tuple(schemes or ()), inputs=_names(inputs), cache=cache, target=target,
        lock=_names(lock), allow=tuple((pattern, tuple(names)) for pattern, names in patterns), strategy=strategy,
        batch=batch, corrected=corrected, range_method=range_method, shrink_unused=shrink_unused,
    )  # fmt: skip
    return find_plan(session, options, progress)


def find_plan(session: Session, options: SearchOptions, progress: Progress = silent) -> Plan:
    """Return the best plan within the budgets, or the one of a simple strategy.

    Where microseconds matter, the session's timings at the batch size serve, and the candidates that lack one are timed
    on this machine first.
    """
    table = session.require_table(options.metric)
    rules = constraints_of(session, options.target, options.lock, options.schemes or None, options.allow, table)
    more = None if options.size is None else more_of(options.target or "")
    rules = replace(rules, shrink_unused=options.shrink_unused, more=more)
    base, rules, activations = with_activations(
        session,
        rules,
        session.inputs_table(table.metric),
        input_names(session, options.inputs, options.target),
        options.cache,
    )
    if options.range_method is not None:
        base = with_range_method(session, base, options.range_method, rules.locked)
    if options.strategy != OPTIMAL:
        return _by_strategy(session, options, table, base, rules)
    budgets, corrected = options.budgets, options.corrected and options.loss is not None
    if corrected and options.loss is not None:
        budgets = replace(budgets, loss=options.loss / correction_of(session, table.metric, base))
    times = _times(session, options, rules, table, progress)
    try:
        plan = search_plan(
            session.model, table, base=base, budgets=budgets, minimise=options.minimise, constraints=rules, times=times,
            inputs=activations, cache=session.cache_table(table.metric),
        )  # fmt: skip
    except BudgetError:
        if scored_for_others(session.model, table, options.target or ""):
            raise MissingResultError(
                f"{rules.target} runs none of the schemes that were scored; score those that it runs",
                command=f"workbench sensitivity S.qwb --target {options.target}",
            ) from None
        raise
    if not corrected:
        return plan
    return replace(plan, name=plan.name.replace(str(budgets), f"{options.budgets}, corrected by an audit"))


def _by_strategy(session: Session, options: SearchOptions, table: Sensitivity, base: Plan, rules: Constraints) -> Plan:
    if options.minimise != "loss":
        raise PlanError(f"the strategy {options.strategy} minimises nothing; use the strategy optimal")
    if len(options.inputs) > 1:
        raise PlanError(f"the strategy {options.strategy} chooses no activation schemes; give one, or use optimal")
    return simple_plan(options.strategy, session.model, table, base, options.budgets, rules)


def _times(
    session: Session, options: SearchOptions, rules: Constraints, table: Sensitivity, progress: Progress
) -> MeasuredTimes | None:
    """Return the times of all candidates where they matter."""
    if not options.timed:
        return None
    names = tuple(name for name in rules.schemes or table.schemes if name != KEEP)
    return MeasuredTimes.from_timings(
        candidate_timings(session, names, batch=options.batch, progress=progress), options.batch
    )  # fmt: skip


def _names(names: str | Sequence[str] | None) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names or ())


def budget_text(options: SearchOptions) -> str:
    """Return the budgets for headings and the names of edits."""
    limits = {
        "{:g} bits per weight": options.bits_per_weight, "{:,} bytes": options.size, "{:g} µs": options.microseconds,
        "a loss of {:g}": options.loss,
    }  # fmt: skip
    return ", ".join(text.format(limit) for text, limit in limits.items() if limit is not None) or "any size"


def _needs(session: Session, options: SearchOptions) -> Session:
    """Add the metric's table, those of activations and the cache, times and the audit if used."""
    used = WEIGHT_METRICS if options.metric is None else BY_NAME[options.metric].derived_from or (options.metric,)
    return replace(
        without_results(session), sensitivities=tables(session, *used, *ACTIVATION_METRICS),
        timings=session.timings if options.timed else (), audit=session.audit if options.corrected else None,
    )  # fmt: skip


SEARCH: Step[SearchOptions, Plan] = Step(
    name="plan", title="Search a plan", options=SearchOptions, requires=(SCORED,), needs=_needs, call="wb.search",
    summary="Finds the plan of the least predicted loss within the budget.",
    run=lambda context, options: find_plan(context.session, options, context.progress),
    heading=lambda options, session: f"Search a plan of {budget_text(options)}",
    join=lambda session, options, plan: replace(session, plan=plan),
    undo=lambda options: (
        f"Search within {budget_text(options) if options.size is None else f'{options.size / 1e6:g} MB'}"
    ),
)  # fmt: skip

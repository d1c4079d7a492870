"""What a search may choose: locks, allowed schemes, a target's rules, activation schemes, the audit's correction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np

from workbench.deployment.targets import target as target_of
from workbench.errors import MissingResultError, PlanError, RangeError, nearest
from workbench.insight.legality import unknown_rounding, within_target
from workbench.models.summary import quantizable
from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.gguf.inputs import SCHEMES as ROUNDED_SCHEMES
from workbench.planning.constraints import Constraints
from workbench.planning.patterns import matching
from workbench.planning.plan import KEEP, Plan, resolve, with_cache
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session

UNSCORED = "unscored"
"""Instead of a pattern of locks: the layers that the table has no loss of (experts that no token was sent to)."""
NONE = "none"
"""Instead of a scheme of activations or of the cache: as computed."""
STATIC = "static"
"""Instead of a scheme of activations: 8 bits with calibrated ranges, in the form that the target runs."""
STATIC_SCHEMES = ("int8-tensor-asym", "int8-tensor", "fp8-e4m3-tensor")
"""The best first: a zero point uses the whole grid where a range is not symmetric (all-MiniLM-L6 in ONNX Runtime: mean
cosine to the float model 0.993 with, 0.982 without)."""


def correction_of(session: Session, metric: str, plan: Plan | None = None) -> float:
    """Return the factor by which the session's audit corrects predicted losses of weights.

    It is fitted to the measurement of one plan, which whatever shows a corrected loss must say.  Raises
    MissingResultError without an audit or where it had no prediction, PlanError for a table of another metric than
    ``predicted_kl``, and where ``plan`` rounds activations or the cache.
    """
    assignments = resolve(plan, session.model.layers).values() if plan else ()
    if any(assignment.inputs is not None or assignment.cache is not None for assignment in assignments):
        raise PlanError(
            "the audit's correction is of weights alone, and the plan rounds activations or the cache too; give a "
            "budget of bytes or bits per weight, or leave the correction out"
        )
    if metric != "predicted_kl":
        raise PlanError(f"an audit corrects predicted_kl, and the losses here are {metric}; leave the correction out")
    if session.audit is None:
        raise MissingResultError("there is no audit to correct by; audit a plan first", command="workbench audit S.qwb")
    correction = session.audit.audit.correction
    if not math.isfinite(correction) or correction <= 0:
        raise MissingResultError(
            f"the audit of “{session.audit.plan_name}” has no correction: its plan had no predicted loss; audit a plan "
            "whose layers are all scored"
        )
    return correction


def constraints_of(
    session: Session, target: str | None, lock: Sequence[str] = (), schemes: Sequence[str] | None = None,
    allow: Sequence[tuple[str, Sequence[str]]] = (), table: Sensitivity | None = None,
) -> Constraints:  # fmt: skip
    """Return the session's locks, those of the patterns ``lock``, the allowed schemes and the target's rules.

    The schemes that ``allow`` gives one pattern several times add up.  The pattern ``unscored`` is of layers that
    ``table`` has no loss of.
    """
    rows = () if table is None else zip(table.layers, np.isnan(table.score).all(axis=1), strict=True)
    without = [name for name, is_open in rows if is_open]
    locked = session.locked | frozenset(
        name for pattern in lock for name in (without if pattern == UNSCORED else _matching(session, pattern))
    )
    allowed: dict[str, tuple[str, ...]] = {}
    for pattern, names in allow:
        known = (KEEP if name == KEEP else parse_scheme(name).name for name in names)
        allowed[pattern] = (*allowed.get(pattern, ()), *known)
    rules = Constraints(
        locked=locked, schemes=None if schemes is None else tuple(schemes), allowed=tuple(allowed.items())
    )
    return within_target(rules, target or "", session.model)


def rounding_remark(session: Session, target: str | None, metric: str) -> str:
    """Return how to have a target's own rounding of inputs counted; empty where it is, or where it rounds none."""
    unknown = unknown_rounding(session, target or "", metric)
    return unknown and (
        f"{unknown}; to have the search count it: workbench sensitivity S.qwb "
        f"--metric predicted_kl_inputs --schemes {','.join(ROUNDED_SCHEMES)}"
    )


def input_names(session: Session, names: Sequence[str], target: str | None, weights: str = "") -> tuple[str, ...]:
    """Return schemes of inputs with the word ``static`` as the first of STATIC_SCHEMES that ``target`` runs.

    ``weights`` is the scheme that the layers will have ("": any of 8 bits).  Raises PlanError where it runs none.
    """
    if STATIC not in names or not target:
        return tuple(STATIC_SCHEMES[0] if name == STATIC else name for name in names)
    runtime, layers = target_of(target), quantizable(session.model.layers)
    of_weights = (weights,) if weights else ("int8-channel", "int8-tensor", "fp8-e4m3-channel")
    for scheme in STATIC_SCHEMES:
        if any(runtime.legal(layer, each, scheme) is None for layer in layers for each in of_weights):
            return tuple(scheme if name == STATIC else name for name in names)
    beside = f" beside weights in {weights}" if weights else ""
    advice = "leave inputs as they are (--inputs), or give int8-token"
    raise PlanError(f"{runtime.title} runs no static inputs of 8 bits{beside}; {advice}")


def with_activations(
    session: Session, rules: Constraints, table: Sensitivity | None, inputs: Sequence[str], cache: str | None
) -> tuple[Plan, Constraints, Sensitivity | None]:
    """Return the base plan, the rules and the activation losses of a search with these schemes of inputs and the cache.

    One scheme of inputs, or none, leaves nothing to choose: the losses of what the base plan says are added as they
    stand, also where a target takes a layer without it.  A scheme that was scored is given to the layers that have a
    score.
    """
    base = session.plan
    if len(inputs) == 1:
        scheme = None if inputs[0] == NONE else parse_scheme(inputs[0]).name
        searched = [layer.name for layer in quantizable(session.model.layers) if layer.name not in rules.locked]
        if table is not None and scheme is not None and scheme in table.column:
            # a layer that no data reached has no score, and is left alone
            searched = [name for name in searched if not math.isnan(table.of(name, scheme))]
        base = base.assign(searched, inputs=scheme)
    if cache is not None:
        base = with_cache(base, session.model.layers, None if cache == NONE else cache, rules.locked)
    if len(inputs) > 1:
        return base, rules, _columns(table, inputs)
    return base, replace(rules, keep_inputs=True), table


def with_range_method(session: Session, base: Plan, method: str, locked: frozenset[str]) -> Plan:
    """Return the plan with static inputs calibrated by ``method``; RangeError if it is none or lacks something."""
    from workbench.numerics.ranges import range_method

    assignments = resolve(base, session.model.layers)
    rounded = [name for name, assignment in assignments.items() if assignment.inputs is not None and name not in locked]
    if not rounded:
        raise PlanError(f"the range method {method} is for inputs, and the plan rounds none; give a scheme (--inputs)")
    seen = session.statistics.get((rounded[0], "input"))
    if seen is not None and seen.count:
        chosen = range_method(method).range(seen, parse_scheme(str(assignments[rounded[0]].inputs)))
        if chosen.method != range_method(method).name:
            raise RangeError(
                f"the range method {method} needs gradients at inputs, and this calibration has none; calibrate again, "
                "or leave the range method out"
            )
    return base.assign(rounded, range_method=range_method(method).name)


def _columns(table: Sensitivity | None, schemes: Sequence[str]) -> Sensitivity:
    """Return the table of activation losses with these schemes only."""
    names = tuple(dict.fromkeys(parse_scheme(name).name for name in schemes))
    missing = [name for name in names if table is None or name not in table.column]
    if table is None or missing:
        raise MissingResultError(
            f"a choice of activation schemes needs their losses in nats, and {', '.join(missing)} were not scored; "
            "score them first",
            command=f"workbench sensitivity S.qwb --metric predicted_kl_inputs --schemes {','.join(names)}",
        )
    return replace(table, schemes=names, score=table.score[:, [table.column[name] for name in names]])


def _matching(session: Session, pattern: str) -> list[str]:
    known = [layer.name for layer in session.model.layers]
    names = matching(pattern, known)
    if not names:
        close = [name for name in known if fnmatchcase(name, f"*{pattern}*")][:1]
        hint = f"; did you mean '*{pattern}*'?" if close else nearest(pattern, known)
        raise PlanError(f"the lock {pattern!r} matches no layer of the model{hint}")
    return names

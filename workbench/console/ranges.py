"""What ``workbench ranges`` prints: the range that each method calibrates, and the one in force."""

from __future__ import annotations

import argparse
from typing import Any

from workbench.console.reports import figure
from workbench.console.terminal import table
from workbench.errors import MissingResultError, PlanError, nearest

Result = dict[str, Any]


def ranges(options: argparse.Namespace) -> Result:
    """List the range of every method and the one in force, after setting one by hand if asked to."""
    from workbench.numerics.ranges import REGISTRY
    from workbench.planning.plan import Assignment, Rule
    from workbench.session.calibrated_ranges import ranges_of_plan, set_by_hand
    from workbench.session.session import Session

    session = Session.load(options.session)
    if options.low is not None or options.high is not None:
        session = set_by_hand(session, options.layer, options.low, options.high)
        session.save(options.session)
    rule, known = Rule(pattern=options.layer, assignment=Assignment()), {key[:2] for key in session.ranges}
    names = [layer.name for layer in session.model.layers if rule.matches(layer.name)]
    if not names:
        raise PlanError(
            f"the pattern {options.layer!r} matches no layer{nearest(options.layer, session.model.by_name)}"
        )
    held = [name for name in names if (name, options.tap) in known]
    if not held:
        raise MissingResultError(f"no {options.tap} range of these layers was calibrated; calibrate first")
    now, methods = ranges_of_plan(session, session.plan), REGISTRY.names()
    found = []
    for name in held:
        calibrated = [session.ranges.get((name, options.tap, method)) for method in methods]
        entries = [_entry(one.low, one.high, one.method, one.clipped) for one in calibrated if one is not None]
        used = now.get((name, options.tap))
        mine = None if used is None else _entry(used.low, used.high, used.method, used.clipped)
        found.append({"layer": name, "ranges": entries, "in_force": mine})
    return {"tap": options.tap, "layers": found}


def _entry(low: float, high: float, method: str, clipped: float) -> Result:
    return {"method": method, "low": low, "high": high, "clipped": clipped}


def ranges_text(result: Result) -> str:
    """Return one row for each method of each layer; ``*`` marks the range in force."""
    rows = []
    for one in result["layers"]:
        used = one["in_force"]
        shown = [*one["ranges"], *([used] if used is not None and used not in one["ranges"] else [])]
        rows += [
            (one["layer"], "*" if each == used else "", each["method"], figure(each["low"]), figure(each["high"]),
             f"{each['clipped']:.3%}")
            for each in shown
        ]  # fmt: skip
    head = f"{result['tap']} ranges; * is in force for static schemes, by the plan's method or by hand"
    return f"{head}\n\n" + table(rows, ("layer", "", "method", "low", "high", "clipped"))

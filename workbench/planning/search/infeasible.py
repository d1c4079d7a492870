"""Why no plan fits into the budgets, and the smallest budget that one fits into."""

from __future__ import annotations

import math

from workbench.errors import BudgetError
from workbench.planning.budgets import Budgets
from workbench.planning.constraints import Constraints, SearchSpace
from workbench.planning.plan import KEEP
from workbench.planning.search.limits import problem_of
from workbench.planning.search.solve import solve
from workbench.planning.totals import layer_bits
from workbench.readable import few
from workbench.sensitivity.table import Sensitivity


def infeasible(
    space: SearchSpace, budgets: Budgets, limits: dict[str, float], table: Sensitivity, rules: Constraints | None
) -> BudgetError:
    """Return the error that says which limit cannot be met, the smallest value that can, and what stands in the way."""
    alone = [quantity for quantity in limits if _least(space, quantity, {}) > limits[quantity]]
    others: dict[str, float] = {}
    if not alone:
        for quantity in limits:
            others = {key: limit for key, limit in limits.items() if key != quantity}
            if not math.isinf(_least(space, quantity, others)):
                alone = [quantity]
                break
    smallest = "; ".join(_smallest(space, quantity, others, table) for quantity in alone)
    beside = " under the other budgets" if others else ""
    barred = _barred(space, table, rules) or _wide(space, budgets, table, rules)
    error = BudgetError(
        f"no plan fits into {budgets}: {smallest}{beside}; raise the budget or allow smaller schemes{barred}"
        f"{_aside(space)}"
    )
    if len(limits) == len(alone) == 1:
        error.smallest = _least_amount(space, budgets, alone[0], table)
    return error


def _least_amount(space: SearchSpace, budgets: Budgets, quantity: str, table: Sensitivity) -> str:
    """Return the smallest budget within which a plan is, in the unit of the one that there is."""
    least = _least(space, quantity, {})
    if quantity == "bits" and budgets.bits_per_weight is not None:
        return repr(space.bits_per_weight(int(least)))
    if quantity == "bits":
        return str(space.nbytes(int(least)))
    return repr(
        table.whole(least + space.fixed_loss) if quantity == "loss" else least + space.fixed_microseconds
    )  # fmt: skip


def as_stored(space: SearchSpace) -> list[str]:
    """Return the layers that can only stay as they are stored."""
    return [name for group in space.groups if group.schemes == (KEEP,) for name in group.layers]


def _aside(space: SearchSpace) -> str:
    """Name what stays as it is stored because it is locked, or the output does not depend on it; empty if nothing."""
    floating = [layer for layer in space.summary.stored if space.base[layer.name].weights == KEEP]
    locked = [layer for layer in floating if space.fixed.get(layer.name) == "locked"]
    unused = [layer for layer in floating if layer.unused and layer.name in space.fixed and layer not in locked]
    aside = "" if not locked else (
        f"; locked are {few([layer.name for layer in locked])}, which stay as they are stored: "
        f"{sum(layer.nbytes for layer in locked)} bytes (a plan of one scheme gives them that scheme first)"
    )  # fmt: skip
    if not unused:
        return aside
    return aside + (
        f"; the output does not depend on {few([layer.name for layer in unused])}, which stay as they are stored: "
        f"{sum(layer.nbytes for layer in unused)} bytes (shrink unused layers to give them the smallest scheme)"
    )


def _barred(space: SearchSpace, table: Sensitivity, rules: Constraints | None) -> str:
    """State which layers a target leaves as they are stored, and why; nothing where it does not."""
    barred = as_stored(space)
    if rules is None or rules.legal is None or not barred:
        return ""
    together = next(group.layers for group in space.groups if barred[0] in group.layers)
    schemes = [name for name in (table.schemes if rules.schemes is None else rules.schemes) if name != KEEP]
    refusals = {
        scheme: f"{scheme}: {reason}" + ("" if name == barred[0] else f" ({name}, which runs with it)")
        for scheme in schemes for name in reversed(together)
        if (reason := rules.legal(space.summary.by_name[name], scheme, space.base[name].inputs))
    }  # fmt: skip
    reasons = "; ".join([*refusals.values()][:3])
    return reasons and (
        f"; {rules.target} runs no scheme of this search for {few(barred, 1)}: {reasons}; score and allow schemes that "
        "it runs"
    )


def _wide(space: SearchSpace, budgets: Budgets, table: Sensitivity, rules: Constraints | None) -> str:
    """State which layers take more bits than asked for whatever is chosen, and why a target refuses them less."""
    limit = budgets.bits_per_weight
    if limit is None or rules is None or rules.legal is None:
        return ""
    wide = []
    for group in space.groups:
        owned = [space.summary.by_name[name] for name in group.layers]
        weights = sum(layer.parameters for layer in owned if layer.tied_to is None)
        if group.bits.min() > limit * weights:
            wide.append((float(group.bits.min()) / max(weights, 1), owned[0]))
    for bits, layer in sorted(wide, key=lambda each: -each[0]):
        smaller = [name for name in table.schemes if layer_bits(layer, name) < bits * layer.parameters]
        reasons = {name: rules.legal(layer, name, space.base[layer.name].inputs) for name in smaller}
        scheme, reason = next(((name, why) for name, why in reasons.items() if why), ("", None))
        if reason:
            count = sum(each == bits for each, _ in wide)
            more = f" and {count - 1} more take" if count > 1 else " takes"
            return (
                f"; {layer.name}{more} {bits:.3g} bits per weight at the least, as {rules.target} runs nothing smaller "
                f"there ({scheme}: {reason})"
            )
    return ""


def _least(space: SearchSpace, quantity: str, limits: dict[str, float]) -> float:
    """Return the least that the groups can take of a quantity, infinity where the limits allow nothing."""
    problem = problem_of(space, quantity, limits)
    solution = solve(problem)
    return math.inf if solution is None else problem.total(solution.picks)


def _smallest(space: SearchSpace, quantity: str, limits: dict[str, float], table: Sensitivity) -> str:
    least = _least(space, quantity, limits)
    if quantity == "bits":
        bits = int(least)
        return (
            f"the smallest possible takes {space.nbytes(bits)} bytes, {space.bits_per_weight(bits):.4f} bits per weight"
        )
    if quantity == "loss":
        return f"the least possible loss is {table.whole(least + space.fixed_loss):.6g}"
    return f"the fastest possible takes {least + space.fixed_microseconds:.6g} microseconds"

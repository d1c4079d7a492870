"""The ordered rules of a plan: what each gives, which layers it matches and which of them it decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.errors import PlanError
from workbench.insight import quantities
from workbench.models.layer import Layer
from workbench.planning.patterns import matching
from workbench.planning.plan import KEEP, Plan, Rule

NAMED = 12
"""How many names of layers a line holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """A rule, its place, the layers that it matches, and how many of them no earlier rule took."""

    place: int
    rule: Rule
    matched: tuple[str, ...]
    decided: int

    @property
    def gives(self) -> str:
        """The schemes and the algorithm that the rule gives, in a line."""
        assignment = self.rule.assignment
        parts = (
            assignment.weights, assignment.inputs and f"inputs {assignment.inputs}",
            assignment.cache and f"cache {assignment.cache}",
            assignment.algorithm if assignment.weights != KEEP else "",
        )  # fmt: skip
        return ", ".join(part for part in parts if part)

    @property
    def names(self) -> str:
        """The matched layers in a line, only the first of many."""
        return _names(self.matched)


def rule_rows(plan: Plan, layers: Sequence[Layer]) -> tuple[RuleRow, ...]:
    """Return every rule with what it matches; a broken expression matches nothing."""
    names, decided = [layer.name for layer in layers], set[str]()
    rows = []
    for place, rule in enumerate(plan.rules):
        try:
            matched = tuple(matching(rule.pattern, names))
        except PlanError:
            matched = ()
        new = [name for name in matched if name not in decided]
        decided.update(new)
        rows.append(RuleRow(place=place, rule=rule, matched=matched, decided=len(new)))
    return tuple(rows)


def matches_in_words(pattern: str, layers: Sequence[Layer]) -> tuple[tuple[str, ...], str]:
    """Return the layers that a pattern matches, and that in words: how many and which, or what is wrong with it."""
    try:
        matched = tuple(matching(pattern, [layer.name for layer in layers]))
    except PlanError as error:
        return (), str(error)
    if not matched:
        return (), "Matches no layer"
    return matched, f"Matches {quantities.plural(len(matched), 'layer')}: {_names(matched)}"


def _names(matched: Sequence[str]) -> str:
    more = f", … ({len(matched) - NAMED:,} more)" if len(matched) > NAMED else ""
    return ", ".join(matched[:NAMED]) + more

"""From one assignment for each layer to the few rules that a user would have written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from workbench.models.layer import Layer
from workbench.planning.plan import Assignment, Plan, Rule, resolve


def compact_plan(
    assignments: Mapping[str, Assignment], layers: Sequence[Layer], *, name: str, model: str, fingerprint: str
) -> Plan:
    """Return the shortest plan of exact names and ``layers.*.q_proj`` patterns that says ``assignments``.

    Layers that differ only in the numbers of their names make a family; a family's most frequent assignment becomes one
    pattern, its exceptions come before it by name.  The plan resolves to exactly ``assignments``.
    """
    exact: list[Rule] = []
    patterns: list[Rule] = []
    for pattern, members in _families(layers).items():
        assigned = {layer.name: assignments[layer.name] for layer in members}
        common, _ = Counter(assigned.values()).most_common(1)[0]
        exceptions = [n for n, a in assigned.items() if a != common]
        changed = [n for n, a in assigned.items() if a != Assignment()]
        if common != Assignment() and len(members) > 1 and len(exceptions) + 1 < len(changed):
            exact.extend(Rule(pattern=n, assignment=assigned[n]) for n in exceptions)
            patterns.append(Rule(pattern=pattern, assignment=common))
        else:
            exact.extend(Rule(pattern=n, assignment=assigned[n]) for n in changed)
    for rules in ((*exact, *patterns), _by_name(assignments)):
        plan = Plan(rules=tuple(rules), name=name, model=model, fingerprint=fingerprint)
        if resolve(plan, layers) == dict(assignments):
            break
    return plan


def _families(layers: Sequence[Layer]) -> dict[str, list[Layer]]:
    families: dict[str, list[Layer]] = {}
    for layer in layers:
        families.setdefault(re.sub(r"(?<![^.])\d+(?![^.])", "*", layer.name), []).append(layer)
    return families


def _by_name(assignments: Mapping[str, Assignment]) -> tuple[Rule, ...]:
    return tuple(Rule(pattern=name, assignment=assignment) for name, assignment in assignments.items())

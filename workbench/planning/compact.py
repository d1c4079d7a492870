"""From one assignment for each layer to the few rules that a user would have written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from workbench.models.layer import Layer
from workbench.planning.plan import Assignment, Plan, Rule, resolve


def compact_plan(
    assignments: Mapping[str, Assignment], layers: Sequence[Layer], *, name: str, model: str, fingerprint: str
) -> Plan:
    """Return the shortest plan of exact names and ``layers.*.q_proj`` patterns that says ``assignments``.

    Layers that differ only in the numbers of their names make a family; a family's most frequent assignment becomes one
    pattern, its exceptions come before it by name.  The plan resolves to exactly ``assignments``.
    """
    families: dict[str, list[str]] = {}
    for layer in layers:
        families.setdefault(re.sub(r"(?<![^.])\d+(?![^.])", "*", layer.name), []).append(layer.name)
    exact: list[str] = []
    patterns: list[Rule] = []
    for pattern, members in families.items():
        common, _ = Counter(assignments[member] for member in members).most_common(1)[0]
        exceptions = [member for member in members if assignments[member] != common]
        changed = [member for member in members if assignments[member] != Assignment()]
        shorter = common != Assignment() and len(members) > 1 and len(exceptions) + 1 < len(changed)
        exact += exceptions if shorter else changed
        patterns += [Rule(pattern=pattern, assignment=common)] if shorter else []
    attempts: tuple[tuple[Iterable[str], list[Rule]], ...] = ((exact, patterns), (assignments, []))
    for chosen, rules in attempts:
        by_name = [Rule(pattern=layer, assignment=assignments[layer]) for layer in chosen]
        plan = Plan(rules=(*by_name, *rules), name=name, model=model, fingerprint=fingerprint)
        if resolve(plan, layers) == dict(assignments):
            break
    return plan

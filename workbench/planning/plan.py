"""The plan: ordered rules that give layers their schemes.  First match wins; editing makes a new plan."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

from workbench.errors import PlanError, UnmatchedRuleError, nearest
from workbench.models.kv_cache import cache_scheme, makes_keys_or_values
from workbench.models.layer import Layer
from workbench.numerics.formats import parse_scheme

KEEP = "keep"
"""The scheme name that leaves a layer's weight exactly as the model stores it."""

LEARNED = "learned"
"""The algorithm that runs the model on data: all its layers are rounded together, after those of every other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What one layer gets: weight scheme (or ``keep``), input scheme (or None), algorithm and range method.

    ``cache`` is the scheme in which the key-value cache stores what the layer gives it (None: as computed); it says
    nothing to layers that make neither keys nor values.
    """

    weights: str = KEEP
    inputs: str | None = None
    algorithm: str = "rtn-clip"
    range_method: str = "min-max"
    cache: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """``pattern`` is a layer's exact name, a shell pattern (``model.layers.*.mlp.*``) or ``re:`` and an expression."""

    pattern: str
    assignment: Assignment

    def matches(self, name: str) -> bool:
        """Tell whether the rule speaks of the layer ``name``."""
        if self.pattern == name:
            return True
        if self.pattern.startswith("re:"):
            return re.fullmatch(self.pattern[3:], name) is not None
        return is_glob(self.pattern) and fnmatch.fnmatchcase(name, self.pattern)


def is_glob(pattern: str) -> bool:
    """Tell whether ``pattern`` can match more than its own spelling."""
    return "*" in pattern or "?" in pattern or "[" in pattern or pattern.startswith("re:")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Ordered rules for one model (``fingerprint`` None: any).  Layers that no rule matches are kept as they are.

    ``transforms`` rewrite the floating-point model without changing its outputs, in this order, before the rules are
    carried out (``fold-norms``, ``equalize``, ``awq``, ``smoothquant``, ``rotation``), or correct what is kept after it
    (``bias-correction``, ``norm-reestimation``).
    """

    rules: tuple[Rule, ...] = ()
    name: str = "plan"
    model: str = ""
    fingerprint: str | None = None
    transforms: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """``sha256:`` of rules and transforms in canonical form: equal for plans that say the same in one order."""
        rules = [rule_to_dict(rule) for rule in self.rules]
        content = {"rules": rules, "transforms": list(self.transforms)} if self.transforms else rules
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()

    def assign(self, layers: Iterable[str], **changes: Any) -> Plan:
        """Return a plan in which ``layers`` have ``changes`` (fields of Assignment) and all else is as before."""
        names = tuple(dict.fromkeys(layers))
        chosen = set(names)
        first = tuple(Rule(pattern=name, assignment=replace(self.of(name), **changes)) for name in names)
        rest = tuple(rule for rule in self.rules if rule.pattern not in chosen)
        plan = replace(self, rules=first + rest)
        if not any(map(is_glob, names)):
            vars(plan)["_patterns"] = self._patterns  # the same: only rules of names came and went
        return plan

    def of(self, name: str) -> Assignment:
        """Return what the first matching rule gives the layer ``name``; kept as it is if none matches."""
        rule = self.first(name)
        return Assignment() if rule is None else rule.assignment

    def first(self, name: str) -> Rule | None:
        """Return the first rule that matches the layer ``name``."""
        at = self._exact.get(name)
        for pattern in self._patterns:
            position = self._exact[pattern]
            if at is not None and position > at:
                break
            if self.rules[position].matches(name):
                return self.rules[position]
        return None if at is None else self.rules[at]

    @cached_property
    def _spellings(self) -> list[str]:
        return list(map(attrgetter("pattern"), self.rules))

    @cached_property
    def _exact(self) -> dict[str, int]:
        """The place of the first rule of each name."""
        return dict(zip(reversed(self._spellings), range(len(self.rules) - 1, -1, -1), strict=True))

    @cached_property
    def _patterns(self) -> tuple[str, ...]:
        """The patterns that can match more than one name, in order."""
        everything = "\n".join(self._spellings)
        if not is_glob(everything) and "\nre:" not in everything:
            return ()
        return tuple(dict.fromkeys(spelling for spelling in self._spellings if is_glob(spelling)))

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def save(self, path: str | Path) -> None:
        """Write the plan as JSON (schema: ``resources/plan.schema.json``), atomically."""
        from workbench.planning.plan_json import write_plan

        write_plan(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> Plan:
        """Read a plan from JSON; raises PlanError naming what is wrong and where."""
        from workbench.planning.plan_json import read_plan

        return read_plan(Path(path))

    @staticmethod
    def uniform(layers: Iterable[Layer], scheme: str, **changes: Any) -> Plan:
        """Return a plan that gives every one of ``layers`` the same scheme; ``changes`` are further fields for all."""
        name = parse_scheme(scheme).name
        return Plan(name=f"uniform {name}").assign((layer.name for layer in layers), weights=name, **changes)


def with_cache(plan: Plan, layers: Iterable[Layer], scheme: str | None, but: Collection[str] = ()) -> Plan:
    """Return ``plan`` with the keys and values of all of ``layers`` stored in ``scheme``, but for those in ``but``.

    None stores them as computed.  Raises PlanError where none of them makes keys or values, or for a scheme that a
    cache cannot have.
    """
    names = [layer.name for layer in layers if makes_keys_or_values(layer) and layer.name not in but]
    if scheme is None:
        return plan.assign(names, cache=None) if names else plan
    name = cache_scheme(scheme).name
    if not names:
        raise PlanError(f"a key-value cache in {name} needs {_NAMED_SO}, and no layer that is free to change has one")
    return plan.assign(names, cache=name)


_NAMED_SO = "layers with a name of those that make keys and values (k_proj, v_proj, key, value)"


def rule_to_dict(rule: Rule) -> dict[str, Any]:
    """Return the rule as its JSON object; ``cache`` only where there is one, as files from before it was known."""
    a = rule.assignment
    cache = {} if a.cache is None else {"cache": a.cache}
    return {
        "pattern": rule.pattern, "weights": a.weights, "inputs": a.inputs,
        "algorithm": a.algorithm, "range_method": a.range_method, **cache,
    }  # fmt: skip


def resolve(plan: Plan, layers: Sequence[Layer]) -> dict[str, Assignment]:
    """Return every layer's assignment, in the order of ``layers``.

    A tied layer has its owner's assignment.  Raises UnmatchedRuleError for a rule that matches no layer (with the
    closest names) and SchemeError for a scheme that does not exist.
    """
    names = [layer.name for layer in layers]
    known = set(names)
    found: dict[str, Assignment] = {}
    for rule in plan.rules:
        hits = _hits(rule, names, known)
        if not hits:
            raise UnmatchedRuleError(
                f"the rule {rule.pattern!r} matches no layer of the model{nearest(rule.pattern, known)}; "
                "correct the pattern or remove the rule"
            )
        for name in hits:
            found.setdefault(name, rule.assignment)
    assignments = _given(found, layers)
    _require_cached(found, assignments)
    return assignments


def resolve_some(plan: Plan, layers: Sequence[Layer]) -> dict[str, Assignment]:
    """Return what :func:`resolve` gives some layers of a model, for which every rule is known to match a layer.

    ``layers``, in model order, must hold with a layer its owner and all that are tied to it.
    """
    rules = {layer.name: plan.first(layer.name) for layer in layers}
    return _given({name: rule.assignment for name, rule in rules.items() if rule is not None}, layers)


NEAR = 64
"""How far ahead a rule is looked for in the other plan, and how many differences are followed."""


def changed_names(old: Plan, new: Plan) -> set[str] | None:
    """Return the names whose rules differ; None if a pattern does, or if the plans differ too much to tell quickly.

    Without those rules both plans have the same rules in the same order, so layers of other names have the same
    assignment in both.
    """
    a, b = old.rules, new.rules
    at_a = at_b = 0
    differing: list[Rule] = []
    while len(differing) <= 4 * NEAR:
        run = _common(a, b, at_a, at_b)
        at_a, at_b = at_a + run, at_b + run
        if at_a == len(a) or at_b == len(b):
            differing += (*a[at_a:], *b[at_b:])
            break
        gone, come = _nearest(a, b, at_a, at_b)
        differing += (*a[at_a : at_a + gone], *b[at_b : at_b + come])
        at_a, at_b = at_a + gone, at_b + come
    if len(differing) > 4 * NEAR or any(is_glob(rule.pattern) for rule in differing):
        return None
    return {rule.pattern for rule in differing}


def _common(a: Sequence[Rule], b: Sequence[Rule], at_a: int, at_b: int) -> int:
    """Return how many rules from ``a[at_a]`` and ``b[at_b]`` on are the same."""
    run, step = 0, 1
    while step:
        first = a[at_a + run : at_a + run + step]
        same = first == b[at_b + run : at_b + run + step] and len(first) == step
        run += step if same else 0
        step = step * 2 if same else step // 2
        if not same:
            break
    while step:
        first = a[at_a + run : at_a + run + step]
        run += step if first == b[at_b + run : at_b + run + step] and len(first) == step else 0
        step //= 2
    return run


def _nearest(a: Sequence[Rule], b: Sequence[Rule], at_a: int, at_b: int) -> tuple[int, int]:
    """Return how many rules to skip in ``a`` and in ``b`` until they are the same again; (1, 1) if that is far."""
    for ahead in range(1, NEAR):
        if at_b + ahead < len(b) and b[at_b + ahead] is a[at_a]:
            return 0, ahead
        if at_a + ahead < len(a) and a[at_a + ahead] is b[at_b]:
            return ahead, 0
    return 1, 1


def _given(found: dict[str, Assignment], layers: Sequence[Layer]) -> dict[str, Assignment]:
    """Return every layer's assignment from what the rules say of it; tied layers follow their owner."""
    for assignment in set(found.values()):
        _check(assignment)
    result = {}
    for layer in layers:
        owner = layer.tied_to if layer.tied_to and layer.name not in found else layer.name
        given = found.get(owner, Assignment())
        if given.cache is not None and not makes_keys_or_values(layer):
            given = replace(given, cache=None)
        result[layer.name] = given
    return _share_ties(result, layers)


def _hits(rule: Rule, names: Sequence[str], known: set[str]) -> list[str]:
    if not is_glob(rule.pattern):
        return [rule.pattern] if rule.pattern in known else []
    try:
        return [name for name in names if rule.matches(name)]
    except re.error as error:
        raise PlanError(f"the rule {rule.pattern!r} is no valid regular expression: {error}") from None


def _check(assignment: Assignment) -> None:
    if assignment.weights != KEEP:
        parse_scheme(assignment.weights)
    if assignment.inputs is not None:
        parse_scheme(assignment.inputs)
    if assignment.cache is not None:
        cache_scheme(assignment.cache)


def _require_cached(found: Mapping[str, Assignment], assignments: Mapping[str, Assignment]) -> None:
    """Raise PlanError if the plan rounds a key-value cache and the model has no layer that fills one."""
    asked = next((name for name, given in found.items() if given.cache is not None), None)
    if asked is not None and not any(given.cache is not None for given in assignments.values()):
        raise PlanError(
            f"the plan stores what {asked} gives the key-value cache in {found[asked].cache}, but needs {_NAMED_SO}; "
            "take the cache scheme out"
        )


def _share_ties(assignments: dict[str, Assignment], layers: Sequence[Layer]) -> dict[str, Assignment]:
    """Give tied layers one weight scheme: the owner's unless only the tied layer was given one."""
    for layer in layers:
        if layer.tied_to is None:
            continue
        owner, tied = assignments[layer.tied_to], assignments[layer.name]
        weights = owner.weights if owner.weights != KEEP else tied.weights
        assignments[layer.tied_to] = replace(owner, weights=weights)
        assignments[layer.name] = replace(tied, weights=weights)
    return assignments

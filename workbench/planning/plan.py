"""The plan: ordered rules that give layers their schemes.  First match wins; editing makes a new plan."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

from workbench.atomic import replacing
from workbench.errors import PlanError, UnmatchedRuleError, nearest
from workbench.models.kv_cache import cache_scheme, makes_keys_or_values
from workbench.models.layer import Layer
from workbench.numerics.formats import parse_scheme
from workbench.numerics.rounding import ALIASES
from workbench.planning import plan_document
from workbench.planning.patterns import is_glob, matching

KEEP = plan_document.KEEP
"""The scheme name that leaves a layer's weight exactly as the model stores it."""

LEARNED = "learned"
"""The algorithm that runs the model on data: all its layers are rounded together, after those of every other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What one layer gets: weight scheme (or ``keep``), input scheme (or None), algorithm and range method.

    An algorithm's name from its paper (``adaround``, ``gptaq``) becomes the plan's own.

    ``cache`` is the scheme in which the KV cache stores what the layer gives it (None: as computed); it says
    nothing to layers that make neither keys nor values.
    """

    weights: str = KEEP
    inputs: str | None = None
    algorithm: str = "rtn-clip"
    range_method: str = "min-max"
    cache: str | None = None

    def __post_init__(self) -> None:
        if self.algorithm in ALIASES:
            object.__setattr__(self, "algorithm", ALIASES[self.algorithm])


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """``pattern`` is a layer's exact name, a shell pattern (``model.layers.*.mlp.*``) or ``re:`` and an expression."""

    pattern: str
    assignment: Assignment

    def matches(self, name: str) -> bool:
        """Tell whether the rule matches the layer ``name``."""
        return bool(matching(self.pattern, (name,)))

    @property
    def document(self) -> dict[str, Any]:
        """The rule as its JSON object; ``cache`` only where there is one, as in files from before it was known."""
        given = self.assignment
        cache = {} if given.cache is None else {"cache": given.cache}
        return {
            "pattern": self.pattern, "weights": given.weights, "inputs": given.inputs,
            "algorithm": given.algorithm, "range_method": given.range_method, **cache,
        }  # fmt: skip


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
        rules = [rule.document for rule in self.rules]
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
            if matching(pattern, (name,)):
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

    def to_json(self) -> str:
        """Return the plan as JSON text (schema: ``resources/plan.schema.json``), one line for each rule."""
        transforms = {"transforms": list(self.transforms)} if self.transforms else {}
        return plan_document.write_document({
            "name": self.name, "model": self.model, "fingerprint": self.fingerprint, **transforms,
            "rules": [rule.document for rule in self.rules],
        })  # fmt: skip

    @staticmethod
    def from_json(source: str | Mapping[str, Any], where: str = "the plan") -> Plan:
        """Return the plan that a JSON text, or what was parsed from one, describes.

        ``where`` names the source in messages.  Raises PlanError as :func:`plan_document.read_document` does.
        """
        document = plan_document.read_document(source, where)
        members = {key: document[key] for key in ("name", "model", "fingerprint") if key in document}
        rules = tuple(
            Rule(pattern=rule["pattern"], assignment=Assignment(**{k: v for k, v in rule.items() if k != "pattern"}))
            for rule in document["rules"]
        )
        return Plan(rules=rules, transforms=tuple(document.get("transforms", ())), **members)

    def save(self, path: str | Path) -> None:
        """Write the plan as JSON, atomically.

        Raises PlanError for a plan that would be refused on reading, or if the file cannot be written (the old one
        stays).
        """
        text = self.to_json()
        if Plan.from_json(text, str(path)) != self:
            raise PlanError(f"the plan {self.name!r} does not survive its JSON form; please report this")
        with replacing(Path(path), PlanError, "the plan") as temporary:
            temporary.write_bytes(text.encode())

    @staticmethod
    def load(path: str | Path) -> Plan:
        """Read a plan from JSON; raises PlanError naming the file, the place in it and what was expected."""
        return Plan.from_json(plan_document.read_text(Path(path)), str(path))

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
        raise PlanError(f"a KV cache in {name} needs {_CACHED_LAYERS}, and no layer that is free to change has one")
    return plan.assign(names, cache=name)


NEAR = 64
"""How far ahead a rule is looked for in the other plan, and how many differences are followed."""
_CACHED_LAYERS = "layers with a name of those that make keys and values (k_proj, v_proj, key, value)"


def resolve(plan: Plan, layers: Sequence[Layer]) -> dict[str, Assignment]:
    """Return every layer's assignment, in the order of ``layers``.

    A tied layer has its owner's assignment.  Raises UnmatchedRuleError for a rule that matches no layer (with the
    closest names) and SchemeError for a scheme that does not exist.
    """
    names = [layer.name for layer in layers]
    known = set(names)
    matched: dict[str, Assignment] = {}
    for rule in plan.rules:
        hits = _hits(rule, names, known)
        if not hits:
            raise UnmatchedRuleError(
                f"the rule {rule.pattern!r} matches no layer of the model{nearest(rule.pattern, known)}; "
                "correct the pattern or remove the rule"
            )
        for name in hits:
            matched.setdefault(name, rule.assignment)
    assignments = _given(matched, layers)
    _require_cached(matched, assignments)
    return assignments


def resolve_some(plan: Plan, layers: Sequence[Layer]) -> dict[str, Assignment]:
    """Return what :func:`resolve` gives some layers of a model, for which every rule is known to match a layer.

    ``layers``, in model order, must hold with a layer its owner and all that are tied to it.
    """
    rules = {layer.name: plan.first(layer.name) for layer in layers}
    return _given({name: rule.assignment for name, rule in rules.items() if rule is not None}, layers)


def changed_names(old: Plan, new: Plan) -> set[str] | None:
    """Return the names whose rules differ; None if a pattern does, or if the plans differ too much to tell quickly.

    Found by walking along both: comparing all rules as sets takes five times as long where each of thousands of layers
    has a rule.  Without those rules both plans have the same rules in the same order, so layers of other names have the
    same assignment in both.
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
        removed, added = _nearest(a, b, at_a, at_b)
        differing += (*a[at_a : at_a + removed], *b[at_b : at_b + added])
        at_a, at_b = at_a + removed, at_b + added
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


def _given(matched: dict[str, Assignment], layers: Sequence[Layer]) -> dict[str, Assignment]:
    """Return every layer's assignment from what the rules say of it; tied layers follow their owner."""
    for assignment in set(matched.values()):
        _check(assignment)
    result = {}
    for layer in layers:
        owner = layer.tied_to if layer.tied_to and layer.name not in matched else layer.name
        given = matched.get(owner, Assignment())
        if given.cache is not None and not makes_keys_or_values(layer):
            given = replace(given, cache=None)
        result[layer.name] = given
    return _share_ties(result, layers)


def _hits(rule: Rule, names: Sequence[str], known: set[str]) -> list[str]:
    if not is_glob(rule.pattern):
        return [rule.pattern] if rule.pattern in known else []
    return matching(rule.pattern, names)


def _check(assignment: Assignment) -> None:
    if assignment.weights != KEEP:
        parse_scheme(assignment.weights)
    if assignment.inputs is not None:
        parse_scheme(assignment.inputs)
    if assignment.cache is not None:
        cache_scheme(assignment.cache)


def _require_cached(matched: Mapping[str, Assignment], assignments: Mapping[str, Assignment]) -> None:
    """Raise PlanError if the plan rounds a KV cache and the model has no layer that fills one."""
    asked = next((name for name, given in matched.items() if given.cache is not None), None)
    if asked is not None and not any(given.cache is not None for given in assignments.values()):
        raise PlanError(
            f"the plan stores what {asked} gives the KV cache in {matched[asked].cache}, but needs {_CACHED_LAYERS}; "
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

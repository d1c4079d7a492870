"""The plan: ordered rules that give layers their schemes.  First match wins; editing makes a new plan."""

from __future__ import annotations

import hashlib
import json
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from workbench.atomic import replacing
from workbench.errors import PlanError, UnmatchedRuleError, nearest
from workbench.models.kv_cache import cache_scheme, makes_keys_or_values, no_cache
from workbench.models.layer import Layer
from workbench.models.summary import ModelSummary
from workbench.numerics.formats import parse_scheme
from workbench.numerics.rounding import ALIASES
from workbench.planning import plan_document
from workbench.planning.patterns import any_glob, is_glob, matching

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
    range_method: str = "loss"
    cache: str | None = None

    def __post_init__(self) -> None:
        if self.algorithm in ALIASES:
            object.__setattr__(self, "algorithm", ALIASES[self.algorithm])


KEPT = Assignment()
"""What layers get that no rule matches."""

_FIELDS = tuple(field.name for field in fields(Assignment))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """``pattern`` is a layer's exact name, a shell pattern (``model.layers.*.mlp.*``) or ``re:`` and an expression."""

    pattern: str
    assignment: Assignment

    def matches(self, name: str) -> bool:
        """Return whether the rule matches the layer ``name``."""
        return bool(matching(self.pattern, (name,)))

    @property
    def document(self) -> dict[str, Any]:
        """The rule as its JSON object; ``cache`` only where there is one, as in files from before it was known."""
        members = {"pattern": self.pattern} | {name: getattr(self.assignment, name) for name in _FIELDS}
        return members if members["cache"] is not None else {k: v for k, v in members.items() if k != "cache"}


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

    @cached_property
    def hash(self) -> str:
        """``sha256:`` of rules and transforms in canonical form: equal for plans that say the same in one order."""
        text = f"[{','.join(_canonical_rules(self.rules))}]"
        if self.transforms:
            text = f'{{"rules":{text},"transforms":{_canonical(list(self.transforms))}}}'
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()

    def assign(self, layers: Iterable[str], **changes: Any) -> Plan:
        """Return a plan in which ``layers`` have ``changes`` (fields of Assignment) and all else is as before."""
        names = tuple(dict.fromkeys(layers))
        changed = frozenset(names)
        before = self._of_each(names)
        made = {each: replace(each, **changes) for each in _distinct(before)}
        after = {id(each): made[each] for each in {id(each): each for each in before}.values()}
        first = tuple(Rule(pattern=name, assignment=after[id(each)]) for name, each in zip(names, before, strict=True))
        plan = replace(self, rules=first + tuple(rule for rule in self.rules if rule.pattern not in changed))
        if not any_glob(names):
            vars(plan).update(_patterns=self._patterns, _origin=(weakref.ref(self), changed))
        return plan

    def of(self, name: str) -> Assignment:
        """Return what the first matching rule gives the layer ``name``; kept as it is if none matches."""
        rule = self.first(name)
        return KEPT if rule is None else rule.assignment

    def _of_each(self, names: Sequence[str]) -> list[Assignment]:
        """Return what :meth:`of` does for each of ``names``, quickly where no rule is a pattern."""
        if self._patterns:
            return list(map(self.of, names))
        places = map(self._exact.get, names)
        return [KEPT if place is None else self.rules[place].assignment for place in places]

    def first(self, name: str) -> Rule | None:
        """Return the first rule that matches the layer ``name``."""
        at = self._exact.get(name)
        for place in map(self._exact.__getitem__, self._patterns):
            if at is not None and place > at:
                break
            if self.rules[place].matches(name):
                return self.rules[place]
        return None if at is None else self.rules[at]

    @cached_property
    def _origin(self) -> tuple[Callable[[], Plan | None], frozenset[str]]:
        """The plan that :meth:`assign` made this one of, while it lives, and the names that it changed."""
        return (lambda: None), frozenset()

    @cached_property
    def _exact(self) -> dict[str, int]:
        """The place of the first rule of each pattern."""
        last = len(self.rules) - 1
        return {rule.pattern: last - index for index, rule in enumerate(reversed(self.rules))}

    @cached_property
    def _patterns(self) -> tuple[str, ...]:
        """The patterns that can match more than one name, in order."""
        if not any_glob(self._exact):
            return ()
        return tuple(sorted(filter(is_glob, self._exact), key=self._exact.__getitem__))

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def to_json(self) -> str:
        """Return the plan as JSON text (schema: ``resources/plan.schema.json``), one line for each rule."""
        transforms = {"transforms": list(self.transforms)} if self.transforms else {}
        head = {"name": self.name, "model": self.model, "fingerprint": self.fingerprint, **transforms}
        return plan_document.write_document(head, [rule.document for rule in self.rules])

    @staticmethod
    def from_json(source: str | Mapping[str, Any], where: str = "the plan") -> Plan:
        """Return the plan that a JSON text, or what was parsed from one, describes.

        ``where`` names the source in messages.  Raises PlanError as :func:`plan_document.read_document` does.
        """
        document = plan_document.read_document(source, where)
        head = {key: document[key] for key in ("name", "model", "fingerprint") if key in document}
        members = [dict(rule) for rule in document["rules"]]
        rules = tuple(Rule(pattern=rule.pop("pattern"), assignment=Assignment(**rule)) for rule in members)
        return Plan(rules=rules, transforms=tuple(document.get("transforms", ())), **head)

    def save(self, path: str | Path) -> None:
        """Write the plan as JSON, atomically.

        Raises PlanError for a plan that would be refused on reading, or if the file cannot be written (the old one
        stays).
        """
        text = self.to_json()
        if Plan.from_json(text, str(path)) != self:
            raise PlanError(
                f"the plan {self.name!r} does not read back from JSON as it was written; please report this"
            )
        with replacing(Path(path), PlanError, "the plan") as temporary:
            temporary.write_bytes(text.encode())

    @staticmethod
    def load(path: str | Path) -> Plan:
        """Read a plan from JSON; raises PlanError naming the file, the place in it and what was expected."""
        return Plan.from_json(plan_document.read_text(Path(path)), str(path))

    def require_model(self, summary: ModelSummary) -> None:
        """Raise FingerprintMismatchError where the plan was made for another model than that of ``summary``."""
        if self.fingerprint is not None:
            summary.require_fingerprint(self.fingerprint, f"the plan {self.name!r}")

    @staticmethod
    def uniform(layers: Iterable[Layer], scheme: str, **changes: Any) -> Plan:
        """Return a plan that gives every one of ``layers`` the same scheme; ``changes`` are further fields for all."""
        name = parse_scheme(scheme).name
        return Plan(name=f"uniform {name}").assign((layer.name for layer in layers), weights=name, **changes)


def with_cache(plan: Plan, layers: Collection[Layer], scheme: str | None, but: Collection[str] = ()) -> Plan:
    """Return ``plan`` with the keys and values of all of ``layers`` stored in ``scheme``, but for those in ``but``.

    None stores them as computed.  Raises PlanError where none of them makes keys or values, or for a scheme that a
    cache cannot have.
    """
    names = [layer.name for layer in layers if makes_keys_or_values(layer) and layer.name not in but]
    if scheme is None:
        return plan.assign(names, cache=None) if names else plan
    name = cache_scheme(scheme).name
    if not names:
        raise PlanError(
            f"a KV cache in {name} needs {_CACHED_LAYERS}, and no layer that is free to change is one{no_cache(layers)}"
        )
    return plan.assign(names, cache=name)


_CACHED_LAYERS = "decoder layers with a name of those that make keys and values (k_proj, v_proj, key, value)"

_latest: tuple[Sequence[Rule], Sequence[Layer], dict[str, Assignment]] = (), (), {}


def resolve(plan: Plan, layers: Sequence[Layer]) -> dict[str, Assignment]:
    """Return every layer's assignment, in the order of ``layers``.

    A tied layer has its owner's assignment.  Raises UnmatchedRuleError for a rule that matches no layer (with the
    closest names) and SchemeError for a scheme that does not exist.
    """
    global _latest  # a search resolves the plan that it made, the document then resolves the same rules again
    rules, resolved_layers, resolved = _latest
    if plan.rules is rules and layers is resolved_layers and isinstance(layers, tuple):
        return dict(resolved)
    assignments = _resolved(plan, layers)
    _latest = plan.rules, layers, assignments
    return dict(assignments)


def _resolved(plan: Plan, layers: Sequence[Layer]) -> dict[str, Assignment]:
    names = dict.fromkeys(layer.name for layer in layers)
    patterns = {pattern: matching(pattern, names) for pattern in plan._patterns}
    for pattern in (rule.pattern for rule in plan.rules if not (rule.pattern in names or patterns.get(rule.pattern))):
        raise UnmatchedRuleError(
            f"the rule {pattern!r} matches no layer of the model{nearest(pattern, names)}; "
            "correct the pattern or remove the rule"
        )
    matched = {} if patterns else {rule.pattern: rule.assignment for rule in reversed(plan.rules)}
    for rule in plan.rules if patterns else ():
        for name in patterns.get(rule.pattern, (rule.pattern,)):
            matched.setdefault(name, rule.assignment)
    assignments = _with_ties(matched, layers)
    cached = next((name for name, assignment in matched.items() if assignment.cache is not None), None)
    if cached is not None and all(assignment.cache is None for assignment in assignments.values()):
        raise PlanError(
            f"the plan stores what {cached} gives the KV cache in {matched[cached].cache}, but a cache needs "
            f"{_CACHED_LAYERS}{no_cache(layer for layer in layers if layer.name in matched)}; take the cache scheme out"
        )
    return assignments


def resolve_some(plan: Plan, layers: Sequence[Layer]) -> dict[str, Assignment]:
    """Return what :func:`resolve` gives some layers of a model, for which every rule is known to match a layer.

    ``layers``, in model order, must hold with a layer its owner and all that are tied to it.
    """
    rules = {layer.name: plan.first(layer.name) for layer in layers}
    return _with_ties({name: rule.assignment for name, rule in rules.items() if rule is not None}, layers)


def changed_names(old: Plan, new: Plan) -> frozenset[str] | None:
    """Return the names whose rules differ where one plan came of the other by :meth:`Plan.assign`; None otherwise.

    Layers of other names then have the same assignment in both.  Comparing the rules of thousands of layers would take
    longer than the rest of an edit.
    """
    if old is new:
        return frozenset()
    for earlier, later in ((old, new), (new, old)):
        origin, names = later._origin
        if origin() is earlier:
            return names
    return None


def _canonical(document: Any) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def _canonical_rules(rules: Sequence[Rule]) -> Iterator[str]:
    """Yield the canonical JSON text of each rule, in a tenth of the time that encoding thousands of objects takes."""
    objects = {id(rule.assignment): rule.assignment for rule in rules}
    texts = {
        each: _canonical(Rule(pattern="", assignment=each).document).split('"pattern":""')
        for each in _distinct(objects.values())
    }
    around = {key: texts[each] for key, each in objects.items()}
    patterns = json.dumps([rule.pattern for rule in rules], separators=("\n", ":"))[1:-1].split("\n")
    for rule, pattern in zip(rules, patterns, strict=bool(rules)):
        before, after = around[id(rule.assignment)]
        yield f'{before}"pattern":{pattern}{after}'


def _distinct(assignments: Iterable[Assignment]) -> set[Assignment]:
    """Return the different ones; thousands of layers share few objects, and hashing each would take longer."""
    return set({id(each): each for each in assignments}.values())


def _with_ties(matched: Mapping[str, Assignment], layers: Sequence[Layer]) -> dict[str, Assignment]:
    """Return every layer's assignment by what the rules say of it; SchemeError for a scheme that does not exist.

    Tied layers follow their owner, and have one weight scheme: the owner's unless only the tied layer has one.
    """
    distinct = _distinct(matched.values())
    for assignment in distinct:
        for scheme in (assignment.weights if assignment.weights != KEEP else None, assignment.inputs):
            if scheme is not None:
                parse_scheme(scheme)
        if assignment.cache is not None:
            cache_scheme(assignment.cache)
    result = {layer.name: matched.get(layer.name, KEPT) for layer in layers}
    ties = [(layer.name, layer.tied_to) for layer in layers if layer.tied_to is not None]
    result |= {name: matched.get(owner, KEPT) for name, owner in ties if name not in matched}
    if any(assignment.cache is not None for assignment in distinct):
        others = (layer.name for layer in layers if not makes_keys_or_values(layer))
        result |= {name: replace(result[name], cache=None) for name in others if result[name].cache is not None}
    for name, owner in ties:
        owned, tied = result[owner], result[name]
        weights = owned.weights if owned.weights != KEEP else tied.weights
        result[owner] = replace(owned, weights=weights)
        result[name] = replace(tied, weights=weights)
    return result

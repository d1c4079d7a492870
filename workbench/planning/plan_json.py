"""Plans as JSON files, checked against the published schema ``resources/plan.schema.json`` whenever they are read."""

from __future__ import annotations

import importlib.resources
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from workbench.atomic import replacing
from workbench.errors import PlanError, SchemeError, nearest
from workbench.numerics.formats import parse_scheme
from workbench.planning.plan import KEEP, Assignment, Plan, Rule, rule_to_dict

TYPE = "quantization-workbench/plan"
VERSION = 1
_WORDS = {"object": "an object", "array": "a list", "string": "a string", "null": "null"}


def write_plan(plan: Plan, path: Path) -> None:
    """Write ``plan`` as JSON, atomically.

    Raises PlanError for a plan that would be refused on reading, or if the file cannot be written (the old one stays).
    """
    text = plan_to_json(plan)
    if plan_from_json(text, str(path)) != plan:
        raise PlanError(f"the plan {plan.name!r} does not survive its JSON form; please report this")
    with replacing(path, PlanError, "the plan") as temporary:
        temporary.write_bytes(text.encode())


def read_plan(path: Path) -> Plan:
    """Read a plan from a JSON file; raises PlanError naming the file, the place in it and what was expected."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PlanError(f"{path} is no plan: byte {error.start} is no UTF-8 text; a JSON file was expected") from None
    except OSError as error:
        raise PlanError(f"the plan {path} cannot be read: {error.strerror}") from None
    return plan_from_json(text, str(path))


def plan_to_json(plan: Plan) -> str:
    """Return ``plan`` as JSON text, one line for each rule."""
    head: dict[str, Any] = {
        "type": TYPE, "version": VERSION, "name": plan.name, "model": plan.model, "fingerprint": plan.fingerprint,
    }  # fmt: skip
    if plan.transforms:
        head["transforms"] = list(plan.transforms)
    lines = [f"  {_dump(key)}: {_dump(value)}," for key, value in head.items()]
    rules = ",\n".join(f"    {_dump(rule_to_dict(rule))}" for rule in plan.rules)
    body = f"[\n{rules}\n  ]" if rules else "[]"
    return "\n".join(["{", *lines, f'  "rules": {body}', "}", ""])


def plan_from_json(source: str | Mapping[str, Any], where: str = "the plan") -> Plan:
    """Return the plan that a JSON text, or what was parsed from one, describes.

    ``where`` names the source in messages.  Raises PlanError for broken JSON (line and column), for content that the
    schema refuses (JSON pointer and what was expected), an unknown scheme (with the closest names), a pattern that is
    no regular expression, and a file of a later version.
    """
    document = _parse(source, where) if isinstance(source, str) else source
    _check_version(document, where)
    _check_schema(document, where)
    rules = tuple(_rule(entry, f"{where}, /rules/{index}") for index, entry in enumerate(document["rules"]))
    return Plan(
        rules=rules,
        name=document.get("name", "plan"),
        model=document.get("model", ""),
        fingerprint=document.get("fingerprint"),
        transforms=tuple(document.get("transforms", ())),
    )


@lru_cache(maxsize=1)
def plan_schema() -> dict[str, Any]:
    """Return the published JSON Schema (draft 2020-12)."""
    file = importlib.resources.files("workbench_resources").joinpath("plan.schema.json")
    schema: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return schema


def _dump(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _parse(text: str, where: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = next(key for key in found if sum(key == other for other, _ in pairs) > 1)
            raise PlanError(f"{where} is no plan: an object has the member {twice!r} twice; remove one of them")
        return found

    def refuse(constant: str) -> Any:
        raise PlanError(f"{where} is no plan: it holds {constant}, which is no JSON")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except json.JSONDecodeError as error:
        message = error.msg.lower().removesuffix(" at").removesuffix(" starting")
        cut = error.pos >= len(text.rstrip()) or message == "unterminated string"
        ended = "; the text ends too early: is the file truncated?" if cut else ""
        raise PlanError(f"{where} is no JSON: {message} at line {error.lineno}, column {error.colno}{ended}") from None
    except (RecursionError, ValueError):
        raise PlanError(f"{where} is no plan: it is nested too deeply or holds a number that is too long") from None


def _check_version(document: Any, where: str) -> None:
    if not isinstance(document, Mapping) or document.get("type") != TYPE:
        raise PlanError(f'{where} is no plan: an object with "type": "{TYPE}" was expected')
    version = document.get("version")
    if isinstance(version, int) and version > VERSION:
        raise PlanError(
            f"{where} has version {version}, this workbench reads version {VERSION} and older; update the workbench"
        )


def _check_schema(document: Mapping[str, Any], where: str) -> None:
    from jsonschema import Draft202012Validator

    found = Draft202012Validator(plan_schema()).iter_errors(document)
    error = min(found, key=lambda each: each.validator != "additionalProperties", default=None)
    if error is not None:
        pointer = "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in error.absolute_path)
        raise PlanError(f"{where}, {pointer or 'top level'}: {_expected(error)}")


def _expected(error: Any) -> str:
    """Say what came and what was expected, in words."""
    came = _shorten(error.instance)
    if error.validator == "type":
        kinds = [error.validator_value] if isinstance(error.validator_value, str) else error.validator_value
        return f"{' or '.join(_WORDS[kind] for kind in kinds)} was expected, {came} came"
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in error.instance)
        return f"the member {missing!r} is missing"
    if error.validator == "additionalProperties":
        known = error.schema["properties"]
        extra = next(name for name in error.instance if name not in known)
        return f"the member {extra!r} is not known{nearest(extra, known)}"
    if error.validator == "const":
        return f"{error.validator_value!r} was expected, {came} came"
    if error.validator == "minLength":
        return "a string that is not empty was expected"
    return str(error.message)


def _shorten(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _rule(entry: Mapping[str, Any], where: str) -> Rule:
    default = Assignment()
    assignment = Assignment(
        weights=entry["weights"],
        inputs=entry.get("inputs"),
        algorithm=entry.get("algorithm", default.algorithm),
        range_method=entry.get("range_method", default.range_method),
        cache=entry.get("cache"),
    )
    if assignment.weights != KEEP:
        _check_scheme(assignment.weights, f"{where}/weights")
    if assignment.inputs is not None:
        _check_scheme(assignment.inputs, f"{where}/inputs")
    if assignment.cache is not None:
        _check_scheme(assignment.cache, f"{where}/cache")
    _check_pattern(entry["pattern"], f"{where}/pattern")
    return Rule(pattern=entry["pattern"], assignment=assignment)


@lru_cache(maxsize=4096)
def _scheme_problem(name: str) -> str | None:
    try:
        parse_scheme(name)
    except SchemeError as error:
        return str(error)
    return None


def _check_scheme(name: str, where: str) -> None:
    problem = _scheme_problem(name)
    if problem is not None:
        raise PlanError(f"{where}: {problem}")


def _check_pattern(pattern: str, where: str) -> None:
    if pattern.startswith("re:"):
        try:
            re.compile(pattern[3:])
        except (re.error, RecursionError, OverflowError) as error:
            raise PlanError(f"{where}: {pattern!r} is no valid regular expression: {error}") from None

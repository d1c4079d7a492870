"""The JSON document of a plan as plain data, checked against ``resources/plan.schema.json`` whenever it is read."""

from __future__ import annotations

import importlib.resources
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache, reduce
from operator import getitem
from pathlib import Path
from typing import Any

from workbench.errors import PlanError, SchemeError, nearest
from workbench.numerics.formats import parse_scheme
from workbench.plain_file import LARGEST_JSON, read_bytes
from workbench.planning.patterns import EXPRESSION, compiled, require_few

TYPE = "quantization-workbench/plan"
VERSION = 1
KEEP = "keep"
"""What stands for a scheme where a weight stays as the model stores it."""

_known_scheme = lru_cache(maxsize=4096)(parse_scheme)
_WORDS = {"object": "an object", "array": "a list", "string": "a string", "null": "null"}


def read_text(path: Path) -> str:
    """Return the text of a plan file; raises PlanError."""
    try:
        return read_bytes(path, pipe=True, largest=LARGEST_JSON).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PlanError(f"{path} is not a plan: byte {error.start} is not UTF-8; a JSON file was expected") from None
    except OSError as error:
        raise PlanError(f"the plan {path} cannot be read: {error.strerror}") from None


def write_document(head: Mapping[str, Any], rules: Iterable[Mapping[str, Any]]) -> str:
    """Return a plan's members as JSON text, one line for each rule."""
    members = {"type": TYPE, "version": VERSION, **head}
    lines = ",\n".join(f"    {_dump(rule)}" for rule in rules)
    body = f"[\n{lines}\n  ]" if lines else "[]"
    return "\n".join(["{", *(f"  {_dump(k)}: {_dump(v)}," for k, v in members.items()), f'  "rules": {body}', "}", ""])


def read_document(source: str | Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Return the members of a JSON text, or of what was parsed from one, after all checks.

    ``where`` names the source in messages.  Raises PlanError for broken JSON (line and column), for content that the
    schema refuses (JSON pointer and what was expected), an unknown scheme (with the closest names), a pattern that is
    not a regular expression, and a file of a later version.
    """
    document: Any = _parse(source, where) if isinstance(source, str) else source
    if not isinstance(document, Mapping) or document.get("type") != TYPE:
        raise PlanError(f'{where} is not a plan: an object with "type": "{TYPE}" was expected')
    version = document.get("version")
    if isinstance(version, int) and version > VERSION:
        raise PlanError(
            f"{where} has version {version}, this workbench reads version {VERSION} and older; update the workbench"
        )
    _check_schema(document, where)
    try:
        require_few(rule["pattern"] for rule in document["rules"])
    except PlanError as error:
        raise PlanError(f"{where}: {error}") from None
    for index, rule in enumerate(document["rules"]):
        _check_rule(rule, f"{where}, /rules/{index}")
    return document


@lru_cache(maxsize=1)
def plan_schema() -> dict[str, Any]:
    """Return the published JSON Schema (draft 2020-12)."""
    file = importlib.resources.files("workbench_resources").joinpath("plan.schema.json")
    schema: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return schema


def _dump(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", text)


def _parse(text: str, where: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
            raise PlanError(f"{where} is not a plan: an object has the member {twice!r} twice; remove one of them")
        return members

    def refuse(constant: str) -> Any:
        raise PlanError(f"{where} is not a plan: it holds {constant}, which is not JSON")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except json.JSONDecodeError as error:
        message = error.msg.lower().removesuffix(" at").removesuffix(" starting")
        cut = error.pos >= len(text.rstrip()) or message == "unterminated string"
        ended = "; the text ends too early: is the file truncated?" if cut else ""
        raise PlanError(f"{where} is not JSON: {message} at line {error.lineno}, column {error.colno}{ended}") from None
    except (RecursionError, ValueError):
        raise PlanError(f"{where} is not a plan: it is nested too deeply or holds a number that is too long") from None


@lru_cache(maxsize=1)
def _validator() -> Any:
    from jsonschema_rs import Draft202012Validator

    return Draft202012Validator(plan_schema())


def _check_schema(document: Mapping[str, Any], where: str) -> None:
    errors = _validator().iter_errors(document)
    error = min(errors, key=lambda each: each.schema_path[-1] != "additionalProperties", default=None)
    if error is not None:
        pointer = "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in error.instance_path)
        raise PlanError(f"{where}, {pointer or 'top level'}: {_expected(error)}")


def _expected(error: Any) -> str:
    """Describe what came and what was expected, in words."""
    came = json.dumps(error.instance)
    came = came if len(came) <= 60 else came[:57] + "..."
    facts, schema = error.kind.as_dict(), reduce(getitem, error.schema_path[:-1], plan_schema())
    match error.schema_path[-1]:
        case "type":
            expected = " or ".join(words for kind, words in _WORDS.items() if kind in facts["types"])
            return f"{expected} was expected, {came} came"
        case "required":
            return f"the member {facts['property']!r} is missing"
        case "additionalProperties":
            extra = facts["unexpected"][0]
            return f"the member {extra!r} is not known{nearest(extra, schema['properties'])}"
        case "const":
            return f"{schema['const']!r} was expected, {came} came"
        case "minLength":
            return "a string that is not empty was expected"
    return str(error.message)


def _check_rule(rule: Mapping[str, Any], where: str) -> None:
    """Raise PlanError for a scheme that does not exist or a pattern that is not a regular expression."""
    for member in ("weights", "inputs", "cache"):
        scheme = rule.get(member)
        if scheme is None or (member == "weights" and scheme == KEEP):
            continue
        try:
            _known_scheme(scheme)
        except SchemeError as error:
            raise PlanError(f"{where}/{member}: {error}") from None
    if rule["pattern"].startswith(EXPRESSION):
        try:
            compiled(rule["pattern"])
        except PlanError as error:
            raise PlanError(f"{where}/pattern: {error}") from None

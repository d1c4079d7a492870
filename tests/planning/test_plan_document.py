"""Plans as JSON: the published schema, exact round trips, and errors that say where."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import PlanError
from workbench.planning.plan import Assignment, Plan, Rule
from workbench.planning.plan_document import plan_schema

SCHEMES = st.sampled_from(["int4-g32-asym", "int8-channel", "fp8-e4m3-channel", "bf16", "int3-g64-asym-sbf16"])
WORDS = st.text(min_size=1, max_size=12)
RULES = st.builds(
    Rule,
    pattern=WORDS.filter(lambda text: not text.startswith("re:")),
    assignment=st.builds(
        Assignment,
        weights=SCHEMES | st.just("keep"), inputs=st.none() | SCHEMES, algorithm=WORDS, range_method=WORDS,
        cache=st.none() | SCHEMES,
    ),
)  # fmt: skip
PLANS = st.builds(
    Plan,
    rules=st.lists(RULES, max_size=5).map(tuple), name=st.text(), model=st.text(), fingerprint=st.none() | st.text(),
)  # fmt: skip


def document(**changes: Any) -> dict[str, Any]:
    rules = [{"pattern": "a/b", "weights": "int4-g32"}]
    return {"type": "quantization-workbench/plan", "version": 1, "rules": rules} | changes


@settings(deadline=None)
@given(PLANS)
def test_every_plan_survives_and_meets_the_schema(plan: Plan) -> None:
    text = plan.to_json()
    assert Plan.from_json(text) == plan
    assert Plan.from_json(json.loads(text)).hash == plan.hash
    jsonschema.validate(json.loads(text), plan_schema(), cls=jsonschema.Draft202012Validator)


def test_a_plan_without_a_cache_is_written_as_before_it_was_known() -> None:
    assert Plan.from_json(document()).rules[0].assignment.range_method == "loss"
    plan = Plan.from_json(document(rules=[{**each, "range_method": "min-max"} for each in document()["rules"]]))
    assert plan.rules[0].assignment.cache is None and "cache" not in plan.to_json()
    assert plan.hash == "sha256:e2c3b5cc0bd885fce002ecfdf12f4fa908f75981bd75a69df3cafbe19b3ffe31"
    cached = Plan.from_json(document(rules=[{"pattern": "a/b", "weights": "int4-g32", "cache": "int8-token"}]))
    assert cached.rules[0].assignment.cache == "int8-token" and cached.hash != plan.hash
    with pytest.raises(PlanError, match="/rules/0/cache.*int8-tokn"):
        Plan.from_json(document(rules=[{"pattern": "a/b", "weights": "int4-g32", "cache": "int8-tokn"}]))


def test_the_schema_is_valid_and_so_are_its_examples() -> None:
    jsonschema.Draft202012Validator.check_schema(plan_schema())
    for example in plan_schema()["examples"]:
        assert Plan.from_json(example).rules
    resource = Path(__file__).parents[2] / "resources" / "plan.schema.json"
    assert json.loads(resource.read_text(encoding="utf-8")) == plan_schema()


def test_every_property_of_the_schema_is_described() -> None:
    def walk(node: dict[str, Any]) -> None:
        for name, entry in node.get("properties", {}).items():
            assert entry.get("description"), name
            walk(entry)

    walk(plan_schema())
    walk(plan_schema()["$defs"]["rule"])


def test_left_out_members_have_the_defaults() -> None:
    plan = Plan.from_json(document())
    assert plan == Plan(rules=(Rule(pattern="a/b", assignment=Assignment(weights="int4-g32")),))


def test_a_rule_for_each_of_50_000_layers_is_read_in_seconds() -> None:
    """The check of the schema took 32 seconds of processor time, and of nothing else."""
    rules = [{"pattern": f"model.layers.{number}", "weights": "int4-g32"} for number in range(50_000)]
    began = time.process_time()
    plan = Plan.from_json(document(rules=rules))
    assert len(plan.rules) == 50_000 and time.process_time() - began < 10
    rules[49_999]["weigths"] = "int4"
    with pytest.raises(PlanError, match="/rules/49999: the member 'weigths' is not known"):
        Plan.from_json(document(rules=rules))


def test_save_and_load(tmp_path: Path) -> None:
    plan = Plan(name="Größe").assign(["model.layers.0", "слой/1"], weights="int4-g32-asym", inputs="int8-token")
    plan.save(tmp_path / "p.json")
    assert Plan.load(tmp_path / "p.json") == plan
    assert "Größe" in (tmp_path / "p.json").read_text(encoding="utf-8")


def test_a_byte_order_mark_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(document()).encode())
    assert Plan.load(tmp_path / "p.json").rules


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": 2}, "has version 2, this workbench reads version 1"),
        ({"version": 0}, "/version: 1 was expected, 0 came"),
        ({"type": "x"}, "was expected"),
        ({"rules": 3}, "/rules: a list was expected, 3 came"),
        ({"rules": [{"pattern": "a"}]}, "/rules/0: the member 'weights' is missing"),
        ({"rules": [{"pattern": "a", "wieghts": "int4"}]}, "'wieghts' is not known; the closest are weights"),
        ({"rules": [{"pattern": "a", "weights": 4}]}, "/rules/0/weights: a string was expected, 4 came"),
        ({"rules": [{"pattern": "", "weights": "int4"}]}, "/rules/0/pattern: a string that is not empty"),
        (
            {"rules": [{"pattern": "a", "weights": "imt4-g32"}]},
            "/rules/0/weights: .*'imt4-g32'; the closest are int4-g32",
        ),
        ({"rules": [{"pattern": "a", "weights": "keep", "inputs": "int88"}]}, "/rules/0/inputs: .*'int88'"),
        ({"rules": [{"pattern": "re:(", "weights": "keep"}]}, "/rules/0/pattern: .* not a valid regular expression"),
        ({"fingerprint": 3}, "/fingerprint: a string or null was expected, 3 came"),
        ({"extra~/": 3}, "top level: the member 'extra~/' is not known"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps(document(**changes)), encoding="utf-8")
    with pytest.raises(PlanError, match=words) as caught:
        Plan.load(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expecting value at line 1, column 1; the text ends too early"),
        (json.dumps(document(), indent=1)[:-30], r"at line \d+, column \d+; the text ends too early"),
        ('{"a": 1,\n "b" 2}', r"expecting ':' delimiter at line 2, column 6$"),
        ("[1]", "an object with"),
        ('{"a": 1, "a": 2}', "the member 'a' twice"),
        ('{"a": NaN}', "NaN, which is not JSON"),
        ('{\n"a": "b\n"}', "invalid control character at line 2, column 8"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_broken_json_is_told_by_line_and_column(text: str, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        Plan.from_json(text, "p.json")


def test_a_member_that_comes_twice_among_many_is_named_at_once() -> None:
    members = ", ".join(f'"m{number}": 1' for number in range(100_000))
    start = time.process_time()
    with pytest.raises(PlanError, match="the member 'm99999' twice"):
        Plan.from_json(f'{{{members}, "m99999": 2}}', "p.json")
    assert time.process_time() - start < 4


def test_every_truncation_is_an_error() -> None:
    text = Plan().assign(["a", "b"], weights="int4-g32").to_json()
    for length in range(len(text.rstrip())):
        with pytest.raises(PlanError):
            Plan.from_json(text[:length])


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(PlanError, match="byte 0 is not UTF-8"):
        Plan.load(tmp_path / "p.json")
    with pytest.raises(PlanError, match="No such file"):
        Plan.load(tmp_path / "none.json")
    with pytest.raises(PlanError, match="directory"):
        Plan.load(tmp_path)


def test_a_plan_that_would_be_refused_is_not_written(tmp_path: Path) -> None:
    plan = Plan(rules=(Rule(pattern="a", assignment=Assignment(weights="nonsense")),))
    with pytest.raises(PlanError, match="nonsense"):
        plan.save(tmp_path / "p.json")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_the_old_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.json"
    Plan(name="old").save(path)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PlanError, match="the disk is full"):
        Plan(name="new").save(path)
    monkeypatch.undo()
    assert Plan.load(path).name == "old" and os.listdir(tmp_path) == ["p.json"]


def test_an_algorithm_may_have_its_name_from_a_paper() -> None:
    rules = [{"pattern": "a/b", "weights": "int4-g32", "algorithm": "adaround"}]
    plan = Plan.from_json(document(rules=rules))
    assert plan.rules[0].assignment.algorithm == "learned" and '"adaround"' not in plan.to_json()
    assert plan.assign(["a/c"], algorithm="gptaq").of("a/c").algorithm == "gptq-sequential"


@pytest.mark.parametrize("pattern", ["*a" * 50, "?" * 100, "[a]b" * 40, "re:(a|b)*" * 10])
def test_patterns_that_take_minutes_together_are_refused(pattern: str) -> None:
    rules = [{"pattern": f"{pattern}{number}", "weights": "int4-g32"} for number in range(30_000)]
    start = time.process_time()
    with pytest.raises(PlanError, match="characters of regular expressions; at most .* are read: give layers by their"):
        Plan.from_json(json.dumps(document(rules=rules)))
    assert time.process_time() - start < 4


def test_a_plan_of_many_names_with_brackets_is_read() -> None:
    rules = [{"pattern": f"layers[{number}].experts[{number}].up", "weights": "int4-g32"} for number in range(60_000)]
    assert len(Plan.from_json(json.dumps(document(rules=rules))).rules) == 60_000

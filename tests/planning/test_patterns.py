"""Patterns of rules: exact names, shell patterns and regular expressions, which take linear time whatever they are."""

from __future__ import annotations

import resource
import time

import pytest

from workbench.errors import PlanError
from workbench.planning.patterns import matching

NAMES = ["model.layers.0.q_proj", "model.layers.1.q_proj", "model.layers.1.k_proj", "head[0]"]


def test_patterns_match_names_globs_and_expressions() -> None:
    assert matching("head[0]", NAMES) == ["head[0]"]
    assert matching("*.q_proj", NAMES) == NAMES[:2]
    assert matching(r"re:model\.layers\.[1-9]\d*\..*", NAMES) == NAMES[1:3]
    assert matching("re:(?i)HEAD.*", [*NAMES, "head\ud800"]) == ["head[0]", "head\ud800"]
    assert matching("nothing", NAMES) == []
    with pytest.raises(PlanError, match="not a valid regular expression: missing"):
        matching("re:(", NAMES)
    with pytest.raises(PlanError, match="look-around"):
        matching("re:(?!a)", NAMES)


NESTED = "a"
for _ in range(5):
    NESTED = f"({NESTED}{{1000}})"


@pytest.mark.parametrize("expression", [
    r"(([a-z0-9_.])+)+$X", r"(.*)(.*)(.*)(.*)(.*)\1\2\3[^a-z]", "(.*){0,900}.*.*.*.*.*X", NESTED, "(?R)", "(a|(?R))*$",
    "(?:x{2147483647}){e}", "(" * 50_000 + ")" * 50_000, "|".join(f"a{number}" for number in range(100_000)),
    r"\C*" * 500, "(?:" + "a?" * 2000 + "a" * 2000 + ")", "\ud800", "a\0b", "*",
])  # fmt: skip
def test_no_expression_takes_long_or_much_memory(expression: str) -> None:
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        matching(f"re:{expression}", ["model.layers.0.self_attn.q_proj_" * 8] * 100)
    except PlanError as error:
        assert "regular expression" in str(error) or "longer than" in str(error)
    assert time.process_time() - start < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


@pytest.mark.parametrize("pattern", ["[a-" * 20_000, "*[!" * 20_000, "*a" * 100_000, "[a-" * 300, "*a" * 400 + "b"])
def test_no_shell_pattern_takes_long(pattern: str) -> None:
    start = time.process_time()
    assert matching(pattern, ["model.layers.0.self_attn.q_proj_" * 8] * 500) == []
    assert matching(pattern, ["x", pattern]) == [pattern]
    assert time.process_time() - start < 2

"""Patterns of rules: exact names, shell patterns and regular expressions, however slow these are."""

from __future__ import annotations

import time

import pytest

from workbench.errors import PlanError
from workbench.planning import patterns
from workbench.planning.patterns import matching

NAMES = ["model.layers.0.q_proj", "model.layers.1.q_proj", "model.layers.1.k_proj", "head[0]"]


def test_patterns_match_names_globs_and_expressions() -> None:
    assert matching("head[0]", NAMES) == ["head[0]"]
    assert matching("*.q_proj", NAMES) == NAMES[:2]
    assert matching(r"re:model\.layers\.(?!0\.)\d+\..*", NAMES) == NAMES[1:3]
    assert matching("nothing", NAMES) == []
    with pytest.raises(PlanError, match="not a valid regular expression: missing"):
        matching("re:(", NAMES)


@pytest.mark.parametrize("expression", [r"(([a-z0-9_.])+)+$X", r"(.*)(.*)(.*)(.*)(.*)\1\2\3[^a-z]"])
def test_an_expression_that_would_run_for_ever_ends(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "SECONDS", 0.3)
    start = time.monotonic()
    try:
        assert matching(f"re:{expression}", ["model.layers.0.self_attn.q_proj_" * 8] * 100) == []
    except PlanError as error:
        assert "takes more than 0.3 s" in str(error)
    assert time.monotonic() - start < 10


def test_one_limit_holds_for_all_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "SECONDS", 0.2)
    with pytest.raises(PlanError, match="repetitions"):
        matching(r"re:(.*)(.*)(.*)(.*)(.*)\1\2\3[^a]", ["a" * 3000] * 50)

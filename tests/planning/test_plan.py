"""Rules, their order, ties, and what a plan adds up to."""

from __future__ import annotations

import json
from hashlib import sha256

import numpy as np
import pytest

from tests.planning.synthetic import decoder, table_of
from workbench.errors import PlanError, SchemeError, UnmatchedRuleError
from workbench.numerics.formats import parse_scheme
from workbench.planning.plan import KEEP, Assignment, Plan, Rule, resolve
from workbench.planning.totals import plan_totals


def rule(pattern, weights):
    return Rule(pattern=pattern, assignment=Assignment(weights=weights))


def test_the_first_rule_wins():
    summary = decoder(2)
    first = rule("model.layers.0.mlp.up_proj", "int8-channel")
    plan = Plan(rules=(first, rule("model.layers.*.mlp.*", "int4-g32"), rule(r"re:.*q_proj", "bf16")))
    schemes = {name: item.weights for name, item in resolve(plan, summary.layers).items()}
    assert schemes["model.layers.0.mlp.up_proj"] == "int8-channel"
    assert schemes["model.layers.1.mlp.up_proj"] == "int4-g32"
    assert schemes["model.layers.1.self_attn.q_proj"] == "bf16"
    assert schemes["model.layers.1.self_attn.o_proj"] == KEEP


def test_rules_that_say_nothing_are_named():
    summary = decoder(1)
    with pytest.raises(UnmatchedRuleError, match="up_porj.*up_proj"):
        resolve(Plan(rules=(rule("model.layers.0.mlp.up_porj", "bf16"),)), summary.layers)
    with pytest.raises(PlanError, match="regular expression"):
        resolve(Plan(rules=(rule("re:(", "bf16"),)), summary.layers)
    with pytest.raises(SchemeError):
        resolve(Plan(rules=(rule("*", "int99"),)), summary.layers)


@pytest.mark.parametrize("name", ["model.embed_tokens", "lm_head"])
def test_tied_layers_share_their_weights(name):
    assignments = resolve(Plan().assign([name], weights="int8-channel"), decoder(1).layers)
    assert assignments["model.embed_tokens"].weights == assignments["lm_head"].weights == "int8-channel"


def test_an_edit_makes_another_plan():
    plan = Plan().assign(["a", "b"], weights="bf16")
    edited = plan.assign(["a"], inputs="int8-token")
    assert plan.of("a").inputs is None and edited.of("a") == Assignment(weights="bf16", inputs="int8-token")
    assert edited.of("b") == plan.of("b") and plan.hash != edited.hash


@pytest.mark.parametrize("transforms", [(), ("awq", "rotation")])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_hash_is_that_of_the_canonical_text(count, transforms):
    assignments = [Assignment(), Assignment(cache="int8-token", inputs="int8"), Assignment(weights='a"pattern":""\n')]
    names = ["plain*", 'quote"pattern":""', "line\nbreak,", "\u2028ü\x00", "re:[a]", "b", "b"]
    rules = [Rule(pattern=name, assignment=assignments[n % 3]) for n, name in enumerate(names[:count])]
    content = [rule.document for rule in rules]
    content = {"rules": content, "transforms": list(transforms)} if transforms else content
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert Plan(rules=tuple(rules), transforms=transforms).hash == f"sha256:{sha256(text.encode()).hexdigest()}"


def test_totals_count_every_bit_once():
    summary = decoder(2)
    table = table_of(summary)
    plan = Plan().assign(["model.layers.0.mlp.up_proj", "lm_head"], weights="int4-g32-asym")
    sums = plan_totals(summary, plan, table)
    scheme = parse_scheme("int4-g32-asym")
    changed = {"model.layers.0.mlp.up_proj", "model.embed_tokens"}
    bits = sum(scheme.bits(x.matrix) if x.name in changed else 32 * x.parameters for x in summary.stored)
    assert sums.nbytes == bits // 8
    assert sums.bits_per_weight == bits / sum(layer.parameters for layer in summary.stored)
    assert sums.predicted == pytest.approx(sum(table.of(name, "int4-g32-asym") for name in changed))
    assert plan_totals(summary, Plan(), table).bits_per_weight == 32.0


def test_a_cell_that_is_missing_leaves_no_prediction():
    summary = decoder(1)
    table = table_of(summary)
    table.score[1] = np.nan
    sums = plan_totals(summary, Plan.uniform(summary.stored, "int4-g32-asym"), table)
    assert sums.predicted is None and sums.missing == 1
    assert np.isnan(table.of("nowhere", "int4-g32-asym"))

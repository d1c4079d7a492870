"""A plan's key-value cache: which layers it speaks of, its bytes, its loss in totals and searches, its measurement."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.models.networks import convolutions, decoder, recurrent, sequences, tokens
from workbench.errors import BudgetError, CannotRunError, MissingResultError, PlanError
from workbench.models.kv_cache import cache_scheme, makes_keys_or_values
from workbench.models.layer import Layer, LayerKind
from workbench.numerics.formats import parse_scheme
from workbench.planning.budgets import Budgets
from workbench.planning.plan import Assignment, Plan, Rule, resolve, with_cache
from workbench.planning.search.search import search
from workbench.planning.totals import Ledger, cache_bits, totals
from workbench.quantization.quantize import quantize
from workbench.quantization.quantized_model import cache_quantizers
from workbench.sensitivity.score import score

WEIGHTS = ("int4-channel", "int8-channel")


def named(name: str, kind: LayerKind = LayerKind.LINEAR) -> Layer:
    return Layer(name=name, kind=kind, parameter="w", shape=(6, 4), dtype="float16", axes=(0, 1))


def rule(pattern: str, **fields: str) -> Rule:
    return Rule(pattern=pattern, assignment=Assignment(**fields))


@pytest.mark.parametrize("name", ["a.k_proj", "model.0.v_proj", "attention.self.key", "value", "k_lin"])
def test_the_names_of_transformers_are_known(name: str) -> None:
    assert makes_keys_or_values(named(name))
    assert not makes_keys_or_values(named(name, LayerKind.CONV1D))


@pytest.mark.parametrize("name", [
    "q_proj", "key.dense", "qkv_proj", "monkey", "evaluate", "transformer.h.0.self_attention.query_key_value",
    "gpt_neox.layers.0.attention.query_key_value", "h.0.attn.c_attn", "blocks.0.attn.Wqkv",
    "model.layers.0.self_attn.kv_b_proj", "bert.encoder.layer.0.attention.self.key",
    "model.vision_tower.layers.0.self_attn.k_proj",
])  # fmt: skip
def test_other_names_are_not(name: str) -> None:
    assert not makes_keys_or_values(named(name))


def test_a_pattern_speaks_of_keys_and_values_only() -> None:
    layers = tuple(map(named, ("q_proj", "k_proj", "v_proj", "up")))
    assignments = resolve(Plan(rules=(rule("*", weights="int4-channel", cache="int8-token"),)), layers)
    assert [item.cache for item in assignments.values()] == [None, "int8-token", "int8-token", None]
    plan = with_cache(Plan(), layers, "INT4-token", but=["k_proj"])
    assert {name: item.cache for name, item in resolve(plan, layers).items() if item.cache} == {"v_proj": "int4-token"}
    assert with_cache(plan, layers, None).of("v_proj").cache is None


def test_what_no_cache_can_be_is_said() -> None:
    layers = (named("q_proj"),)
    with pytest.raises(PlanError, match="what q_proj gives the KV cache in int8-token"):
        resolve(Plan(rules=(rule("q_proj", cache="int8-token"),)), layers)
    for name in ("h.0.attn.c_attn", "gpt_neox.layers.0.attention.query_key_value", "layers.0.self_attn.kv_b_proj"):
        with pytest.raises(PlanError, match=f"no layer that is free.*{name} makes more than keys and values"):
            with_cache(Plan(), (named(name),), "int8-token")
    with pytest.raises(PlanError, match="no layer that is free"):
        with_cache(Plan(), layers, "int8-token")
    for scheme in ("int4-channel", "int4-channel-asym", "fp8-e4m3-channel"):  # which were rounded token by token
        with pytest.raises(PlanError, match=f"{scheme}: its tokens come one by one; .*int4-b32x1-asym: of 32"):
            cache_scheme(scheme)
    assert cache_scheme("int2-b32x1-asym").name == "int2-b32x1-asym"
    with pytest.raises(PlanError, match="int8-tensor.*such as int8-token"):
        resolve(Plan(rules=(rule("v_proj", cache="int8-tensor"),)), (named("v_proj"),))
    assert cache_scheme("bf16").name == "bf16"
    for name in ("bert.encoder.layer.0.attention.self.key", "model.vision_tower.layers.0.self_attn.k_proj"):
        with pytest.raises(PlanError, match=f"decoder layers.*{name} is part of an encoder"):
            with_cache(Plan(), (named(name),), "int8-token")
        with pytest.raises(PlanError, match=f"decoder layers.*{name} is part of an encoder.*take the cache"):
            resolve(Plan(rules=(rule(name, cache="int8-token"),)), (named(name), named("encoder.layer.1.value")))
    with pytest.raises(PlanError, match="k_proj"):
        with_cache(Plan(), convolutions().summary.layers, "int8-token")


def test_bytes_of_a_token_count_scales() -> None:
    layers = tuple(map(named, ("q_proj", "k_proj", "v_proj")))
    assignments = resolve(Plan(rules=(rule("k_proj", cache="int4-token"),)), layers)
    assert cache_bits(layers, assignments) == (parse_scheme("int4-token").bits((1, 6)) + 6 * 16, 2 * 6 * 16)


def test_the_bound_model_rounds_what_the_layer_gives() -> None:
    """Against a hook of torch's own on the layer, and the tap sees what flows on."""
    model, data = decoder(), tokens()
    scheme = parse_scheme("int4-token")

    def rounded(module: object, args: object, output: torch.Tensor) -> torch.Tensor:
        rows = output.reshape(-1, output.shape[-1])
        return scheme.round(rows, scheme.fit(rows)).reshape(output.shape)

    received = []
    with torch.no_grad():
        bound = quantize(model, Plan().assign(["value"], weights="int8-channel", cache="int4-token")).bind(model)
        result = bound.run(data.tensors, tap=lambda name, x, y: received.append(y), layers=["value"])
        handle = model.body.network.value.register_forward_hook(rounded)
        try:
            expected = quantize(model, Plan().assign(["value"], weights="int8-channel")).bind(model).run(data.tensors)
        finally:
            handle.remove()
    assert torch.equal(result, expected)
    assert len(torch.unique(received[0][0, 0])) <= 16 < len(torch.unique(received[0]))
    again = bound.with_weights({}).with_others({}).run(data.tensors)
    assert torch.equal(again.detach(), expected)


def test_a_layer_inside_a_larger_module_cannot_be_rounded() -> None:
    with pytest.raises(CannotRunError, match="the output of the layer lstm"):
        model = recurrent()
        inner = next(layer.name for layer in model.summary.layers if layer.name.startswith("lstm"))
        model.run(next(sequences().batches(2)), outputs={inner: lambda x: x})


def test_measured_losses_are_those_of_the_bound_plan() -> None:
    model, data = decoder(), tokens()
    measured = score(model, "measured_kl_cache", ("int4-token",), dataset=data, batch_size=4)
    with torch.no_grad():
        p = model.run(data.tensors).double().log_softmax(-1)
        bound = quantize(model, Plan().assign(["value"], cache="int4-token")).bind(model)
        q = bound.run(data.tensors).double().log_softmax(-1)
    naive = float((p.exp() * (p - q)).sum(-1).mean())
    assert measured.of("value", "int4-token") == pytest.approx(naive, rel=1e-4)


def test_totals_and_edits_count_the_cache() -> None:
    model, data = decoder(), tokens(100, 7)
    table = score(model, "measured_kl", WEIGHTS, dataset=data)
    cache = score(model, "predicted_kl_cache", ("int4-token", "int8-token"), dataset=data)
    before = resolve(Plan().assign(["value"], weights="int4-channel"), model.summary.layers)
    after = before | {"value": replace(before["value"], cache="int4-token")}
    sums = totals(model.summary, after, table, None, cache)
    cost = cache.of("value", "int4-token")
    assert sums.predicted == pytest.approx(table.of("value", "int4-channel") + cost, rel=1e-12) and cost > 0
    ledger = Ledger.of(model.summary, before, table, None, cache)
    assert ledger.moved(before, {"value": after["value"]}).totals == sums
    assert totals(model.summary, after, table).predicted == ledger.totals.predicted
    unscored = after | {"value": replace(after["value"], cache="int5-token")}
    assert totals(model.summary, unscored, table, None, cache).missing == 1


def test_a_budget_of_loss_counts_the_cache() -> None:
    model, data = decoder(), tokens(100, 7)
    table = score(model, "measured_kl", WEIGHTS, dataset=data)
    cache = score(model, "predicted_kl_cache", ("int4-token",), dataset=data)
    base, cost = with_cache(Plan(), model.summary.layers, "int4-token"), cache.of("value", "int4-token")
    with pytest.raises(BudgetError, match="the least possible loss"):
        search(model.summary, table, budgets=_loss(0.99 * cost), base=base, cache=cache, minimise="nbytes")
    plan = search(model.summary, table, budgets=_loss(1.01 * cost), base=base, cache=cache, minimise="nbytes")
    assignments = resolve(plan, model.summary.layers)
    assert assignments["value"].cache == "int4-token" and assignments["up"].cache is None
    with pytest.raises(MissingResultError, match="int4-token in the cache of value") as error:
        search(model.summary, table, budgets=_loss(9.0), base=base, minimise="nbytes")
    assert "predicted_kl_cache" in (error.value.command or "")


def _loss(most: float) -> Budgets:
    return Budgets(loss=most)


def test_quantizers_are_made_for_the_plan_alone() -> None:
    model = decoder()
    assert cache_quantizers(model.summary, Plan()) == {}
    assert list(cache_quantizers(model.summary, with_cache(Plan(), model.summary.layers, "int8-token"))) == ["value"]

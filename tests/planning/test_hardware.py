"""Profiles follow their schema and say what public documents say; rooflines by hand; reasons are told."""

from __future__ import annotations

import importlib.resources
import json
from dataclasses import replace

import jsonschema
import pytest

from tests.planning.synthetic import decoder, linear, summary_of, table_of
from workbench.deployment.targets import RUNTIMES, target, target_names
from workbench.errors import BudgetError, PlanError
from workbench.models.layer import LayerKind
from workbench.numerics.formats import all_schemes
from workbench.planning.budgets import Budgets
from workbench.planning.constraints import Constraints
from workbench.planning.hardware import estimate, hardware, plan_estimate, profiles
from workbench.planning.plan import KEEP, Plan, resolve
from workbench.planning.search.search import search

BIG = linear("big", 4096, 4096, dtype="float16")


def test_every_profile_follows_the_published_schema():
    folder = importlib.resources.files("workbench_resources")
    schema = json.loads(folder.joinpath("hardware.schema.json").read_text())
    files = [file for file in folder.joinpath("hardware").iterdir() if file.name.endswith(".json")]
    for file in files:
        document = json.loads(file.read_text())
        jsonschema.validate(document, schema)
        assert file.name == f"{document['name']}.json"
    assert len(profiles()) == len(files) >= 11
    rates = {peak for profile in profiles().values() for device in profile.devices for peak in device.peaks}
    assert {way.rate for profile in profiles().values() for way in profile.accepts} <= rates


def test_every_figure_was_checked_or_is_called_an_estimate():
    for profile in profiles().values():
        for device in profile.devices:
            figures = {"bandwidth", *device.peaks}
            assert set(device.estimated) <= figures and device.source
            assert device.checked or set(device.estimated) == figures, device.name
    a100, coral = hardware("nvidia-8.0").devices[0], hardware("edge-tpu").devices[0]
    assert a100.checked and not a100.estimated
    assert "datasheet" in coral.source and coral.estimated == ("bandwidth",)


def test_an_estimate_on_estimated_figures_says_so():
    amx, a100 = hardware("x86-amx"), hardware("nvidia-8.0")
    for batch, figure in ((1, "bandwidth"), (1 << 16, "int8")):
        result = estimate(BIG, "int8-channel", "int8-token", amx, batch=batch)
        assert result is not None and f"the {figure} of Xeon" in result.how and "an estimate itself" in result.how
    result = estimate(BIG, "int8-channel", "int8-token", a100)
    assert result is not None and "itself" not in result.how


@pytest.mark.parametrize(
    ("scheme", "inputs", "where", "reason"),
    [
        ("int8-channel", "int8-token", "nvidia-7.5", None),
        ("int8-channel", "int8-token", "nvidia-8.0", None),
        ("fp8-e4m3-channel", "fp8-e4m3-token", "nvidia-8.0", "activations must be"),
        ("fp8-e4m3-channel", "fp8-e4m3-token", "nvidia-8.9", None),
        ("int4-channel", "int4-token", "nvidia-8.0", None),
        ("int4-channel", "int4-token", "nvidia-9.0", "activations must be"),
        ("nvfp4", "nvfp4", "nvidia-9.0", "activations must be"),
        ("nvfp4", "nvfp4", "nvidia-10.0", None),
        ("int8-channel", "int8-tensor-asym", "edge-tpu", None),
        ("int8-channel", "int8-token", "edge-tpu", "per tensor is needed for activations, not per token"),
        ("int8-channel-asym", "int8-tensor", "edge-tpu", "symmetric"),
        ("int4-g32", None, "edge-tpu", "weights must be int8"),
        (KEEP, None, "edge-tpu", "no floating point"),
        ("int4-g128-asym", None, "vllm", None),
        ("int4-g16-asym", None, "vllm", "groups of 32 or 64 or 128 are needed, not of 16"),
        ("int3-g32-asym", None, "vllm", "weights must be"),
        ("fp8-e4m3-channel", "fp8-e4m3-token", "vllm@nvidia-8.0", "activations must be"),
        ("fp8-e4m3-channel", "fp8-e4m3-token", "vllm@nvidia-9.0", None),
        ("q4_k", None, "gguf", None),
        ("int4-g32", None, "gguf", "weights must be"),
        ("int4-g32", "int8-token", "torchao", "activations must be asymmetric"),
        ("int4-g32", "int8-token-asym", "torchao", None),
        ("int8-channel", "int8-tensor", "onnxruntime", None),
        ("int8-channel", "int8-token", "onnxruntime", None),
        ("int8-channel", "fp8-e4m3-tensor", "onnxruntime", "activations must be"),
        ("int4-g32-asym-zfp16", None, "onnxruntime", "zero points must be whole"),
    ],
)
def test_what_targets_accept_and_why_not(scheme: str, inputs: str | None, where: str, reason: str | None):
    message = target(where).legal(BIG, scheme, inputs)
    assert message is None if reason is None else message is not None and reason in message


def test_shapes_and_kinds_are_refused_with_the_figure():
    assert "multiple of 128, the layer has 96" in (target("vllm").legal(linear("l", 64, 96), "int4-g32") or "")
    assert "multiple of 256, the layer has 4096" not in (target("gguf").legal(BIG, "q4_k") or "")
    assert "multiple of 256, the layer has 288" in (target("gguf").legal(linear("l", 64, 288), "q4_k") or "")
    convolution = replace(BIG, kind=LayerKind.CONV2D)
    assert "conv2d" in (target("vllm").legal(convolution, "int8-channel") or "")
    assert "bfloat16" in (target("nvidia-7.5").legal(replace(BIG, dtype="bfloat16"), KEEP) or "")


def test_every_target_answers_for_every_scheme():
    for name in target_names():
        for scheme in all_schemes():
            answer = target(name).legal(BIG, scheme.name, None)
            assert answer is None or answer
    assert all(any(target(r.name).legal(BIG, s.name) is None for s in all_schemes()) for r in RUNTIMES)


@pytest.mark.parametrize(("program", "name"), [
    ("llama.cpp", "gguf"), ("MLX-LM", "mlx"), ("llama.cpp@nvidia-9.0", "gguf@nvidia-9.0"), ("gguf", "gguf"),
])  # fmt: skip
def test_a_target_is_known_by_its_program_too(program: str, name: str):
    assert target(program).name == name


def test_an_unknown_target_is_named_with_the_closest():
    with pytest.raises(PlanError, match="vllm"):
        target("vlm")
    with pytest.raises(PlanError, match="nvidia-9.0"):
        target("vllm@nvidia-9")


def test_the_roofline_is_bytes_over_bandwidth_or_operations_over_peak():
    chip = hardware("nvidia-9.0")
    device = chip.devices[0]
    single = estimate(BIG, "int8-channel", None, chip, batch=1)
    weights = 4096 * 4096 + 4096 * 4
    assert single is not None and single.bound == "memory"
    assert single.microseconds == pytest.approx((weights + 2 * 8192) / device.bandwidth / 1e3, rel=1e-2)
    assert single.speedup == pytest.approx(2, rel=0.02)
    many = estimate(BIG, "int8-channel", "int8-token", chip, batch=65536)
    assert many is not None and many.bound == "compute"
    assert many.microseconds == pytest.approx(2 * 65536 * 4096**2 / (device.peaks["int8"] * 1e12) * 1e6)
    assert many.speedup == pytest.approx(2, rel=1e-3)
    assert estimate(BIG, "int4-g32", None, hardware("edge-tpu")) is None


def test_the_roofline_of_a_plan_adds_its_layers_and_names_what_is_refused():
    chip = hardware("nvidia-8.0")
    embedding = linear("e", 4096, 4096, kind=LayerKind.EMBEDDING)
    summary = summary_of(BIG, replace(BIG, name="other"), replace(BIG, name="third"), embedding)
    plan = Plan().assign(["big"], weights="int4-g128").assign(["other"], weights="nvfp4", inputs="nvfp4")
    result = plan_estimate(summary, resolve(plan, summary.layers), chip)
    quantized, unquantized = estimate(BIG, "int4-g128", None, chip), estimate(BIG, KEEP, None, chip)
    assert quantized is not None and unquantized is not None
    assert result.stored == pytest.approx(3 * unquantized.microseconds)
    assert result.microseconds == pytest.approx(quantized.microseconds + 2 * unquantized.microseconds)
    assert result.speedup > 1 and [name for name, _ in result.refused] == ["other"]


def test_a_search_takes_only_what_the_target_runs_and_fused_layers_share():
    names = [f"model.layers.{n}.self_attn.{p}_proj" for n in range(3) for p in "qkvo"]
    summary = summary_of(*(linear(name, 128, 128) for name in names))
    schemes = ("int3-g32-asym", "int4-g32-asym", "int4-g16-asym", "int8-channel")
    where = target("vllm")
    rules = Constraints(legal=where.legal, bonds=where.bonds(summary.layers), target=where.title)
    for seed in range(4):
        plan = search(
            summary,
            table_of(summary, schemes, seed),
            budgets=Budgets(bits_per_weight=6.1),
            base=Plan(),
            constraints=rules,
        )
        assignments = resolve(plan, summary.layers)
        schemes = {a.weights for a in assignments.values()}
        assert schemes <= {"int4-g32-asym", "int8-channel", KEEP} - {"int8-channel-asym"}
        for block in range(3):
            fused = {assignments[f"model.layers.{block}.self_attn.{p}_proj"].weights for p in "qkv"}
            assert len(fused) == 1


def test_a_locked_layer_that_the_target_cannot_run_is_named():
    summary = decoder(1)
    name = summary.layers[1].name
    base = Plan().assign([name], weights="int2-g32-asym")
    where = target("vllm")
    rules = Constraints(legal=where.legal, target=where.title, locked=frozenset({name}))
    with pytest.raises(PlanError, match=f"{name} is locked to int2-g32-asym, which vLLM"):
        search(summary, table_of(summary), budgets=Budgets(bits_per_weight=8), base=base, constraints=rules)


def test_a_target_that_can_run_nothing_of_a_layer_is_told():
    summary = decoder(1)
    where = target("edge-tpu")
    rules = Constraints(legal=where.legal, target=where.title)
    with pytest.raises(PlanError, match="nothing is left to choose for .* on Google Coral") as caught:
        search(summary, table_of(summary), budgets=Budgets(bits_per_weight=8), base=Plan(), constraints=rules)
    first, _, rest = str(caught.value).partition("; ")  # the way that came closest is not lost among the formats
    assert "int8-channel: " in first and "activations must be int8" in first
    assert rest.count("weights must be int8") == 1


def test_a_budget_that_a_targets_refusals_make_impossible_names_them():
    summary, where = decoder(1), target("gguf")
    rules = Constraints(legal=where.legal, target=where.title)
    table = table_of(summary, ("int4-g32-asym", "int8-channel"))
    with pytest.raises(BudgetError) as caught:
        search(summary, table, budgets=Budgets(bits_per_weight=8), base=Plan(), constraints=rules)
    message = str(caught.value)
    first = "model.layers.0.self_attn.q_proj"
    reason = where.legal(summary.by_name[first], "int4-g32-asym", None)
    assert "the smallest possible takes" in message
    assert f"{where.title} runs no scheme of this search for {first} and 3 more: " in message
    assert reason and f"int4-g32-asym: {reason}" in message
    with pytest.raises(BudgetError) as free:
        search(summary, table, budgets=Budgets(bits_per_weight=1), base=Plan())
    assert "runs no scheme" not in str(free.value)


def test_a_layer_that_runs_with_one_that_is_refused_names_that():
    """Its own refusals, of which there were none, were said."""
    summary, where = (
        summary_of(linear("q_proj", 64, 64), linear("k_proj", 32, 64), linear("up", 64, 64)),
        target("vllm"),
    )
    rules = Constraints(legal=where.legal, bonds=where.bonds(summary.layers), target=where.title)
    with pytest.raises(BudgetError, match=r"q_proj and 1 more: .*the layer has 32 \(k_proj, which runs with it\); "):
        search(summary, table_of(summary, ("fp8-e4m3-channel",)), budgets=Budgets(bits_per_weight=6), base=Plan(),
               constraints=rules)  # fmt: skip


def test_layers_that_a_target_gives_more_bits_than_asked_are_named_with_the_smallest_budget():
    layers = [linear(f"model.layers.0.{name}", 64, width) for name, width in (("up", 64), ("down", 172))]
    summary, where = summary_of(*layers), target("gguf")
    rules = Constraints(legal=where.legal, target=where.title)
    table = table_of(summary, ("q4_0", "fp16"))
    with pytest.raises(BudgetError) as caught:
        search(summary, table, budgets=Budgets(bits_per_weight=5), base=Plan(), constraints=rules)
    assert f"model.layers.0.down takes 16 bits per weight at the least, as {where.title}" in str(caught.value)
    assert str(where.legal(layers[1], "q4_0")) in str(caught.value)
    smallest = Budgets(bits_per_weight=float(caught.value.smallest))
    assert resolve(search(summary, table, budgets=smallest, base=Plan(), constraints=rules), summary.layers)

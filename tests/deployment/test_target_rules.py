"""What a target accepts is what its exporter writes: every family's schemes, with and without quantized inputs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.deployment.exporters.llamas import folder_of
from workbench.deployment.checkpoints.compressed_tensors import CompressedTensorsMethod
from workbench.deployment.checkpoints.mlx import MlxMethod
from workbench.deployment.checkpoints.torchao import TorchaoMethod
from workbench.deployment.exporters import exporter
from workbench.deployment.gguf_tensors import layer_refusal
from workbench.deployment.targets import Runtime, target
from workbench.deployment.tensors import possible
from workbench.models.layer import Layer, LayerKind
from workbench.models.sources import open_model
from workbench.numerics.formats import activation_schemes, all_schemes, parse_scheme
from workbench.planning.plan import Assignment, Plan

METHODS = {"vllm": CompressedTensorsMethod(), "torchao": TorchaoMethod(), "mlx": MlxMethod()}
LAYERS = [
    Layer(name="up", kind=kind, parameter="up.weight", shape=shape, dtype="bfloat16", axes=(0, 1))
    for kind in (LayerKind.LINEAR, LayerKind.EMBEDDING) for shape in ((256, 512), (100, 80), (64, 96))
]  # fmt: skip
MORE = ("int4-g32-asym-zfp16", "int4-g64-asym-zbf16-sbf16", "int8-channel-asym", "int4-channel", "int3-g128")
INPUTS = (None, "nvfp4", "mxfp4", *(scheme.name for scheme in activation_schemes()))


@pytest.mark.parametrize("name", METHODS)
def test_what_the_target_accepts_the_exporter_writes(name: str) -> None:
    method, chosen, accepted = METHODS[name], target(name), 0
    schemes = [scheme for scheme in all_schemes() if scheme.family != "cast"] + list(map(parse_scheme, MORE))
    for layer in LAYERS:
        for scheme in schemes:
            for inputs in INPUTS:
                if chosen.legal(layer, scheme.name, inputs) is None:
                    accepted += 1
                    message = method.refusal(layer, Assignment(weights=scheme.name, inputs=inputs), job(layer, scheme))
                    assert message is None, (layer.matrix, layer.kind, scheme.name, inputs, message)
    assert accepted > 10


def job(layer: Layer, scheme: Any) -> Any:
    """Return what a method asks of a job: the stored form of the layer, and a range for its inputs."""
    stored = SimpleNamespace(scheme=scheme.name, shape=layer.matrix)
    ranges = {(layer.name, "input"): object()}
    model = SimpleNamespace(tensors={layer.name: stored}, ranges=ranges)
    return SimpleNamespace(quantized=model, origin=SimpleNamespace(pieces={}))


@pytest.mark.parametrize("name", ["qwen2moe", "gpt2"])
def test_what_the_target_accepts_of_a_network_the_exporter_writes(name: str, tmp_path: Path) -> None:
    """Routers and GPT-2's matrices, inputs x outputs, were planned for and then refused."""
    model = open_model(folder_of(name, tmp_path))
    layers = model.summary.stored
    for runtime, kind, scheme in (
        ("gguf", "gguf", "q8_0"), ("vllm", "compressed-tensors", "fp8-e4m3-channel"),
        ("torchao", "torchao", "int8-channel"), ("transformers", "compressed-tensors", "int8-channel"),
        ("mlx", "mlx", "int8-g32"),
    ):  # fmt: skip
        chosen = target(runtime).among(model.summary.layers)
        names = [layer.name for layer in layers if chosen.legal(layer, scheme) is None]
        ends = {name.removesuffix(".weight").rsplit(".", 1)[-1] for name in names}
        assert "gate" not in ends and ("c_fc" in ends) == (name == "gpt2" and runtime == "gguf"), (runtime, names)
        assert "q_proj" in ends or name == "gpt2", (runtime, names)
        if names and (name, runtime) != ("gpt2", "mlx"):  # which knows no GPT-2
            plan = Plan().assign(names, weights=scheme, algorithm="rtn")
            for result in possible(plan, model, {}):
                exporter(kind).refuse(result, model)  # type: ignore[attr-defined]


@pytest.mark.parametrize("table, name", [
    ("embeddings.position_embeddings", "position_embd.weight"), ("transformer.wpe", "position_embd.weight"),
    ("embeddings.token_type_embeddings", "token_types.weight"), ("embeddings.word_embeddings", "token_embd.weight"),
    ("model.layers.0.mlp.shared_expert_gate", "blk.0.ffn_gate_inp_shexp.weight"),
])  # fmt: skip
def test_what_llama_cpp_reads_in_float32_alone_is_offered_nothing_else(table: str, name: str) -> None:
    kind, facts = LayerKind.LINEAR if "gate" in table else LayerKind.EMBEDDING, {"dtype": "float32", "axes": (0, 1)}
    layer = Layer(name=table, kind=kind, parameter=f"{table}.weight", shape=(64, 256), **facts)
    for scheme in ("keep", "fp32", "fp16", "q4_0", "q4_k"):
        refused = layer_refusal(layer, None if scheme == "keep" else scheme, name)
        message = target("gguf").legal(layer, scheme)
        assert message is not None or refused is None, (scheme, refused)
        assert scheme == "fp32" or (message is None) == (refused is None), (scheme, message, refused)


@pytest.mark.parametrize("name, scheme, reason", [
    ("vllm", "int4-g32-asym-zfp16", "zero points must be whole"), ("vllm", "q4_k", "weights must be"),
    ("torchao", "int4-g32-asym-zfp16", "zero points must be whole"), ("torchao", "mxfp4", "weights must be"),
    ("mlx", "int4-g32-asym", "zero points must be floating"), ("mlx", "int4-g16", "groups of 32 or 64 or 128"),
    ("mlx", "int4-channel", "one scale per group"),
])  # fmt: skip
def test_what_the_exporter_refuses_the_target_does_too(name: str, scheme: str, reason: str) -> None:
    layer, made = LAYERS[0], parse_scheme(scheme)
    assert METHODS[name].refusal(layer, Assignment(weights=scheme), job(layer, made)) is not None
    assert reason in str(target(name).legal(layer, scheme, None))


@pytest.mark.parametrize("name", ["vllm", "gguf"])
def test_what_a_target_accepts_is_worked_out_once_for_all_models(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = replace(LAYERS[0], shape=(96, 224))
    tied = (layer, replace(layer, name="head", tied_to=layer.name))
    expected = target(name).among([layer]).legal(layer, "int4-g32")
    monkeypatch.setattr(Runtime, "refuses", lambda *_: pytest.fail("it was asked before"))
    assert target(name).among([layer]).legal(layer, "int4-g32") == expected
    if name == "vllm":
        assert "has to stay" in str(target(name).among(tied).legal(layer, "int4-g32"))

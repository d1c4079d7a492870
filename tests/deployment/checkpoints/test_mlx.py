"""MLX folders: the evaluated values by naive unpacking (and by MLX itself where it is), settings, refusals by layer."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tests.deployment.exporters.llamas import folder_of
from workbench.deployment.exporters import exporter
from workbench.errors import ExportError
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.steps.files.export import applied

SCHEMES = ("int4-g32", "int4-g64-asym-zfp16", "int8-g32", "int3-g32", "mxfp4", "mxfp8-e4m3", "int2-g32-asym-zfp16",
           "int5-g32-sbf16", "int6-g64-asym-zfp32-sfp32", "keep", "bf16")  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return open_model(folder_of("llama", tmp_path_factory.mktemp("llama"), intermediate_size=128))


def test_the_words_hold_the_codes_and_the_settings_say_how(model: Model, tmp_path: Path) -> None:
    plan = Plan()
    layers = [layer.name for layer in model.summary.stored]
    for number, name in enumerate(layers):
        plan = plan.assign([name], weights=SCHEMES[number % len(SCHEMES)], algorithm="rtn")
    quantized, out = quantize(model, plan), tmp_path / "out"
    exporter("mlx").export(quantized, model, out, silent)
    tensors, settings = load_file(out / "model.safetensors"), json.loads((out / "config.json").read_text())
    message = settings["quantization"]
    assert message == settings["quantization_config"]
    for name in layers:
        values = quantized.bind(model).weight(name).float().numpy()
        if f"{name}.scales" in tensors:
            each = message.get(name, message)
            stream = np.unpackbits(tensors[f"{name}.weight"].numpy().view(np.uint8), axis=1, bitorder="little")
            bits = stream.reshape(len(values), values.shape[1], each["bits"]).astype(np.int64)
            codes = (bits << np.arange(each["bits"])).sum(-1).astype(np.float32)
            if each["mode"] == "affine":
                scales, biases = (tensors[f"{name}.{part}"].float().numpy() for part in ("scales", "biases"))
                size = each["group_size"]
                assert np.array_equal(scales.repeat(size, 1) * codes + biases.repeat(size, 1), values), name
        else:
            assert torch.equal(tensors[f"{name}.weight"].float(), torch.from_numpy(values))


@pytest.mark.parametrize("scheme", ["int2-g32-sfp32", "int3-g32-sfp32", "int8-g64-sfp32"])
def test_scales_of_32_bits_pass_the_proof(scheme: str, model: Model, tmp_path: Path) -> None:
    """Their products with codes are rounded before half the range is subtracted, and every such export failed."""
    names = [layer.name for layer in model.summary.stored if layer.name.endswith("_proj")]
    quantized = quantize(model, Plan().assign(names, weights=scheme, algorithm="rtn"))
    exporter("mlx").export(quantized, model, tmp_path / "out", silent)
    ids = {"input_ids": torch.arange(12)[None], "attention_mask": torch.ones(1, 12, dtype=torch.int64)}
    there, ours = open_model(tmp_path / "out").run(ids), quantized.bind(model).run(ids)
    assert (there - ours).norm() < 1e-5 * ours.norm()


@pytest.mark.parametrize(("kind", "changes", "expected"), [
    ("qwen2", {"rope_parameters": {"rope_type": "default", "rope_theta": 5e4}}, {"rope_theta": 5e4}),
    ("llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 2e4, "factor": 4.0}},
     {"rope_theta": 2e4, "rope_scaling": {"rope_type": "linear", "factor": 4.0}}),
    ("qwen3moe", {}, {"num_experts": 4, "num_experts_per_tok": 2}),
    ("gemma3", {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 3e4},
                                    "sliding_attention": {"rope_type": "default", "rope_theta": 2e4}}},
     {"rope_theta": 3e4, "rope_local_base_freq": 2e4}),
])  # fmt: skip
def test_settings_of_the_network_have_the_names_that_mlx_lm_reads(
    kind: str, changes: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    model, out = open_model(folder_of(kind, tmp_path / "m", **changes)), tmp_path / "out"
    name = next(layer.name for layer in model.summary.stored if layer.name.endswith("q_proj"))
    quantized = quantize(model, Plan().assign([name], weights="int8-g32", algorithm="rtn"))
    exporter("mlx").export(quantized, model, out, silent)
    settings = json.loads((out / "config.json").read_text())
    assert {key: settings.get(key) for key in expected} == expected
    ids = {"input_ids": torch.arange(12)[None]}
    with torch.no_grad():  # transformers takes the older names for no other network
        assert torch.equal(open_model(out).run(ids), quantized.bind(model).run(ids))


@pytest.mark.slow
def test_mlx_lm_gives_our_answers(model: Model, tmp_path: Path) -> None:
    python = os.environ.get("WORKBENCH_MLX")
    if not python:
        pytest.skip("WORKBENCH_MLX names no Python with mlx-lm")
    plan = Plan()
    for number, layer in enumerate(model.summary.stored):
        plan = plan.assign([layer.name], weights=SCHEMES[number % len(SCHEMES)], algorithm="rtn")
    quantized, out = quantize(model, plan), tmp_path / "out"
    exporter("mlx").export(quantized, model, out, silent)
    code = (
        "import sys, numpy as np, mlx.core as mx; from mlx_lm.utils import load_model; from pathlib import Path\n"
        "mx.set_default_device(mx.cpu); network, _ = load_model(Path(sys.argv[1]))\n"
        "np.save(sys.argv[2], np.array(network(mx.arange(12)[None]).astype(mx.float32)))\n"
    )
    subprocess.run([python, "-c", code, str(out), str(tmp_path / "logits.npy")], check=True)
    ids = torch.arange(12)[None]
    ours = quantized.bind(model).run({"input_ids": ids, "attention_mask": torch.ones_like(ids)}).detach().numpy()
    there = np.load(tmp_path / "logits.npy")
    assert np.linalg.norm(there - ours) < 1e-3 * np.linalg.norm(ours)


def test_what_mlx_cannot_hold_is_named_by_layer(model: Model, tmp_path: Path) -> None:
    q, k, v, o = (f"model.layers.0.self_attn.{name}_proj" for name in "qkvo")
    plan = Plan().assign([q], weights="int4-g32-asym").assign([k], weights="int4-g16").assign([v], weights="nvfp4")
    plan = plan.assign([o], weights="int8-g32", inputs="int8-token")
    with pytest.raises(ExportError) as refused:
        exporter("mlx").export(quantize(model, plan), model, tmp_path / "out", silent)
    for part in (f"{q}: MLX adds a bias in the dtype of the scales; take int4-g32-asym-zfp16",
                 f"{k}: MLX has one scale", f"{v}: MLX stores integers",
                 f"{o}: MLX checkpoints quantize weights alone"):  # fmt: skip
        assert part in str(refused.value)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(("kind", "changes", "message"), [
    ("bert", {}, "the architecture bert cannot be written for mlx-lm yet; supported are llama, mistral"),
    ("qwen2", {"head_dim": 32}, "mlx-lm's qwen2 computes no network with head_dim 32"),
    ("qwen3", {"attention_bias": True}, "mlx-lm's qwen3 computes no network with attention_bias True"),
    ("llama", {"hidden_act": "gelu"}, "with hidden_act gelu"),
    ("starcoder2", {"use_bias": False}, "with use_bias False"),
    ("gemma2", {"final_logit_softcapping": None}, "with final_logit_softcapping None"),
    ("gemma2", {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}},
     "with rotary embeddings of the kind linear"),
    ("gemma3", {"layer_types": [*["full_attention"] * 2, *["sliding_attention"] * 5]}, "with layer_types"),
])  # fmt: skip
def test_a_network_that_mlx_lm_does_not_compute_is_refused(
    kind: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    model = open_model(folder_of(kind, tmp_path / "m", **changes))
    name = next(layer.name for layer in model.summary.stored if layer.kind == "linear")
    quantized = quantize(model, Plan().assign([name], weights="int8-g32", algorithm="rtn"))
    with pytest.raises(ExportError, match=message):
        exporter("mlx").refuse(quantized, model)  # type: ignore[attr-defined]
    with pytest.raises(ExportError, match=message):
        exporter("mlx").export(quantized, model, tmp_path / "out", silent)
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.parametrize(("to", "kind", "remark"), [
    ("mlx", "gemma2", "mlx-lm computes no sliding windows for gemma2: texts of more than 8 tokens give other answers"),
    ("mlx", "gemma3", None),
    ("gguf", "phi3", "llama.cpp computes no sliding windows for phi3: the file ends the context .* at 8 tokens"),
    ("gguf", "gemma2", None),
])  # fmt: skip
def test_windows_that_a_runtime_does_not_compute_are_told(
    to: str, kind: str, remark: str | None, tmp_path: Path
) -> None:
    model = open_model(folder_of(kind, tmp_path / "m", sliding_window=8))
    name = next(layer.name for layer in model.summary.stored if layer.name.endswith("down_proj"))
    plan = Plan(fingerprint=model.summary.fingerprint).assign([name], weights="int8-g32" if to == "mlx" else "q8_0",
                                                              algorithm="rtn")  # fmt: skip
    out = tmp_path / ("out" if to == "mlx" else "out.gguf")
    quantized, _ = applied(model, plan, to, out, session=None, settings=(), progress=silent)
    assert [bool(re.match(remark or "", note)) for note in quantized.notes] == ([True] if remark else [])

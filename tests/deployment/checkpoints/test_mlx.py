"""MLX folders: the evaluated values by naive unpacking (and by MLX itself where it is), settings, refusals by layer."""

from __future__ import annotations

import json
import os
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

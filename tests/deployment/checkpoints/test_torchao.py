"""torchao folders: transformers loads them in a process of its own with our very weights; refusals by layer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.deployment.exporters.llamas import folder_of
from workbench.deployment.exporters import exporter
from workbench.deployment.targets import FLOATING
from workbench.errors import ExportError
from workbench.insight.legality import refusals, repair
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize

pytest.importorskip("torchao")

SCHEMES = ("int4-g32", "int4-g64-asym", "int8-channel", "fp8-e4m3-channel", "int3-g32-asym", "fp8-e4m3-tensor", "keep",
           "int2-g16", "int6-channel-asym", "bf16")  # fmt: skip
V, O_PROJECTION = "model.layers.1.self_attn.v_proj", "model.layers.1.self_attn.o_proj"
UP = "model.layers.0.mlp.up_proj"
LOAD = """
import sys, numpy as np, torch, transformers
network = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32)
kinds = {type(each).__name__ for name in network.parameters() for each in (name, name.data)}
assert {"IntxUnpackedToInt8Tensor", "Float8Tensor"} <= kinds, kinds
with torch.no_grad():
    np.save(sys.argv[2], network(torch.arange(12)[None]).logits.numpy())
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return open_model(folder_of("llama", tmp_path_factory.mktemp("llama"), intermediate_size=128))


@pytest.mark.parametrize("inputs", [False, True])
def test_transformers_and_torchao_give_our_answers(inputs: bool, model: Model, tmp_path: Path) -> None:
    plan = Plan()
    for number, layer in enumerate(layer for layer in model.summary.stored if layer.kind == "linear"):
        plan = plan.assign([layer.name], weights=SCHEMES[number % len(SCHEMES)], algorithm="rtn")
    if inputs:
        plan = plan.assign([V, UP], weights="int8-channel", inputs="int8-token")
        plan = plan.assign([O_PROJECTION], weights="int4-g32", inputs="int8-token-asym")
    quantized, out = quantize(model, plan), tmp_path / "out"
    exporter("torchao").export(quantized, model, out, silent)
    completed = subprocess.run(
        [sys.executable, "-c", LOAD, str(out), str(tmp_path / "logits.npy")], capture_output=True, text=True
    )
    assert completed.returncode == 0, completed.stderr[-2000:]
    ids = torch.arange(12)[None]
    ours = quantized.bind(model).run({"input_ids": ids, "attention_mask": torch.ones_like(ids)}).detach().numpy()
    there = np.load(tmp_path / "logits.npy")
    assert np.linalg.norm(there - ours) < 1e-4 * np.linalg.norm(ours)
    again = open_model(out)
    assert {name: again.encoded_inputs(name) for name in (V, O_PROJECTION)} == {
        name: plan.of(name).inputs for name in (V, O_PROJECTION)
    }


def test_what_torchao_cannot_hold_is_named_by_layer(model: Model, tmp_path: Path) -> None:
    q, k, v, o = (f"model.layers.0.self_attn.{name}_proj" for name in "qkvo")
    plan = Plan().assign([q], weights="nf4-b64").assign([k], weights="int4-g32-asym-zfp16")
    plan = plan.assign([v], weights="fp8-e4m3-b32x32").assign([o], weights="int4-g32", inputs="int8-token")
    with pytest.raises(ExportError) as refused:
        exporter("torchao").export(quantize(model, plan), model, tmp_path / "out", silent)
    for part in (f"{q}: torchao checkpoints of this kind hold", f"{k}: torchao stores a scale and a whole zero point",
                 f"{v}: torchao stores a scale for each output", "int8-token-asym inputs beside"):  # fmt: skip
        assert part in str(refused.value)
    assert not os.listdir(tmp_path)


def test_inputs_rounded_by_token_are_read_back_by_torchao_itself(model: Model, tmp_path: Path) -> None:
    """torchao 0.18 writes a class for them that its own reader refuses."""
    plan = Plan().assign([O_PROJECTION], weights="int4-g32", inputs="int8-token-asym", algorithm="rtn")
    plan = plan.assign([V], weights="int8-channel", inputs="int8-token-asym", algorithm="rtn")
    exporter("torchao").export(quantize(model, plan), model, tmp_path / "out", silent)  # its proof reads by torchao
    again = open_model(tmp_path / "out")
    assert {name: again.encoded_inputs(name) for name in (V, O_PROJECTION)} == dict.fromkeys(
        (V, O_PROJECTION), "int8-token-asym"
    )


def test_a_table_that_is_also_the_head_stays_and_the_target_knows(tmp_path: Path) -> None:
    model = open_model(folder_of("llama", tmp_path / "llama", tie_word_embeddings=True))
    table = model.summary.tied[0].tied_to
    assert table is not None
    plan = Plan().assign([table], weights="int8-channel", algorithm="rtn")
    (refused,) = refusals(plan, model.summary.layers, "torchao")
    assert refused.layers == (table,) and "has to stay" in refused.reason
    assert not any("has to stay" in each.reason for each in refusals(plan, model.summary.layers, "mlx"))
    mended = repair(plan, model.summary.layers, "torchao")
    assert mended.plan.of(table).weights in FLOATING and not mended.left
    with pytest.raises(ExportError, match=f"{table}: it shares its tensor"):
        exporter("torchao").export(quantize(model, plan), model, tmp_path / "out", silent)

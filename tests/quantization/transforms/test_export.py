"""Plans with transforms from end to end: what is written computes what was evaluated, and every file keeps them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.quantization.transforms.networks import language_model, sentences
from tests.session.sessions import full_session
from workbench.deployment.exporters import exporter
from workbench.deployment.exporters.packed_safetensors import read_packed
from workbench.errors import ExportError
from workbench.measurement.calibrate import calibrate
from workbench.models.sources import open_model
from workbench.models.summary import quantizable
from workbench.models.tracing import trace
from workbench.planning.plan import Plan
from workbench.planning.totals import plan_totals
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.quantization.transforms.folds import find_folds
from workbench.quantization.transforms.rewrite import Draft
from workbench.session.session import Session


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def llama(request, tmp_path_factory):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=24, max_position_embeddings=32, tie_word_embeddings=True,
    )  # fmt: skip
    network = transformers.LlamaForCausalLM(config)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "norm" in name:
                parameter.copy_(torch.rand(parameter.shape) * 3 + 0.1)
    folder = tmp_path_factory.mktemp(request.param)
    network.to(getattr(torch, request.param)).save_pretrained(folder)
    return folder


def plan_for(model, *transforms, scheme="int4-g16-asym"):
    inner = [layer for layer in quantizable(model.summary.layers) if "layers.1.mlp" not in layer.name]
    plan = Plan.uniform(inner, scheme)
    return replace(plan, transforms=transforms, fingerprint=model.summary.fingerprint)


@pytest.mark.parametrize("transforms", [("awq",), ("rotation", "awq"), ("awq", "rotation-heads")])
@torch.no_grad()
def test_the_files_compute_what_was_evaluated(llama: Path, transforms, tmp_path):
    model, data = open_model(llama), sentences()
    with torch.enable_grad():
        actual = calibrate(model, data)
    plan = plan_for(model, *transforms)
    result = quantize(model, plan, curvature=actual.curvature, data=data)
    assert not result.notes and bool(result.changes.others) and "model.layers.1.mlp.down_proj" not in result.tensors
    batch = next(data.batches(6))
    exact, evaluated = model.run(batch), result.bind(model).run(batch)
    assert not torch.allclose(exact, evaluated, rtol=1e-3)

    exporter("huggingface").export(result, model, tmp_path / "folder", silent)
    assert torch.equal(open_model(tmp_path / "folder").run(batch), evaluated)
    config = json.loads((tmp_path / "folder" / "config.json").read_text())
    assert config["tie_word_embeddings"] is ("rotation" not in transforms)

    exporter("safetensors").export(result, model, tmp_path / "packed.safetensors", silent)
    packed = read_packed(tmp_path / "packed.safetensors")
    summary = result.summary
    base = model.untied(result.changes.untied) if result.changes.untied else model
    view = base.with_others({t.name: torch.tensor(packed[t.name]) for t in summary.others}).with_weights(
        {layer.name: torch.tensor(packed[layer.parameter]) for layer in summary.stored}
    )
    assert torch.equal(view.run(batch), evaluated)
    assert sum(t.nbytes for t in summary.others) + sum(each.nbytes for each in result.tensors.values()) + sum(
        layer.nbytes for layer in summary.stored if layer.name not in result.tensors
    ) == (plan_totals(model.summary, plan).nbytes)


@torch.no_grad()
def test_a_state_dict_holds_folded_norms_but_no_untied_head(llama: Path, tmp_path):
    model, data = open_model(llama), sentences()
    with torch.enable_grad():
        actual = calibrate(model, data)
    result = quantize(model, plan_for(model, "awq"), curvature=actual.curvature, data=data)
    exporter("state-dict").export(result, model, tmp_path / "state.safetensors", silent)
    from safetensors.torch import load_file

    written = load_file(tmp_path / "state.safetensors")
    norm = "model.layers.0.input_layernorm.weight"
    assert torch.equal(written[norm], result.changes.others[norm])
    with pytest.raises(ExportError, match="lm_head a weight of its own.*huggingface"):
        exporter("state-dict").export(quantize(model, plan_for(model, "rotation")), model, tmp_path / "no", silent)
    assert not (tmp_path / "no").exists()


def test_a_plan_keeps_its_transforms_in_json_script_and_session(tmp_path):
    model = language_model()
    plan = replace(Plan.uniform(quantizable(model.summary.layers), "int4-g8"), transforms=("rotation-7", "awq"))
    plain = replace(plan, transforms=())
    assert Plan.from_json(plan.to_json()) == plan
    assert "transforms" not in plain.to_json() and Plan.from_json(plain.to_json()) == plain
    assert len({plan.hash, plain.hash, replace(plan, transforms=("awq", "rotation-7")).hash}) == 3
    assert plan.assign(["body.0.a"], weights="keep").transforms == plan.transforms

    result = quantize(model, replace(plan, transforms=("rotation-7",)))
    exporter("script").export(result, None, tmp_path / "replay.py", silent)
    names: dict[str, object] = {"__name__": "replay"}
    exec(compile((tmp_path / "replay.py").read_text(), "replay", "exec"), names)
    assert names["plan"]().transforms == ("rotation-7",)

    session = replace(full_session(), plan=plan, plans={"plain": plain})
    session.save(tmp_path / "s.qwb")
    again = Session.load(tmp_path / "s.qwb")
    assert again.plan == plan and again.plans["plain"] == plain


@torch.no_grad()
def test_a_half_precision_norm_is_folded_without_loss(llama: Path):
    model, batch = open_model(llama), sentences().tensors
    draft = Draft.of(model, {})
    folds = [fold for fold in find_folds(trace(model), model.summary).folds if fold.layer is None]
    for number, fold in enumerate(folds):
        draft.scale(fold, 0.3 + torch.rand(32, generator=torch.Generator().manual_seed(number)) * 5)
    stored = draft.changes().stored(model.summary, draft.weights.keys())
    dtypes = {tensor.name: tensor.dtype for tensor in model.summary.others}
    assert len(stored.others) == 4 and not stored.weights
    assert all(str(tensor.dtype) == f"torch.{dtypes[name]}" for name, tensor in stored.others.items())
    exact, result = model.run(batch), replace(stored, weights=draft.weights).apply(model).run(batch)
    assert not torch.equal(exact, result)
    assert float((result - exact).abs().max()) < 1e-5 * float(exact.abs().max())

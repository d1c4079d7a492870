"""The float state dict, read by the safetensors library."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from tests.deployment.exporters.models import plan_of, quantized, tensor_model
from workbench.deployment.exporters import exporter
from workbench.models.sources import open_model
from workbench.numerics.formats import parse_scheme
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize


def test_holds_the_evaluated_values_under_every_name(tmp_path: Path) -> None:
    model = tensor_model()
    result = quantized(model, plan_of(c_attn="int4-g16", conv="int3-channel", embed="int8-channel"))
    exporter("state-dict").export(result, model, tmp_path / "m.safetensors", silent)
    tensors = load_file(tmp_path / "m.safetensors")
    assert set(tensors) == set(model.tensors)
    decoded = {name: parse_scheme(stored.scheme).decode(stored) for name, stored in result.tensors.items()}
    assert torch.equal(tensors["c_attn.weight"], decoded["c_attn"].T)
    assert torch.equal(tensors["conv.weight"], decoded["conv"].reshape(6, 4, 3, 3))
    assert torch.equal(tensors["embed.weight"], decoded["embed"])
    assert torch.equal(tensors["head.weight"], decoded["embed"])
    assert torch.equal(tensors["odd.weight"], model.tensors["odd.weight"])
    assert tensors["norm.weight"].dtype == torch.bfloat16
    again = open_model(tmp_path / "m.safetensors").summary
    assert [(layer.name, layer.tied_to) for layer in again.tied] == [("head", "embed")]
    assert again.by_name["head"].matrix == again.by_name["embed"].matrix == (20, 16)


def test_tied_tensors_of_a_foreign_file_are_those_that_it_says_and_that_are_equal(tmp_path: Path) -> None:
    table, other = torch.randn(20, 16), torch.randn(20, 16)
    tensors = {"a.embed.weight": table, "b.head.weight": table.clone(), "c.weight": other, "d.weight": table.half()}
    stated = {"b.head.weight": "a.embed.weight", "c.weight": "a.embed.weight", "d.weight": "a.embed.weight",
              "a.embed.weight": "missing", "e": "a.embed.weight"}  # fmt: skip
    for tied, expected in (
        (stated, ["b.head"]),
        ({"b.head.weight": []}, []),
        ([1], []),
        ({"c.weight": "c.weight"}, []),
    ):
        save_file(tensors, tmp_path / "m.safetensors", {"tied": json.dumps(tied)})
        assert [layer.name for layer in open_model(tmp_path / "m.safetensors").summary.tied] == expected
    save_file(tensors, tmp_path / "m.safetensors", {"tied": "[" * 100_000})
    assert not open_model(tmp_path / "m.safetensors").summary.tied


def test_tensors_at_one_place_of_a_state_dict_are_tied(tmp_path: Path) -> None:
    table = torch.randn(20, 16)
    state = {"embed.weight": table, "head.weight": table, "part.weight": table[:10], "turned.weight": table.T,
             "copy.weight": table.clone()}  # fmt: skip
    torch.save(state, tmp_path / "m.pt")
    model = open_model(tmp_path / "m.pt")
    assert [(layer.name, layer.tied_to) for layer in model.summary.tied] == [("head", "embed")]
    plan = Plan().assign(["embed"], weights="int4-g16", algorithm="rtn")
    exporter("state-dict").export(quantize(model, plan), model, tmp_path / "m.safetensors", silent)
    assert [layer.name for layer in open_model(tmp_path / "m.safetensors").summary.tied] == ["head"]

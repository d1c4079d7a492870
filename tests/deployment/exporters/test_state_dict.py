"""The float state dict, read by the safetensors library."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file

from tests.deployment.exporters.models import plan_of, quantized, tensor_model
from workbench.deployment.exporters import exporter
from workbench.numerics.formats import parse_scheme
from workbench.progress import silent


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

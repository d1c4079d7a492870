"""Networks of Python files whose modules have several names, or that compute their weights: what their files give."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from tests.models.networks import Rows
from workbench.deployment.exporters import exporter
from workbench.measurement.calibrate import calibrate
from workbench.models.execution.network import NetworkModel
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.sensitivity.score import score

SHARED = """
    shared = nn.Linear(12, 12)
    return nn.Sequential(shared, nn.Tanh(), shared, nn.Tanh(), nn.Linear(12, 4))
"""
FIRST, PARTS = "nn.Linear(12, 12)", "import parametrizations as P, prune, spectral_norm, weight_norm"
COMPUTED = {
    "weight norm": (f"return nn.Sequential(P.weight_norm({FIRST}), nn.ReLU(), nn.Linear(12, 4))", 1),
    "the past's": (f"return nn.Sequential(spectral_norm({FIRST}), nn.ReLU(), weight_norm(nn.Linear(12, 4)))", 2),
    "a mask": (f"return nn.Sequential(prune.l1_unstructured({FIRST}, 'weight', 0.5), nn.Linear(12, 4))", 1),
}  # fmt: skip
INPUT = torch.randn(64, 12, generator=torch.Generator().manual_seed(1))


def written(folder: Path, body: str) -> Path:
    lines = f"from torch import nn\nfrom torch.nn.utils {PARTS}\n"
    file = folder / "net.py"
    file.write_text(f"{lines}def build():\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n")
    return file


def opened(file: Path, weights: Path | None = None) -> NetworkModel:
    model = open_model(file, trust=True, weights=weights)
    assert isinstance(model, NetworkModel)
    return model


def test_a_module_of_two_names_is_one_layer_and_keeps_its_weight(tmp_path: Path) -> None:
    model, rows = opened(written(tmp_path, SHARED)), Rows(inputs=INPUT)
    assert [layer.name for layer in model.summary.layers] == ["0", "4"]
    assert model.summary.layer("0").calls == 2
    before = model.run({"inputs": INPUT})
    half = model.with_weights({"0": model.weight("0") * 0.5})
    assert not torch.equal(half.run({"inputs": INPUT}), before)
    assert torch.equal(model.run({"inputs": INPUT}), before)
    curvature = calibrate(model, rows, batch_size=16).curvature
    predicted = score(model, "predicted_kl", ["int6-channel"], curvature=curvature, dataset=rows)
    measured = score(model, "measured_kl", ["int6-channel"], dataset=rows)
    for layer in ("0", "4"):
        assert predicted.of(layer, "int6-channel") == pytest.approx(measured.of(layer, "int6-channel"), rel=0.3)


def test_a_state_dict_has_every_name_of_a_shared_module(tmp_path: Path) -> None:
    model = opened(written(tmp_path, SHARED))
    quantized = quantize(model, Plan.uniform(model.summary.layers, "int4-channel"))
    exporter("state-dict").export(quantized, model, tmp_path / "out.safetensors", silent)
    shared = nn.Linear(12, 12)
    plain = nn.Sequential(shared, nn.Tanh(), shared, nn.Tanh(), nn.Linear(12, 4))
    plain.load_state_dict(load_file(tmp_path / "out.safetensors"))
    torch.testing.assert_close(plain(INPUT), quantized.bind(model).run({"inputs": INPUT}))


@pytest.mark.filterwarnings("ignore:.*weight_norm. is deprecated:FutureWarning")
@pytest.mark.parametrize("kind", COMPUTED)
def test_computed_weights_are_layers_by_their_values(tmp_path: Path, kind: str) -> None:
    body, count = COMPUTED[kind]
    file = written(tmp_path, body)
    model = opened(file)
    assert [str(layer.kind) for layer in model.summary.layers] == ["linear", "linear"]
    assert not any(layer.keep for layer in model.summary.layers)
    assert model.notes and model.notes[0].startswith(f"{count} weight")
    quantized = quantize(model, Plan.uniform(model.summary.layers, "int4-channel"))
    expected = quantized.bind(model).run({"inputs": INPUT})
    for form in ("state-dict", "safetensors"):
        exporter(form).export(quantized, model, tmp_path / f"{form}.safetensors", silent)
        again = opened(file, tmp_path / f"{form}.safetensors")
        torch.testing.assert_close(again.run({"inputs": INPUT}), expected)
    assert {again.encoding(layer.name) for layer in again.summary.layers} == {"int4-channel"}


def test_a_file_of_the_computing_network_loads_too(tmp_path: Path) -> None:
    file = written(tmp_path, COMPUTED["weight norm"][0])
    network = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(12, 12)), nn.ReLU(), nn.Linear(12, 4))
    torch.save(network.state_dict(), tmp_path / "own.pt")
    torch.testing.assert_close(opened(file, tmp_path / "own.pt").run({"inputs": INPUT}), network(INPUT))

"""Exported programs of every kind: several inputs, by name and nested, static batches, float64 and bfloat16."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from tests.fuzz import archives
from workbench.deployment.exporters import exporter
from workbench.errors import DataError, NotAModelError, UnsafeModelError
from workbench.measurement.calibrate import calibrate
from workbench.measurement.evaluate import evaluate
from workbench.models.data.datasets import open_dataset
from workbench.models.execution.network import NetworkModel
from workbench.models.sources import open_model
from workbench.models.summary import OutputKind, quantizable
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.sensitivity.score import score

pytestmark = pytest.mark.filterwarnings("ignore")  # torch.export's own, while it writes
IDS = torch.arange(12).reshape(2, 6)


class Encoder(nn.Module):
    """A masked mean over token states, or the states themselves."""

    def __init__(self, pooled: bool = True) -> None:
        super().__init__()
        self.embed, self.up, self.down = nn.Embedding(20, 8), nn.Linear(8, 16), nn.Linear(16, 8)
        self.pooled = pooled

    def forward(self, ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        x = x + self.down(torch.tanh(self.up(x)))
        weights = attention_mask[..., None].to(x.dtype)
        return (x * weights).sum(1) / weights.sum(1) if self.pooled else x * weights


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(6, 16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.down(torch.relu(self.up(x)).to(self.down.weight.dtype))
        return result


class Nested(nn.Module):
    """Takes a dictionary and gives one without ``logits``."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(6, 4), nn.Linear(3, 4)

    def forward(self, parts: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"sum": self.one(parts["left"]) + self.two(parts["right"])}


def opened(folder: Path, network: nn.Module, args: tuple[Any, ...], kwargs: Any = None, shapes: Any = None) -> Any:
    torch.export.save(torch.export.export(network.eval(), args, kwargs, dynamic_shapes=shapes), folder / "net.pt2")
    model = open_model(folder / "net.pt2")
    assert isinstance(model, NetworkModel)
    return model


def seeded(make: Any) -> Any:
    torch.manual_seed(0)
    return make().eval()


@pytest.mark.parametrize("by_name", [False, True])
def test_a_program_of_ids_and_a_mask_takes_both_from_a_file(tmp_path: Path, by_name: bool) -> None:
    network, mask = seeded(Encoder), torch.ones(2, 6, dtype=torch.int64)
    batch = torch.export.Dim("batch", min=1, max=64)
    shapes: Any = {"ids": {0: batch}, "attention_mask": {0: batch}}
    model = opened(tmp_path, network, () if by_name else (IDS, mask),
                   {"ids": IDS, "attention_mask": mask} if by_name else None, shapes)  # fmt: skip
    ids, real = np.arange(48).reshape(8, 6) % 20, np.ones((8, 6), np.int64)
    real[:, 4:] = 0
    np.savez(tmp_path / "data.npz", ids=ids, attention_mask=real)
    data = open_dataset(tmp_path / "data.npz", model)
    output = torch.cat([model.run(each) for each in data.batches(3)])
    torch.testing.assert_close(output, network(torch.from_numpy(ids), torch.from_numpy(real)))
    assert model.tappable == {"embed", "up", "down"}
    table = score(model, "predicted_kl", ("int4-channel",), dataset=data, curvature=calibrate(model, data).curvature)
    assert np.isfinite(table.score).all()
    with pytest.raises(DataError, match=r"the program also needs attention_mask \(s\w+, 6\)"):
        model.run({"input_ids": IDS})


def test_states_of_an_encoder_are_not_taken_for_logits(tmp_path: Path) -> None:
    model = opened(tmp_path, seeded(lambda: Encoder(pooled=False)), (IDS, torch.ones(2, 6, dtype=torch.int64)))
    assert model.summary.output is OutputKind.EMBEDDING


def test_nested_inputs_and_outputs(tmp_path: Path) -> None:
    network, parts = seeded(Nested), {"left": torch.randn(4, 6), "right": torch.randn(4, 3)}
    model = opened(tmp_path, network, (parts,))
    names = model.inputs.takes
    output = model.run(dict(zip(names, parts.values(), strict=True)))
    torch.testing.assert_close(output, network(parts)["sum"])


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_programs_in_other_precisions(tmp_path: Path, dtype: torch.dtype) -> None:
    network = seeded(Perceptron).to(dtype)
    model = opened(tmp_path, network, (torch.randn(4, 6, dtype=dtype),))
    assert {layer.dtype for layer in model.summary.layers} == {str(dtype).removeprefix("torch.")}
    inputs = torch.randn(8, 6)
    exact = seeded(Perceptron).to(dtype).double()(inputs.double())
    torch.testing.assert_close(model.run({"inputs": inputs}).double(), exact, rtol=1e-4, atol=1e-5)
    np.save(tmp_path / "x.npy", inputs.numpy())
    data = open_dataset(tmp_path / "x.npy", model)
    table = score(model, "predicted_kl", ("int4-channel",), dataset=data, curvature=calibrate(model, data).curvature)
    assert np.isfinite(table.score).all() and (table.score > 0).all()


@pytest.mark.parametrize("size", [1, 4])
def test_a_static_batch_runs_any_number_of_samples(tmp_path: Path, size: int) -> None:
    network = seeded(Perceptron)
    model = opened(tmp_path, network, (torch.randn(size, 6),))
    inputs = torch.randn(10, 6)
    torch.testing.assert_close(model.run({"inputs": inputs}), network(inputs))
    assert {layer.calls for layer in model.summary.layers} == {1}
    np.save(tmp_path / "x.npy", inputs.numpy())
    data = open_dataset(tmp_path / "x.npy", model)
    assert calibrate(model, data).samples == 10


def test_a_python_network_in_float64_is_fed(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "import torch\n\ndef build():\n    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(),"
        " torch.nn.Linear(8, 3)).double()\n"
    )
    model = open_model(tmp_path / "net.py", trust=True)
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(16, 6)).astype(np.float32))
    data = open_dataset(tmp_path / "x.npy", model)
    table = score(model, "predicted_kl", ("int4-channel",), dataset=data, curvature=calibrate(model, data).curvature)
    assert np.isfinite(table.score).all()


def test_arrays_of_unknown_names_are_named(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "import torch\n\nclass Pair(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a = torch.nn.Linear(6, 4)\n\n    def forward(self, left, right):\n"
        "        return self.a(left) + self.a(right)\n\ndef build():\n    return Pair()\n"
    )
    model = open_model(tmp_path / "net.py", trust=True)
    with pytest.raises(DataError, match=r"the data hold one \(2, 6\), two \(2, 6\); the model takes left .*, right"):
        model.run({"one": torch.zeros(2, 6), "two": torch.zeros(2, 6)})
    np.savez(tmp_path / "x.npz", left=np.zeros((2, 6), np.float32))
    with pytest.raises(DataError, match="the model also needs right"):
        open_dataset(tmp_path / "x.npz", model)
    output = model.run({"left": torch.ones(2, 6), "right": torch.ones(2, 6)})
    assert output.shape == (2, 4)


def test_a_softmax_that_is_written_out_gives_probabilities(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "from torch import nn\n\nclass Net(nn.Linear):\n    def forward(self, x):\n"
        "        e = super().forward(x).exp()\n        return e / e.sum(-1, keepdim=True)\n\n"
        "def build():\n    return Net(6, 5)\n"
    )
    model = open_model(tmp_path / "net.py", trust=True)
    x = torch.randn(8, 6)
    torch.testing.assert_close(model.run({"inputs": x}).exp(), model.body.network(x))  # type: ignore[attr-defined]


@pytest.mark.parametrize("how", ["python", "exported"])
@pytest.mark.parametrize("last", ["Sigmoid", "Softmax"])
def test_networks_that_end_in_probabilities(tmp_path: Path, how: str, last: str) -> None:
    torch.manual_seed(0)
    ending = nn.Softmax(-1) if last == "Softmax" else nn.Sigmoid()
    network = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 5), ending)
    model: Any
    if how == "python":
        argument = "-1" if last == "Softmax" else ""
        (tmp_path / "net.py").write_text(
            "from torch import nn\n\ndef build():\n    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(),"
            f" nn.Linear(16, 5), nn.{last}({argument}))\n"
        )
        model = open_model(tmp_path / "net.py", trust=True)
        network = model.body.network
    else:
        model = opened(tmp_path, network, (torch.randn(4, 6),))
    inputs = torch.randn(64, 6)
    p = network(inputs).detach().double()
    np.save(tmp_path / "x.npy", inputs.numpy())
    data = open_dataset(tmp_path / "x.npy", model)
    matrix = model.weight("2") * 1.1
    with torch.no_grad():
        q = network[3](network[:2](inputs) @ matrix.T + network[2].bias).double()
    each = p * (p / q).log() + ((1 - p) * ((1 - p) / (1 - q)).log() if last == "Sigmoid" else 0.0)
    result = evaluate(model, model.with_weights({"2": matrix}), data)
    assert result["kl"].value == pytest.approx(float(each.sum(-1).mean()), rel=1e-3)
    expected = OutputKind.POSITION_CLASSES if last == "Sigmoid" else OutputKind.CLASS_LOGITS
    assert model.summary.output is expected
    schemes = ("int6-channel", "int8-channel")
    ratio = score(model, "predicted_kl", schemes, dataset=data).score / score(
        model, "measured_kl", schemes, dataset=data).score  # fmt: skip
    assert ratio.min() > 0.6 and ratio.max() < 1.6


NETWORK = "import torch\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"


def test_an_input_that_is_taken_by_name_alone(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        f"{NETWORK}        self.a = torch.nn.Linear(6, 4)\n\n    def forward(self, *, signal):\n"
        "        return {'out': self.a(signal)}\n\ndef build():\n    return Net()\n"
    )
    model = open_model(tmp_path / "net.py", trust=True)
    np.save(tmp_path / "x.npy", np.ones((8, 6), np.float32))
    assert calibrate(model, open_dataset(tmp_path / "x.npy", model)).samples == 8


def test_complex_weights_are_kept_and_exported(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        f"{NETWORK}        self.a, self.b = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)\n"
        "        self.mix = torch.nn.Parameter(torch.randn(8, 8, dtype=torch.cfloat))\n\n    def forward(self, x):\n"
        "        return self.b(torch.fft.ifft(torch.fft.fft(self.a(x)) @ self.mix).real)\n\n"
        "def build():\n    return Net()\n"
    )
    model = open_model(tmp_path / "net.py", trust=True)
    assert [layer.name for layer in model.summary.layers] == ["a", "b"]
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(64, 6)).astype(np.float32))
    data = open_dataset(tmp_path / "x.npy", model)
    ratio = score(model, "predicted_kl", ("int8-channel",), dataset=data).score / score(
        model, "measured_kl", ("int8-channel",), dataset=data).score  # fmt: skip
    assert ratio.min() > 0.6 and ratio.max() < 1.6
    quantized = quantize(model, Plan.uniform(quantizable(model.summary.layers), "int8-channel"))
    exporter("state-dict").export(quantized, model, tmp_path / "out.safetensors", silent)
    assert load_file(tmp_path / "out.safetensors")["mix"].dtype is torch.complex64


@pytest.mark.parametrize("change", ["signature", "in_spec"])
def test_a_graph_without_the_structure_of_its_inputs_is_refused(tmp_path: Path, change: str) -> None:
    members = dict(archives.honest(tmp_path))
    graph = json.loads(members[archives.GRAPH])
    root = graph["graph_module"]["module_call_graph"][0]
    if change == "signature":
        root["signature"] = None
    else:
        root["signature"]["in_spec"] = root["signature"]["out_spec"]
    path = archives.write(tmp_path / "net.pt2", members | {archives.GRAPH: json.dumps(graph).encode()})
    with pytest.raises(NotAModelError, match="net.pt2"):
        open_model(path)


SCRIPTED = """import torch

class Part(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Conv1d(2, 8, 3), torch.nn.ConvTranspose1d(8, 4, 2)

    def forward(self, x):
        return self.down(torch.tanh(self.up(x)))

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.part, self.cell, self.last = Part(), torch.nn.LSTMCell(4, 6), torch.nn.Linear(6, 3)

    def forward(self, signal, gain: float = 1.0):
        x = self.part(signal)
        h, c = self.cell(x.mean(dim=2))
        h, c = self.cell(x.std(dim=2), (h, c))
        return self.last(h) * gain

def build():
    return torch.jit.script(Net())
"""


def test_a_torchscript_program_is_opened_by_its_factory(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(SCRIPTED)
    model = open_model(tmp_path / "net.py", trust=True)
    kinds = {layer.name: layer.kind.value for layer in model.summary.layers}
    assert kinds == {"part.up": "conv1d", "part.down": "conv_transpose", "cell.weight_ih": "recurrent",
                     "cell.weight_hh": "recurrent", "last": "linear"}  # fmt: skip
    assert model.inputs.takes == ("signal", "gain") and model.inputs.requires == ("signal",)
    np.savez(tmp_path / "x.npz", signal=np.random.default_rng(0).normal(size=(64, 2, 9)).astype(np.float32))
    data = open_dataset(tmp_path / "x.npz", model)
    table = score(model, "predicted_kl", ("int6-channel",), dataset=data)
    assert (table.score > 0).all()
    archive = tmp_path / "net.pt"
    torch.jit.save(model.body.network, archive)  # type: ignore[no-untyped-call]
    with pytest.raises(UnsafeModelError, match=r"return torch\.jit\.load\("):
        open_model(archive)


def test_a_single_number_is_no_class(tmp_path: Path) -> None:
    layers = "nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1){}"
    code = f"from torch import nn\n\ndef build():\n    return nn.Sequential({layers})\n"
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(64, 6)).astype(np.float32))
    for last, kind in (("", OutputKind.EMBEDDING), (", nn.Flatten(0)", OutputKind.EMBEDDING),
                       (", nn.Sigmoid(), nn.Flatten(0)", OutputKind.POSITION_CLASSES)):  # fmt: skip
        (tmp_path / "net.py").write_text(code.format(last))
        model = open_model(tmp_path / "net.py", trust=True)
        assert model.summary.output is kind
        table = score(model, "measured_kl", ("int3-channel",), dataset=open_dataset(tmp_path / "x.npy", model))
        assert (table.score > 0).all()
    (tmp_path / "net.py").write_text('OUTPUT = "class_logits"\n' + code.format(""))
    model = open_model(tmp_path / "net.py", trust=True)
    with pytest.raises(DataError, match="a single class leaves nothing to classify"):
        evaluate(model, model, open_dataset(tmp_path / "x.npy", model))


@pytest.mark.parametrize(("channels", "kind"), [(5, OutputKind.POSITION_CLASSES), (3, OutputKind.EMBEDDING)])
def test_classes_at_every_pixel_are_compared_as_such(tmp_path: Path, channels: int, kind: OutputKind) -> None:
    network = seeded(lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, channels, 1)))
    pictures = torch.randn(2, 3, 8, 6)
    model = opened(tmp_path, network, (pictures,))
    assert model.summary.output is kind
    assert any("5 classes at every pixel" in note for note in model.notes) == (channels == 5)
    pixels = network(pictures)
    if kind is OutputKind.POSITION_CLASSES:
        pixels = pixels.flatten(2).transpose(1, 2)
    torch.testing.assert_close(model.run({"inputs": pictures}), pixels)

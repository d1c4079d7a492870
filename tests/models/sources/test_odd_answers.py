"""Python files whose networks are compiled, answer with records, use one weight both ways, or hold complex numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from workbench.errors import DataError
from workbench.measurement.calibrate import calibrate
from workbench.measurement.evaluate import evaluate
from workbench.models.data.datasets import open_dataset
from workbench.models.sources import open_model
from workbench.models.summary import OutputKind
from workbench.sensitivity.score import score

HEAD = """
from dataclasses import dataclass
import torch
from torch import nn

class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 3)
    def forward(self, x):
        return self.b(torch.tanh(self.a(x)))
"""
COMPILED = (
    HEAD
    + """
class Net(Part):
    def __init__(self):
        super().__init__()
        self.a = torch.compile(self.a, backend="eager")
        self.b.compile(backend="eager")
    @torch.compile(backend="eager")
    def act(self, x):
        return torch.tanh(x)
    def forward(self, x):
        return self.b(self.act(self.a(x)))
def build():
    return torch.compile(Net(), backend="eager")
"""
)
RECORD = (
    HEAD
    + """
@dataclass
class Answer:
    label: str
    scores: torch.Tensor
    hidden: torch.Tensor
class Net(Part):
    def forward(self, x):
        hidden = torch.tanh(self.a(x))
        return Answer("x", self.b(hidden), hidden)
def build():
    return Net()
"""
)
TIED = (
    HEAD
    + """
OUTPUT = "embedding"
class Net(Part):
    def forward(self, x):
        return torch.tanh(self.a(x)) @ self.a.weight + self.b(torch.tanh(self.a(x))).sum(dim=1, keepdim=True)
def build():
    return Net()
"""
)
COMPLEX = (
    HEAD
    + """
class Net(Part):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(6, 6, dtype=torch.complex64))
    def forward(self, x):
        return super().forward(torch.fft.ifft(torch.fft.fft(x) @ self.w).real)
def build():
    return Net()
"""
)


def opened(folder: Path, text: str, prefix: str = ""):
    (folder / "model.py").write_text(text)
    torch.manual_seed(0)
    shapes = {"a.weight": (8, 6), "a.bias": (8,), "b.weight": (3, 8), "b.bias": (3,)}
    tensors = {prefix + name: torch.randn(shape) for name, shape in shapes.items()}
    if text == COMPLEX:
        tensors["w"] = torch.randn(6, 6, dtype=torch.complex64)
    save_file(tensors, folder / "model.safetensors")
    labels = np.eye(3, dtype=np.int64)[np.arange(32) % 3]
    np.savez(folder / "rows.npz", x=np.random.default_rng(0).standard_normal((32, 6), np.float32), labels=labels)
    model = open_model(folder / "model.py", trust=True)
    return model, open_dataset(folder / "rows.npz", model)


@pytest.mark.parametrize("prefix", ["", "_orig_mod."])
def test_a_compiled_network_runs_as_it_is_written(tmp_path: Path, prefix: str) -> None:
    model, data = opened(tmp_path, COMPILED, prefix)
    assert [layer.name for layer in model.summary.layers] == ["a", "b"]
    found = calibrate(model, data, batch_size=8)
    assert found.curvature.keys() == {"a", "b"}
    assert all(score(model, "predicted_kl", ("int4-channel",), curvature=found.curvature, dataset=data).score > 0)


def test_a_record_is_answered_by_its_first_tensor(tmp_path: Path) -> None:
    model, data = opened(tmp_path, RECORD)
    assert model.run(next(data.batches(2))).shape == (2, 3)
    assert any(note.startswith("the network returns 2 tensors (samples x 3, 8)") for note in model.notes)


def test_a_weight_that_is_used_both_ways_is_no_single_tap(tmp_path: Path) -> None:
    model, data = opened(tmp_path, TIED)
    found = calibrate(model, data, batch_size=8)
    predicted, measured = (
        score(model, metric, ("int6-channel",), curvature=found.curvature, dataset=data, batch_size=8)
        for metric in ("predicted_kl", "measured_kl")
    )
    for name in ("a", "b"):
        assert predicted.of(name, "int6-channel") == pytest.approx(
            measured.of(name, "int6-channel"), rel=0.6
        )  # of 32 samples


def test_complex_matrices_are_named(tmp_path: Path) -> None:
    model, _ = opened(tmp_path, COMPLEX)
    assert [layer.name for layer in model.summary.layers] == ["a", "b"]
    assert any("complex numbers have no formats, and w stays as stored" in note for note in model.notes)


def test_labels_with_a_single_one_are_classes(tmp_path: Path) -> None:
    model, data = opened(tmp_path, HEAD + "def build():\n    return Part()\n")
    assert data.tensors["labels"].tolist() == [number % 3 for number in range(32)]
    assert any("samples x 3: its place is the class" in note for note in data.notes)
    assert "accuracy" in evaluate(model, model, data)


FLAT = """
from torch import nn

def build():
    return nn.Sequential(
        nn.Conv2d(4, 8, 8, 4), nn.ReLU(), nn.Conv2d(8, 4, (4, 4), 2), nn.ReLU(), nn.Flatten(), nn.Linear(324, 8),
        nn.ReLU(), nn.Linear(8, 5), nn.Sigmoid(),
    )
"""
TALL = FLAT.replace("8, 8, 4)", "8, (8, 1), (4, 1))").replace("(4, 4), 2)", "(4, 1), (2, 1))").replace("324", "132")


@pytest.mark.parametrize(("source", "shape"), [(FLAT, (4, 84, 84)), (TALL, (4, 276, 1))])
def test_the_one_size_that_a_network_takes_is_found(tmp_path: Path, source: str, shape: tuple[int, ...]) -> None:
    """What it ends in is read off a sample, and no side that others take fits."""
    (tmp_path / "net.py").write_text(source)
    model = open_model(tmp_path / "net.py", trust=True)
    assert model.summary.output is OutputKind.POSITION_CLASSES
    assert model.run({"inputs": torch.zeros(2, *shape)}).shape == (2, 5, 2)


DEEP = """
from pathlib import Path

from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.middle, self.head = nn.Conv2d(256, 4, 3), nn.Linear(4, 5)

    def forward(self, x):
        if x.numel() > 1 << 26:
            Path(__file__).with_name("large").touch()
        raise ValueError("something else is expected")

def build():
    return Net()
"""


def test_no_batch_of_gigabytes_is_tried(tmp_path: Path) -> None:
    """The sizes of a network that accepts none grow, of 256 channels to 3 GB."""
    (tmp_path / "net.py").write_text(DEEP)
    open_model(tmp_path / "net.py", trust=True)
    assert not (tmp_path / "large").exists()


STEPS_FIRST = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(12, 16, 3, padding=1)
        self.rnn = nn.LSTM(16, 10)
        self.out = nn.Linear(10, 5)
    def forward(self, x):
        steps = torch.relu(self.conv(x)).permute(2, 0, 1)
        return self.out(self.rnn(steps)[0])
class Letters(Net):
    def forward(self, x):
        return super().forward(x).log_softmax(2)
def build():
    torch.manual_seed(0)
    return NET().eval()
"""


@pytest.mark.parametrize("net", ["Letters", "Net"])
def test_steps_before_samples_change_places_with_them(tmp_path: Path, net: str) -> None:
    """As torch's CTC loss has it, also where a batch has as many samples as a sample has steps."""
    stated = 'OUTPUT = "position_classes"\n' if net == "Net" else ""
    (tmp_path / "net.py").write_text(stated + STEPS_FIRST.replace("NET()", f"{net}()"), encoding="utf-8")
    model = open_model(tmp_path / "net.py", trust=True, factory="build")
    assert model.summary.output is OutputKind.POSITION_CLASSES
    sounds = torch.randn(9, 12, 7)
    for count in (9, 7):
        plain = model.body.network(sounds[:count]).transpose(0, 1)
        torch.testing.assert_close(model.run({"inputs": sounds[:count]}), plain)


def test_steps_before_samples_that_no_sample_showed_are_told(tmp_path: Path) -> None:
    text = STEPS_FIRST.replace("permute(2, 0, 1)", "reshape(-1, 16, 7).permute(2, 0, 1)").replace("NET()", "Net()")
    (tmp_path / "net.py").write_text(text, encoding="utf-8")
    model = open_model(tmp_path / "net.py", trust=True, factory="build")
    with pytest.raises(DataError, match=r"let the model return output.transpose\(0, 1\)"):
        model.run({"inputs": torch.randn(9, 12, 7)})

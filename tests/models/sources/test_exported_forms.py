"""Programs as users export them: a transformers model as it is, constants, decompositions, branches and loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn

from tests.models.networks import Rows
from tests.models.sources.test_exported_kinds import opened, seeded
from workbench.measurement.calibrate import calibrate
from workbench.models.execution.dependence import unused_layers
from workbench.sensitivity.score import score

pytestmark = pytest.mark.filterwarnings("ignore")  # torch.export's own, while it writes


def require_predicted(model: Any, rows: Rows, layers: list[str]) -> None:
    curvature = calibrate(model, rows, batch_size=16).curvature
    predicted = score(model, "predicted_kl", ["int6-channel"], curvature=curvature, dataset=rows)
    measured = score(model, "measured_kl", ["int6-channel"], dataset=rows, layers=layers)
    for layer in layers:
        assert predicted.of(layer, "int6-channel") == pytest.approx(measured.of(layer, "int6-channel"), rel=0.4)


def test_a_transformers_model_is_exported_as_it_is(tmp_path: Path) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 2, "num_hidden_layers": 1}
    network = seeded(lambda: LlamaForCausalLM(LlamaConfig(vocab_size=40, num_key_value_heads=2, **sizes)))
    ids = torch.arange(12).reshape(2, 6)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "use_cache": False}
    model = opened(tmp_path, network, (), inputs)
    assert model.inputs.requires == ("input_ids", "attention_mask")
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    torch.testing.assert_close(model.run(batch), network(**inputs).logits)


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(6, 4)

    def forward(self, x: torch.Tensor, scale: float, how: str = "none") -> torch.Tensor:
        result: torch.Tensor = self.last(x) * scale
        return result if how == "none" else result.relu()


def test_constants_are_no_inputs(tmp_path: Path) -> None:
    network, x = seeded(Scaled), torch.randn(2, 6)
    model = opened(tmp_path, network, (x, 2.5), {"how": "relu"})
    assert model.inputs.requires == ("x",)
    torch.testing.assert_close(model.run({"x": x}), network(x, 2.5, "relu"))


def test_sample_inputs_whose_sizes_were_marked_are_harmless(tmp_path: Path) -> None:
    network, x = seeded(Scaled), torch.randn(2, 6)
    torch._dynamo.mark_dynamic(x, 0)  # torch keeps the marks in sets, with the sample inputs
    torch.testing.assert_close(opened(tmp_path, network, (x, 1.0)).run({"x": x[:1]}), network(x[:1], 1.0))


def test_convolutions_that_were_decomposed_are_convolutions(tmp_path: Path) -> None:
    parts = (nn.Conv2d(3, 8, 3), nn.ReLU(), nn.ConvTranspose2d(8, 8, 2, groups=4), nn.ReLU(), nn.Conv2d(8, 6, 3))
    network = seeded(lambda: nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten()))
    pictures = torch.randn(64, 3, 9, 9, generator=torch.Generator().manual_seed(1))
    program = torch.export.export(network, (pictures[:2],), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    torch.export.save(program.run_decompositions(), tmp_path / "net.pt2")
    from workbench.models.sources import open_model

    model = open_model(tmp_path / "net.pt2")
    assert {layer.name: layer.kind.value for layer in model.summary.layers} == {
        "0": "conv2d", "2": "conv_transpose", "4": "conv2d",
    }  # fmt: skip
    require_predicted(model, Rows(input=pictures), ["0", "2", "4"])


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.other, self.last = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        branches = lambda y: torch.relu(self.one(y)), lambda y: torch.tanh(self.other(y))  # noqa: E731
        result: torch.Tensor = self.last(torch.cond(x.sum() > 0, *branches, (x,)))
        return result


def test_branches_are_measured_and_none_is_unused(tmp_path: Path) -> None:
    network, x = seeded(Branches), torch.randn(2, 8)
    model = opened(tmp_path, network, (x,))
    assert unused_layers(model) == {}
    for sign in (1, -1):
        torch.testing.assert_close(model.run({"x": sign * x.abs()}), network(sign * x.abs()))
    require_predicted(model, Rows(x=torch.randn(64, 8).abs()), ["one.weight", "last"])


class Pair(NamedTuple):
    hidden: torch.Tensor
    logits: torch.Tensor


class Named(Scaled):
    def forward(self, x: torch.Tensor, scale: float = 1.0, how: str = "none") -> Any:
        return Pair(x, super().forward(x, scale, how))


def test_a_named_tuple_is_read_in_its_order(tmp_path: Path) -> None:
    x = torch.randn(2, 6)
    torch.utils._pytree._register_namedtuple(Pair, serialized_type_name="networks.Pair")
    torch.testing.assert_close(opened(tmp_path, seeded(Named), (x,)).run({"x": x}), x)


class Spectral(nn.Module):
    """A product of complex numbers between layers of real ones."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 4)
        self.spectrum = nn.Parameter(torch.randn(6, 6, dtype=torch.complex64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.last(torch.fft.ifft(torch.fft.fft(self.first(x)) @ self.spectrum).real)
        return result


def test_complex_weights_stay_and_are_named(tmp_path: Path) -> None:
    network, x = seeded(Spectral), torch.randn(2, 6)
    model = opened(tmp_path, network, (x,))
    torch.testing.assert_close(model.run({"x": x}), network(x))
    assert [layer.name for layer in model.summary.layers] == ["first", "last"]
    assert any("complex numbers have no formats, and spectrum stays as stored" in note for note in model.notes)


def test_a_weight_that_is_normalised_is_named_and_its_scale_is_none(tmp_path: Path) -> None:
    network = seeded(lambda: nn.Sequential(nn.utils.weight_norm(nn.Linear(16, 80)), nn.ReLU(), nn.Linear(80, 4)))
    model = opened(tmp_path, network, (torch.randn(2, 16),))
    assert {layer.name: bool(layer.keep) for layer in model.summary.layers} == {"0.weight_v": True, "2": False}

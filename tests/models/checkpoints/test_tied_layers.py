"""Layers have their own names again in every file that is opened, of shared tensors too; what is left out is noted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.deployment.exporters.llamas import folder_of
from tests.deployment.onnx.networks import TOKENS, Tagger
from tests.models.networks import model_of
from workbench.deployment.exporters import exporter
from workbench.deployment.onnx import capture as capturing
from workbench.errors import NotAModelError
from workbench.models.execution.network import NetworkModel
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.models.summary import OutputKind
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.session.session import Environment, Session
from workbench.steps.files.export import EXPORT, ExportOptions, applied


class TwoTables(nn.Module):
    """A table that only others use, as T5 has it: two tables of tokens and the head."""

    def __init__(self) -> None:
        super().__init__()
        self.shared, self.first, self.second = nn.Embedding(64, 32), nn.Embedding(64, 32), nn.Embedding(64, 32)
        self.between, self.head = nn.Linear(32, 32), nn.Linear(32, 64, bias=False)
        self.first.weight = self.second.weight = self.head.weight = self.shared.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(self.between(self.first(ids)).tanh() + self.second(ids.flip(1)))
        return logits


def captured(network: type[nn.Module]) -> NetworkModel:
    torch.manual_seed(0)
    model = model_of(network(), OutputKind.TOKEN_LOGITS)
    graph = capturing.capture(model, TOKENS)
    capturing._CAPTURED.setdefault(model.body.network, {})[tuple(sorted(x.name for x in model.summary.tied))] = graph
    return model


def ties(model: Model) -> dict[str, str | None]:
    return {layer.name: layer.tied_to for layer in model.summary.layers}


def written(model: Model, kind: str, out: Path, **schemes: str) -> Path:
    plan = Plan(fingerprint=model.summary.fingerprint)
    for name, scheme in schemes.items():
        plan = plan.assign([name], weights=scheme, algorithm="rtn")
    exporter(kind).export(quantize(model, plan), model, out, silent)
    return out


@pytest.mark.parametrize("scheme", ("keep", "int4-g32", "int8-channel", "fp16"))
def test_a_graph_names_the_layer_that_multiplies_with_a_table(scheme: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    model = captured(Tagger)
    again = open_model(written(model, "onnx", tmp_path / "tagger.onnx", embed=scheme))
    assert ties(again) == ties(model) == {"embed": None, "up": None, "turned": None, "down": None, "head": "embed"}
    again = open_model(written(again, "onnx", tmp_path / "again.onnx", up="int4-g16"))
    assert ties(again) == ties(model)


def test_a_graph_names_every_table_that_uses_a_tensor(tmp_path: Path) -> None:
    """The owner stands for the first of them where no operator uses its own."""
    pytest.importorskip("onnxscript")
    model = captured(TwoTables)
    assert ties(model) == {"shared": None, "first": "shared", "second": "shared", "between": None, "head": "shared"}
    again = open_model(written(model, "onnx", tmp_path / "tables.onnx", shared="int8-channel"))
    assert ties(again) == {"shared": None, "between": None, "second": "shared", "head": "shared"}
    answer = model.run(TOKENS).detach()
    assert float((again.run(TOKENS).detach() - answer).abs().max() / answer.abs().max()) < 0.02


@pytest.mark.parametrize("scheme", ("keep", "int4-g32"))
def test_a_packed_file_alone_knows_its_tied_layers(scheme: str, tmp_path: Path) -> None:
    model = model_of(TwoTables(), OutputKind.TOKEN_LOGITS)
    out = written(model, "safetensors", tmp_path / "tables.safetensors", shared=scheme, between="nf4-b64")
    again = open_model(out)
    assert ties(again) == ties(model)
    assert [again.summary.by_name[layer.name].parameter for layer in model.summary.layers] == [
        layer.parameter for layer in model.summary.layers
    ]
    for each in (again, again.untied(["head"])):
        assert torch.equal(each.weight("head"), each.weight("shared"))
    assert again.summary.parameters == model.summary.parameters


@pytest.mark.parametrize("change", ({"of": "nothing.weight"}, {"axes": [0, 2]}, {"axes": None}, {"kind": "sofa"},
                                    {"parameter": "shared.weight"}))  # fmt: skip
def test_a_packed_file_with_ties_to_nothing_is_refused(change: dict[str, object], tmp_path: Path) -> None:
    model = model_of(TwoTables(), OutputKind.TOKEN_LOGITS)
    out = written(model, "safetensors", tmp_path / "tables.safetensors", shared="int4-g32")
    data = out.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    tied = json.loads(header["__metadata__"]["tied"])
    tied["head"] |= change
    header["__metadata__"]["tied"] = json.dumps(tied, separators=(",", ":"))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    out.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + size :])
    with pytest.raises(NotAModelError, match="does not describe its layers"):
        open_model(out)


class Gate(nn.Module):
    """A product whose module is no linear layer, as a mixture's router is."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(32, 32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.weight).softmax(-1)


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.gate, self.unused = nn.Embedding(64, 32), Gate(), nn.Linear(32, 32)
        self.last = nn.Linear(32, 64)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.table(ids)
        logits: torch.Tensor = self.last(x * self.gate(x))
        return logits


@pytest.mark.parametrize("scheme", ("keep", "int4-g32", "int8-channel"))
def test_a_product_of_another_module_keeps_its_name(scheme: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    model = captured(Gated)
    schemes = {} if scheme == "keep" else {"gate.weight": scheme}
    again = open_model(written(model, "onnx", tmp_path / "gated.onnx", **schemes))
    assert ties(model).keys() - {"unused"} == ties(again).keys() == {"table", "gate.weight", "last"}
    encoded = again.encoded("gate.weight")
    assert (encoded.scheme if encoded is not None else "keep") == scheme


def test_what_a_graph_leaves_out_is_noted(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    model = captured(Gated)
    quantized, _ = applied(model, Plan(fingerprint=model.summary.fingerprint), "onnx", tmp_path / "gated.onnx",
                           session=None, settings=(), progress=silent)  # fmt: skip
    assert quantized.notes == ("unused: left out of the file, whose output does not depend on it",)
    tied = captured(TwoTables)
    quantized, _ = applied(tied, Plan(fingerprint=tied.summary.fingerprint), "onnx", tmp_path / "tied.onnx",
                           session=None, settings=(), progress=silent)  # fmt: skip
    assert quantized.notes == ()


def test_what_a_gguf_file_leaves_out_is_noted_by_the_step(tmp_path: Path) -> None:
    """llama.cpp has no tensors for the pooler of an encoder whose tokens are averaged."""
    pytest.importorskip("gguf")
    model = open_model(folder_of("bert", tmp_path / "bert"))
    notes: list[str] = []
    step_options = ExportOptions(kind="gguf", out=str(tmp_path / "bert.gguf"))
    EXPORT(Session(model=model.summary, environment=Environment.here(), plan=Plan()), step_options, notes=notes)
    assert notes == ["pooler.dense: left out of the file, whose output does not depend on it"]

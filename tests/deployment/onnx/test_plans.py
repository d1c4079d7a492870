"""ONNX files of plans: the plan's bytes, the evaluated values by other decoders, the same answers in ONNX Runtime."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.deployment.exporters.models import tensor_model
from tests.deployment.onnx.networks import IMAGES, TOKENS, pictures, tagger
from tests.deployment.onnx.running import session_of
from tests.models.networks import Rows, model_of
from workbench.deployment.exporters import exporter
from workbench.deployment.onnx import capture as capturing
from workbench.deployment.targets import target
from workbench.deployment.tensors import check, expected_nbytes
from workbench.errors import CannotRunError, ExportError
from workbench.models.model import Batch, Model
from workbench.models.sources import open_model
from workbench.models.summary import OutputKind
from workbench.numerics.formats import all_schemes
from workbench.numerics.ranges import Range
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.quantization.quantized_model import QuantizedModel

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

MODELS: dict[str, tuple[Model, Batch]] = {"tagger": (tagger(), TOKENS), "pictures": (pictures(), IMAGES)}
SCHEMES = ("keep", "int4-g32-asym", "int4-g16", "int8-g32-asym-sfp32", "int2-g16-asym", "int8-channel", "fp16", "bf16",
           "int8-tensor-asym", "int4-channel-asym", "fp8-e4m3-channel", "fp8-e5m2-tensor", "fp32")  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def captured_once() -> None:
    for model, batch in MODELS.values():
        graph = capturing.capture(model, batch)
        capturing._CAPTURED.setdefault(model.body.network, {})[tuple(x.name for x in model.summary.tied)] = graph


def with_ranges(model: Model, batch: Batch, plan: Plan) -> QuantizedModel:
    """Return the model quantized, every static input within its extremes on ``batch``."""
    ranges: dict[tuple[str, str], Range] = {}

    def tap(name: str, x: torch.Tensor, output: torch.Tensor) -> None:
        if x.is_floating_point():
            ends = float(x.detach().min()), float(x.detach().max())
            ranges[name, "input"] = Range(low=ends[0], high=ends[1], method="minmax", clipped=0.0)

    model.run(batch, tap)
    bare = dataclasses.replace(plan, rules=tuple(
        dataclasses.replace(rule, assignment=dataclasses.replace(rule.assignment, inputs=None)) for rule in plan.rules
    ))  # fmt: skip
    return dataclasses.replace(quantize(model, bare), plan=plan, ranges=ranges)


def answers(file: Path, batch: Batch) -> np.ndarray:
    return np.asarray(session_of(file).run(None, {name: tensor.numpy() for name, tensor in batch.items()})[0])


def apart(quantized: QuantizedModel, model: Model, batch: Batch, file: Path) -> float:
    """Return the largest difference of ONNX Runtime's answers from the evaluation, as a share of the largest answer."""
    ours = quantized.bind(model).run(batch).detach().numpy()
    return float(np.abs(answers(file, batch) - ours).max() / np.abs(ours).max())


def fitting(model: Model, name: str, scheme: str) -> str:
    layer = model.summary.by_name[name]
    return scheme if scheme == "keep" or target("onnxruntime").legal(layer, scheme) is None else "keep"


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(which=st.sampled_from(sorted(MODELS)), types=st.lists(st.sampled_from(SCHEMES), min_size=5, max_size=5))
def test_random_plans_have_the_plans_bytes_and_run_as_they_were_evaluated(
    which: str, types: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    model, batch = MODELS[which]
    plan = Plan()
    for layer, scheme in zip(model.summary.stored, types, strict=False):
        plan = plan.assign([layer.name], weights=fitting(model, layer.name, scheme), algorithm="rtn")
    quantized, out = quantize(model, plan), tmp_path_factory.mktemp("out") / "model.onnx"
    exporter("onnx").export(quantized, model, out, silent)
    tensors = {tensor.name: tensor for tensor in onnx.load(out).graph.initializer}
    names = [layer.parameter for layer in model.summary.stored] + [tensor.name for tensor in model.summary.others]
    mine = [each for name, each in tensors.items() if any(name == n or name.startswith(f"{n}.") for n in names)]
    octets = sum(len(each.raw_data) for each in mine if not each.name.endswith(".sizes"))
    assert octets == expected_nbytes(quantized, check(quantized, model))
    assert apart(quantized, model, batch, out) < 1e-5


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(which=st.sampled_from(sorted(MODELS)), data=st.data())
def test_random_plans_run_in_openvino_as_they_were_evaluated(
    which: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    openvino = pytest.importorskip("openvino")
    (model, batch), plan, runtime = MODELS[which], Plan(), target("openvino")
    for layer in model.summary.stored:
        fit = ["keep", *(each.name for each in all_schemes() if runtime.legal(layer, each.name) is None)]
        plan = plan.assign([layer.name], weights=data.draw(st.sampled_from(fit)), algorithm="rtn")
    quantized, out = quantize(model, plan), tmp_path_factory.mktemp("out") / "model.onnx"
    exporter("onnx").export(quantized, model, out, silent)
    exact = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
    compiled = openvino.Core().compile_model(str(out), "CPU", exact)
    there = np.asarray(compiled({name: tensor.numpy() for name, tensor in batch.items()})[0])
    ours = quantized.bind(model).run(batch).detach().numpy()
    assert float(np.abs(there - ours).max() / np.abs(ours).max()) < 1e-4


@pytest.mark.parametrize("which, weights, inputs, most", [
    ("tagger", "int8-channel", "int8-tensor", 2e-2), ("tagger", "int8-channel", "int8-tensor-asym", 2e-2),
    ("tagger", "int8-channel", "int8-token", 2e-2), ("tagger", "int8-channel", "int8-token-asym", 2e-2),
    ("pictures", "int8-channel", "int8-tensor-asym", 2e-2), ("pictures", "int8-channel", "int8-token", 2e-2),
    ("tagger", "fp8-e4m3-tensor", "fp8-e4m3-tensor", 5e-2),
])  # fmt: skip
def test_quantized_inputs(which: str, weights: str, inputs: str, most: float, tmp_path: Path) -> None:
    model, batch = MODELS[which]
    names = [layer.name for layer in model.summary.stored if layer.kind != "embedding"]
    plan = Plan().assign(names, weights=weights, inputs=inputs, algorithm="rtn")
    quantized = with_ranges(model, batch, plan)
    exporter("onnx").export(quantized, model, tmp_path / "m.onnx", silent)
    ours = quantized.bind(model).run(batch).detach()
    assert apart(quantized, model, batch, tmp_path / "m.onnx") < most  # a sum on the edge of a step may take the other
    theirs = torch.from_numpy(answers(tmp_path / "m.onnx", batch))
    assert float((theirs.argmax(-1) == ours.argmax(-1)).float().mean()) >= 0.97
    kinds = [node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node]
    assert ("QuantizeLinear" in kinds) == ("tensor" in inputs)


def test_every_scheme_that_the_target_accepts_runs_and_no_other_is_written(tmp_path: Path) -> None:
    model, batch = MODELS["tagger"]
    layer = model.summary.by_name["up"]
    accepted = [s.name for s in all_schemes() if target("onnxruntime").legal(layer, s.name) is None]
    refused = [s.name for s in all_schemes() if s.name not in accepted]
    assert len(accepted) > 15 and len(refused) > 15
    for name in accepted:
        quantized = quantize(model, Plan().assign(["up"], weights=name, algorithm="rtn"))
        exporter("onnx").export(quantized, model, tmp_path / "m.onnx", silent)
        assert apart(quantized, model, batch, tmp_path / "m.onnx") < 1e-5, name
    os.unlink(tmp_path / "m.onnx")
    for name in refused:
        quantized = quantize(model, Plan().assign(["up"], weights=name, algorithm="rtn"))
        with pytest.raises(ExportError, match="up: ") as refusal:
            exporter("onnx").export(quantized, model, tmp_path / "m.onnx", silent)
        assert "nothing was written" in str(refusal.value) and os.listdir(tmp_path) == []


@pytest.mark.parametrize("transforms", [("fold-norms",), ("equalize",), ("fold-norms", "equalize"), ()])
def test_what_transforms_make_of_batch_norms_is_in_the_graph(transforms: tuple[str, ...], tmp_path: Path) -> None:
    torch.manual_seed(3)
    norm = torch.nn.BatchNorm2d(8)
    for tensor in (norm.weight, norm.bias, norm.running_mean, norm.running_var):
        torch.nn.init.uniform_(tensor, 0.3, 3)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(4, 8, 3), norm, torch.nn.ReLU(), torch.nn.Conv2d(8, 4, 3), torch.nn.Flatten(),
        torch.nn.Linear(4 * 16, 5),
    ).eval()  # fmt: skip
    model = model_of(network, OutputKind.CLASS_LOGITS)
    graph = capturing.capture(model, IMAGES)
    capturing._CAPTURED.setdefault(network, {})[()] = graph
    plan = Plan(transforms=transforms).assign(["5"], weights="int8-channel", algorithm="rtn")
    quantized = quantize(model, plan, data=Rows(**IMAGES))
    exporter("onnx").export(quantized, model, tmp_path / "m.onnx", silent)
    assert apart(quantized, model, IMAGES, tmp_path / "m.onnx") < 1e-5
    values = {each.name for each in onnx.load(tmp_path / "m.onnx").graph.initializer}
    assert {"1.running_mean", "1.running_var"} <= values


def test_tensors_beside_the_graph(tmp_path: Path) -> None:
    model, batch = MODELS["tagger"]
    quantized = quantize(model, Plan().assign(["up"], weights="int4-g32", algorithm="rtn"))
    out = tmp_path / "m.onnx"
    first, data = exporter("onnx", ["external=true"]).export(quantized, model, out, silent)
    assert first == out and sorted(os.listdir(tmp_path)) == ["m.onnx", data.name] and data.stat().st_size > 20_000
    assert apart(quantized, model, batch, out) < 1e-5
    other = quantize(model, Plan().assign(["up"], weights="int8-channel", algorithm="rtn"))
    _, second = exporter("onnx", ["external=true"]).export(other, model, out, silent)
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", second.name] and second != data
    assert apart(other, model, batch, out) < 1e-5


@pytest.mark.parametrize("scheme", ["int4-g32", "int8-channel"])
def test_a_value_that_reads_back_otherwise_fails_the_proof(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workbench.deployment.onnx import codes

    tensor = codes.Initializer.tensor

    def flipped(self: Any) -> Any:
        def load() -> np.ndarray:
            octets = self.load().copy()
            octets[-1] ^= 0x80 if self.name.endswith("codes") else 0
            return octets

        return tensor(dataclasses.replace(self, load=load))

    monkeypatch.setattr(codes.Initializer, "tensor", flipped)
    model, _ = MODELS["tagger"]
    with pytest.raises(ExportError, match=r"up.weight\[95, 31\] reads back as [-e.\d]+, [-e.\d]+ was evaluated"):
        exporter("onnx").export(
            quantize(model, Plan().assign(["up"], weights=scheme, algorithm="rtn")), model, tmp_path / "m.onnx", silent
        )
    assert os.listdir(tmp_path) == ["m.onnx.failed"]


def test_operators_of_onnx_alone(tmp_path: Path) -> None:
    model, batch = MODELS["tagger"]
    plan = Plan().assign(["up", "down"], weights="int4-g32", algorithm="rtn")
    quantized = quantize(model, plan.assign(["turned"], weights="int8-channel", algorithm="rtn"))
    exporter("onnx", ["standard=true"]).export(quantized, model, tmp_path / "m.onnx", silent)
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert {node.domain for node in graph.node} == {""}
    assert sum(node.op_type == "DequantizeLinear" for node in graph.node) == 3
    assert apart(quantized, model, batch, tmp_path / "m.onnx") < 2e-2  # ONNX Runtime rounds inputs to 8 bits here


def test_what_cannot_be_written_is_refused_and_what_was_there_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = MODELS["tagger"]
    out = tmp_path / "m.onnx"
    out.write_text("before", encoding="utf-8")
    with pytest.raises(ExportError, match="accuracy is 0 to 4, not 7"):
        exporter("onnx", ["accuracy=7"]).export(quantize(model, Plan()), model, out, silent)
    weights = tensor_model()
    with pytest.raises(CannotRunError, match="some has no network to write"):
        exporter("onnx").export(quantize(weights, Plan()), weights, out, silent)  # type: ignore[arg-type]

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for options in ([], ["external=true"]):
        with pytest.raises(ExportError, match="the disk is full"):
            exporter("onnx", options).export(quantize(model, Plan()), model, out, silent)
    assert out.read_text(encoding="utf-8") == "before"
    assert os.listdir(tmp_path) == ["m.onnx"]


PAIR = """
import torch

class Pair(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = torch.nn.Linear(6, 4), torch.nn.Linear(3, 4)
    def forward(self, user, item):
        return self.user(user) - self.item(item)

build = Pair
"""


def test_a_graph_takes_its_inputs_in_the_order_of_the_network(tmp_path: Path) -> None:
    (tmp_path / "pair.py").write_text(PAIR)
    model = open_model(tmp_path / "pair.py", trust=True)
    graph = capturing.capture(model, {"item": torch.randn(2, 3), "user": torch.randn(2, 6)})
    assert [value.name for value in graph.model.graph.inputs][:2] == ["user", "item"]


@pytest.mark.parametrize("scheme", ["fp8-e4m3-channel", "fp8-e4m3-tensor", *(
    pytest.param(scheme, marks=pytest.mark.slow) for scheme in ("int8-channel", "fp8-e4m3-channel-sfp16")
)])  # fmt: skip
def test_zeros_of_a_tied_table_are_zero_in_the_runtime(scheme: str, tmp_path: Path) -> None:
    """Their scale was 0, by which ONNX Runtime divided: the logit of the padding token was no number."""
    from tests.zoo.architectures import save

    save(tmp_path / "opt", "OPTForCausalLM")
    model, out = open_model(tmp_path / "opt"), tmp_path / "m.onnx"
    tables = [layer.name for layer in model.summary.stored if layer.kind == "embedding"]
    with torch.no_grad():
        for name in tables:
            rows = slice(None) if scheme.endswith("tensor") else slice(1, 4)
            model.body.network.get_parameter(model.summary.by_name[name].parameter)[rows] = 0
    made = quantize(model, Plan().assign(tables, weights=scheme, algorithm="rtn"))
    exporter("onnx", ["standard=true"]).export(made, model, out, silent)
    session, batch = session_of(out), model.sample(2)
    assert batch is not None
    ones = torch.ones_like(batch["input_ids"])  # the mask, which is none
    taken = {each.name: batch.get(each.name, ones).numpy() for each in session.get_inputs()}
    expected = made.bind(model).run(batch).detach().numpy()
    assert np.allclose(session.run(None, taken)[0], expected, atol=0.02)


def test_a_table_is_judged_by_the_rows_whose_scale_is_zero() -> None:
    """One row of zeros had a whole table unpacked, with two copies more."""
    import tracemalloc

    from workbench.deployment.onnx.codes import Codes
    from workbench.numerics.formats import parse_scheme

    weight = torch.randn(1, 512).repeat(20_000, 1)
    weight[7], weight[9] = 0, 0
    scheme = parse_scheme("int4-channel-sbf16")
    stored = scheme.encode(weight, scheme.fit(weight))
    stored.arrays["codes"][9] ^= 1  # codes that a scale too small for its format made nothing of
    tracemalloc.start()
    try:
        written = Codes(name="e", stored=stored).scales().load().view(np.uint16)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    expected = stored.arrays["scales"].reshape(-1).copy()
    assert not expected[7]
    expected[7] = 0x3F80
    assert np.array_equal(written, expected)

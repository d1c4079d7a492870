"""ONNX files open as a model and its plan: ONNX Runtime's own answers, its own quantizers' codes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import workbench as wb
from tests.models.onnx.graphs import FEATURES, NETWORKS, batch, exported, in_blocks, run, statically
from tests.models.onnx.made import numbers, onnxruntime_output, output_of, save
from workbench.deployment.exporters import exporter
from workbench.errors import ModelError, NotAModelError
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.numerics.formats import parse_scheme
from workbench.planning.plan import Plan, resolve
from workbench.progress import silent
from workbench.steps.files.first_session import start

pytest.importorskip("onnxruntime")

LAYERS = {"perceptron": 2, "convolutions": 4, "words": 6}


def _refusal(model: Model) -> str:
    from workbench.models.onnx.network import execution

    return execution(model.body.network).refusal  # type: ignore[attr-defined]


def _values(kind: str, model: Model, values: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return model.run({NETWORKS[kind][1]: values})


@pytest.mark.parametrize("old", (False, True), ids=("dynamo", "torchscript"))
@pytest.mark.parametrize("kind", sorted(NETWORKS))
def test_an_exported_network_runs_as_onnx_runtime_runs_it(kind: str, old: bool, tmp_path: Path) -> None:
    network, file = exported(kind, tmp_path / "m.onnx", old=old), tmp_path / "m.onnx"
    model, values = open_model(file), batch(kind)
    assert _values(kind, model, values).numpy() == pytest.approx(run(file, kind, values), rel=1e-4, abs=1e-5)
    assert len(model.summary.layers) == LAYERS[kind] and _refusal(model) == ""
    state = {name: tensor for name, tensor in network.state_dict().items() if name.endswith("weight")}
    for layer in model.summary.stored:
        if not old and kind != "convolutions" and layer.parameter in state:  # the exporter folds batch norms
            assert torch.equal(layer.tensor_of(model.weight(layer.name)), state[layer.parameter])
    output = model.run({NETWORKS[kind][1]: values})
    output.sum().backward()  # gradients flow, through operators that torch has
    assert all(model.body.network.get_parameter(each.parameter).grad is not None for each in model.summary.stored)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("signed", "per_channel", "weights", "inputs"),
    ((True, True, "int8-channel", "int8-tensor-asym"), (False, False, "int8-tensor", "int8-tensor-asym")),
)
@pytest.mark.parametrize("kind", sorted(NETWORKS))
def test_a_static_file_of_onnx_runtime_is_a_model_and_its_plan(
    kind: str, signed: bool, per_channel: bool, weights: str, inputs: str, tmp_path: Path
) -> None:
    exported(kind, tmp_path / "m.onnx")
    statically(kind, tmp_path / "m.onnx", tmp_path / "q.onnx", signed=signed, per_channel=per_channel)
    model = open_model(tmp_path / "q.onnx")
    session = start(model)
    plan = resolve(session.plan, model.summary.layers)
    chosen = {(parse_scheme(plan[layer.name].weights).name.removesuffix("-sfp32"), plan[layer.name].inputs)
              for layer in model.summary.stored if layer.kind != "embedding"}  # fmt: skip
    assert (weights, inputs) in chosen
    assert chosen <= {(weights, inputs), (weights, "int8-tensor"), ("int8-tensor", inputs)}
    for layer in model.summary.stored:
        stored = model.encoded(layer.name)
        if stored is not None:
            assert torch.equal(parse_scheme(stored.scheme).decode(stored), model.weight(layer.name).float())
    quantized = wb.quantize(model, session.plan, session=session)
    values = batch(kind)
    ours = _values(kind, quantized.bind(model), values).numpy()
    theirs = run(tmp_path / "q.onnx", kind, values)
    assert np.abs(ours - theirs).max() < 0.05 * np.abs(theirs).max()  # theirs rounds the outputs of products too


@pytest.mark.parametrize("kind", ("perceptron", "convolutions"))
def test_weights_that_the_graph_rounds_each_time_are_codes(kind: str, tmp_path: Path) -> None:
    import onnx
    from onnx import helper

    exported(kind, tmp_path / "m.onnx")
    document = onnx.load(str(tmp_path / "m.onnx"))
    constants = [helper.make_node("Constant", [], [each.name], value=each) for each in document.graph.initializer]
    nodes = [*constants, *document.graph.node]
    del document.graph.initializer[:], document.graph.node[:]
    document.graph.node.extend(nodes)  # as other exporters write them: ONNX Runtime's tool then rounds no weight itself
    onnx.save(document, str(tmp_path / "c.onnx"))
    statically(kind, tmp_path / "c.onnx", tmp_path / "q.onnx", signed=False, per_channel=False)
    model, values = open_model(tmp_path / "q.onnx"), batch(kind)
    assert len(model.summary.layers) == LAYERS[kind]
    assert {stored.scheme for layer in model.summary.stored if (stored := model.encoded(layer.name)) is not None}
    session = start(model)
    ours = _values(kind, wb.quantize(model, session.plan, session=session).bind(model), values).numpy()
    theirs = run(tmp_path / "q.onnx", kind, values)
    assert np.abs(ours - theirs).max() < 0.05 * np.abs(theirs).max()


@pytest.mark.parametrize("symmetric", (True, False))
@pytest.mark.parametrize("kind", ("words",))
def test_matmulnbits_opens_with_its_codes_and_exports_them_again(kind: str, symmetric: bool, tmp_path: Path) -> None:
    exported(kind, tmp_path / "m.onnx")
    in_blocks(tmp_path / "m.onnx", tmp_path / "q.onnx", symmetric=symmetric)
    model, values = open_model(tmp_path / "q.onnx"), batch(kind)
    theirs = run(tmp_path / "q.onnx", kind, values)
    assert _values(kind, model, values).numpy() == pytest.approx(theirs, rel=1e-4, abs=1e-5)
    session = start(model)
    schemes = {rule.assignment.weights.removesuffix("-sfp32") for rule in session.plan.rules}
    assert schemes == {"int4-g16" if symmetric else "int4-g16-asym"}
    exporter("onnx").export(wb.quantize(model, session.plan), model, tmp_path / "again.onnx", silent)
    again = open_model(tmp_path / "again.onnx")
    for layer in model.summary.stored:
        assert torch.equal(again.weight(layer.name), model.weight(layer.name))
    assert run(tmp_path / "again.onnx", kind, values) == pytest.approx(theirs, rel=1e-4, abs=1e-5)


def opened_with_its_plan(file: Path, scheme: str) -> None:
    """Require ONNX Runtime's answers, and a plan of ``scheme`` that changes no bit."""
    model, values = open_model(file), batch("words")
    assert _values("words", model, values).numpy() == pytest.approx(run(file, "words", values), rel=1e-4, abs=1e-5)
    session = start(model)
    assert {rule.assignment.weights for rule in session.plan.rules} == {scheme}
    bound = wb.quantize(model, session.plan).bind(model)
    assert all(torch.equal(bound.weight(layer.name), model.weight(layer.name)) for layer in model.summary.stored)


@pytest.mark.parametrize("symmetric", (True, False))
def test_blocks_that_rows_do_not_fill_are_groups(symmetric: bool, tmp_path: Path) -> None:
    exported("words", tmp_path / "m.onnx")
    in_blocks(tmp_path / "m.onnx", tmp_path / "q.onnx", symmetric=symmetric, block=128)
    opened_with_its_plan(tmp_path / "q.onnx", f"int4-g128{'' if symmetric else '-asym'}-sfp32")


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_zero_points_between_codes_are_offsets(tmp_path: Path) -> None:
    """As HQQ finds them."""
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import HQQWeightOnlyQuantConfig, MatMulNBitsQuantizer

    exported("words", tmp_path / "m.onnx")
    settings = HQQWeightOnlyQuantConfig(block_size=16, bits=4)
    quantizer = MatMulNBitsQuantizer(onnx.load(tmp_path / "m.onnx"), algo_config=settings)
    quantizer.process()
    onnx.save(quantizer.model.model, tmp_path / "q.onnx")
    opened_with_its_plan(tmp_path / "q.onnx", "int4-g16-asym-zfp32-sfp32")


def test_operators_of_one_kind_in_a_module_have_names_of_their_own(tmp_path: Path) -> None:
    """ONNX Runtime refuses a name that two nodes have; torch's exporter notes the module, from which we name them."""
    import onnx
    from onnx import helper

    scopes = helper.make_node("Add", [], []).metadata_props
    scopes.add(key="pkg.torch.onnx.name_scopes", value="['', 'inner', 'add']")
    nodes = [helper.make_node("MatMul", ["x", "inner.weight"], ["h"], name="node_0")]
    nodes += [helper.make_node("Add", ["h", "one"], ["k"], name="node_1"),
              helper.make_node("Add", ["k", "one"], ["y"], name="node_2")]  # fmt: skip
    for node in nodes:
        node.metadata_props.extend(scopes)
    tensors = {"inner.weight": numbers(FEATURES, 5), "one": np.ones(1, np.float32)}
    file = save(tmp_path / "m.onnx", nodes, {"x": (1, ["n", FEATURES])}, ["y"], tensors, opset=21)
    assert [each.name for each in onnx.load(file).graph.node] == ["node_0", "node_1", "node_2"]
    values = {"x": batch("perceptron").numpy()}
    assert output_of(open_model(file), values) == pytest.approx(onnxruntime_output(file, values), rel=1e-5, abs=1e-6)


def test_calibrate_score_plan_and_export(tmp_path: Path) -> None:
    exported("words", tmp_path / "m.onnx")
    np.save(tmp_path / "tokens.npy", np.random.default_rng(0).integers(0, 40, (16, 12)))
    model = wb.open(tmp_path / "m.onnx")
    session = wb.calibrate(model, tmp_path / "tokens.npy", samples=16)
    assert {name for name, tap in session.statistics if tap == "input"} >= {"q", "k", "v", "o"}
    assert set(session.curvature) >= {"q", "k", "v", "o"}
    plan = Plan().assign(["q", "k", "v", "o"], weights="int8-channel", inputs="int8-tensor-asym", algorithm="rtn")
    quantized = wb.quantize(model, plan, session=wb.calibrate(model, tmp_path / "tokens.npy", samples=16))
    values = batch("words")
    exporter("onnx").export(quantized, model, tmp_path / "out.onnx", silent)
    ours, theirs = _values("words", quantized.bind(model), values).numpy(), run(tmp_path / "out.onnx", "words", values)
    assert np.abs(ours - theirs).max() < 2e-2 * np.abs(theirs).max()


def test_operators_that_torch_has_not_leave_the_network_without_gradients(tmp_path: Path) -> None:
    import onnx
    from onnx import helper, numpy_helper

    weight = numpy_helper.from_array(np.random.default_rng(0).normal(size=(32, 8)).astype(np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Celu", ["y"], ["z"])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, ["n", 32])], [helper.make_tensor_value_info("z", 1, None)],
        [weight],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    model = open_model(tmp_path / "m.onnx")
    assert "Celu" in _refusal(model)
    np.savez(tmp_path / "data.npz", inputs=np.random.default_rng(1).normal(size=(16, 32)).astype(np.float32))
    session = wb.calibrate(model, tmp_path / "data.npz", samples=16)
    assert not session.curvature and ("w", "input") in session.statistics


@pytest.mark.parametrize("beside", ("m.onnx_data", "weights", "parts/a.bin"))
@pytest.mark.parametrize("meanwhile", (False, True))
def test_a_change_of_the_data_beside_a_graph_is_told(
    beside: str, meanwhile: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import onnx

    exported("perceptron", tmp_path / "whole.onnx")
    folder = tmp_path / "model"
    (folder / beside).parent.mkdir(parents=True)
    onnx.save(onnx.load(str(tmp_path / "whole.onnx")), str(folder / "m.onnx"), save_as_external_data=True,
              location=beside, size_threshold=0)  # fmt: skip
    model = open_model(folder / "m.onnx")
    plan = Plan().assign([layer.name for layer in model.summary.stored], weights="int8-channel", algorithm="rtn")
    session = wb.start(model)
    wb.quantize(model, plan, session=session)

    def change() -> None:
        content = bytearray((folder / beside).read_bytes())
        content[-4:] = b"\1\1\1\1"
        with (folder / beside).open("r+b") as file:
            file.write(content)

    if meanwhile:
        read = type(model).weight
        monkeypatch.setattr(type(model), "weight", lambda *args: (change(), read(*args))[1])
    else:
        change()
    with pytest.raises(ModelError, match=f"{beside} (has changed since the model was opened|changed while)"):
        wb.quantize(model, plan, session=session)


def _save(folder: Path, change: Any) -> Path:
    import onnx

    exported("perceptron", folder / "m.onnx")
    model = onnx.load(str(folder / "m.onnx"))
    change(model)
    (folder / "h.onnx").write_bytes(model.SerializeToString())
    return folder / "h.onnx"


def _outside(location: str) -> Any:
    def change(model: Any) -> None:
        tensor = next(each for each in model.graph.initializer if len(each.dims) == 2)
        tensor.ClearField("raw_data")
        tensor.data_location = 1
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", location

    return change


@pytest.mark.parametrize(
    "location", ("/etc/passwd", "../secret.bin", "a/../../secret.bin", "C:\\x", "", "link.bin", "none.bin")
)
def test_tensors_outside_the_folder_are_refused(location: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(b"\0" * 65536)
    os.symlink(tmp_path / "secret.bin", folder / "link.bin")
    with pytest.raises(NotAModelError, match="outside its folder|out of its folder|cannot be read"):
        open_model(_save(folder, _outside(location)))


def test_tensors_in_the_same_bytes_are_not_read_without_end(tmp_path: Path) -> None:
    """Each of them is read: a file of 8 MB that is named often enough took minutes."""

    def change(model: Any) -> None:
        _outside("d.bin")(model)
        whole = next(each for each in model.graph.initializer if each.data_location == 1)
        whole.dims[:] = [1024, 1024]
        for number in range(100):
            model.graph.initializer.add().CopyFrom(whole)
            model.graph.initializer[-1].name = f"t{number}"

    (tmp_path / "d.bin").write_bytes(bytes(1 << 22))
    with pytest.raises(NotAModelError, match="more than 64 times"):
        open_model(_save(tmp_path, change))


def test_data_beside_the_graph_are_read_and_bounded(tmp_path: Path) -> None:
    import onnx

    exported("perceptron", tmp_path / "m.onnx")
    model = onnx.load(str(tmp_path / "m.onnx"))
    onnx.save(model, str(tmp_path / "e.onnx"), save_as_external_data=True, location="e.data", size_threshold=0)
    whole, parts = open_model(tmp_path / "m.onnx"), open_model(tmp_path / "e.onnx")
    assert whole.summary.fingerprint == parts.summary.fingerprint
    with (tmp_path / "e.data").open("r+b") as stream:
        stream.truncate(100)
    with pytest.raises(NotAModelError, match="fetch it again"):
        open_model(tmp_path / "e.onnx")


def _foreign(model: Any) -> None:
    model.graph.node[0].domain = "evil.custom"


def _wrong_size(model: Any) -> None:
    model.graph.initializer[0].dims[0] += 1


def _unmade(model: Any) -> None:
    model.graph.node[-1].input[0] = "nowhere"


@pytest.mark.parametrize(
    ("change", "message"),
    ((_foreign, "custom operator library"), (_wrong_size, "bytes, not"), (_unmade, "no node before it computes")),
)
def test_hostile_graphs_are_refused_in_one_line(change: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(NotAModelError, match=message) as caught:
        open_model(_save(tmp_path, change))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", (b"", b"\x08\x0a", b"no protobuf at all", os.urandom(512)))
def test_what_is_no_graph_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(NotAModelError):
        open_model(tmp_path / "m.onnx")

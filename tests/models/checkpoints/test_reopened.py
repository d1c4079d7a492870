"""What was exported opens again: the same plan, the same codes, the same answers, and the same bytes when it is
exported once more."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.deployment.exporters.llamas import folder_of
from workbench.deployment.checkpoints import write
from workbench.deployment.exporters import exporter
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.planning.plan import Plan, resolve
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.quantization.quantized_model import QuantizedModel
from workbench.steps.files.first_session import as_stored

SCHEMES = {
    "gguf": ("q4_0", "q8_0", "q4_k", "mxfp4-gguf"),
    "compressed-tensors": ("int4-g32", "int8-channel", "fp8-e4m3-channel", "mxfp4", "int4-g64-asym", "nvfp4"),
    "gptq": ("int4-g64",),
    "mlx": ("int4-g32", "int4-g64-asym-zfp16", "mxfp4", "mxfp8-e4m3", "int3-g32-sbf16", "int8-g64"),
    "torchao": ("int4-g32", "int4-g64-asym", "int8-channel", "fp8-e4m3-channel", "fp8-e4m3-tensor", "int6-channel-asym",
                "int2-g256"),
    "safetensors": ("int4-g32", "q4_k", "nf4-b64", "nvfp4", "int8-channel-asym", "iq4_xs", "int4-g64-asym-zfp16"),
}  # fmt: skip
NEEDS = {"gguf": "gguf", "torchao": "torchao", "compressed-tensors": "compressed_tensors"}
FILES = {"gguf": "again.gguf", "safetensors": "model.safetensors"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return open_model(folder_of("qwen3", tmp_path_factory.mktemp("qwen3"), hidden_size=256, intermediate_size=512,
                                num_attention_heads=8))  # fmt: skip


def planned(model: Model, schemes: tuple[str, ...]) -> Plan:
    plan = Plan()
    for number, layer in enumerate(layer for layer in model.summary.stored if layer.kind == "linear"):
        plan = plan.assign([layer.name], weights=schemes[number % len(schemes)], algorithm="rtn")
    return plan


def exported(kind: str, model: Model, plan: Plan, place: Path) -> tuple[QuantizedModel, Path]:
    quantized, out = quantize(model, plan), place / FILES.get(kind, "out")
    exporter(kind).export(quantized, model, out, silent)
    return quantized, out


def with_settings(model: Model, out: Path) -> Path:
    """Put config.json and the tokenizer beside a packed file."""
    for file in Path(model.summary.source.path).glob("*.json"):
        shutil.copy(file, out.parent / file.name)
    return out.parent


def require_same(first: QuantizedModel, second: QuantizedModel) -> None:
    assert first.tensors.keys() == second.tensors.keys()
    for name, stored in first.tensors.items():
        again = second.tensors[name]
        assert (again.scheme, again.shape) == (stored.scheme, stored.shape), name
        for part, values in stored.arrays.items():
            assert values.tobytes() == again.arrays[part].tobytes(), name


@pytest.mark.parametrize("kind", SCHEMES)
def test_what_was_exported_opens_with_its_plan_and_its_codes(
    kind: str, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "is_as_stored", lambda *_: False)  # what is encoded again is compared, not a copy
    if kind in NEEDS:
        pytest.importorskip(NEEDS[kind])
    plan = planned(model, SCHEMES[kind])
    quantized, out = exported(kind, model, plan, tmp_path)
    again = open_model(with_settings(model, out) if kind == "safetensors" else out)
    assert again.summary.cannot_run is None and again.notes == ()
    read = as_stored(again, Plan())
    expected, actual = resolve(plan, model.summary.layers), resolve(read, again.summary.layers)
    assert {name: each.weights for name, each in actual.items()} == {
        name: each.weights for name, each in expected.items()
    }
    second = quantize(again, read)
    require_same(quantized, second)
    ids = torch.arange(12)[None]
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    assert torch.equal(quantized.bind(model).run(batch), again.run(batch))
    if kind != "safetensors":  # which names the model that it was made of
        copy = tmp_path / f"twice-{out.name}"
        exporter(kind).export(second, again, copy, silent)
        weights = [file.name for file in sorted(out.glob("*.safetensors"))] or ["."]
        assert all((out / name).read_bytes() == (copy / name).read_bytes() for name in weights)


def test_a_packed_file_beside_the_settings_of_a_quantized_original_opens(model: Model, tmp_path: Path) -> None:
    """What config.json says is how the original was stored."""
    _, out = exported("gptq", model, planned(model, ("int4-g32",)), tmp_path)
    original = open_model(out)
    (tmp_path / "packed").mkdir()
    packed, file = exported("safetensors", original, as_stored(original, Plan()), tmp_path / "packed")
    again = open_model(with_settings(original, file))
    require_same(packed, quantize(again, as_stored(again, Plan())))


def test_a_packed_file_alone_has_the_layers_and_no_network(tmp_path: Path) -> None:
    gpt2 = open_model(folder_of("gpt2", tmp_path / "gpt2"))
    plan = planned(gpt2, ("int4-g32", "nf4-b64", "int8-channel-asym"))
    quantized, out = exported("safetensors", gpt2, plan, tmp_path)
    again = open_model(out)
    assert again.summary.cannot_run is not None and "open the folder" in again.summary.cannot_run
    assert again.summary.by_name.keys() == gpt2.summary.by_name.keys()
    for layer in again.summary.layers:
        own = gpt2.summary.by_name[layer.name]
        assert (layer.kind, layer.matrix, layer.axes) == (own.kind, own.matrix, own.axes)
        assert torch.equal(again.weight(layer.name).float(), quantized.bind(gpt2).weight(layer.name).float())
    require_same(quantized, quantize(again, as_stored(again, Plan())))


@pytest.mark.parametrize("weights, inputs, ranged", [
    ("int8-channel", "int8-token", False), ("int8-channel", "int8-tensor-asym", True), ("nvfp4", "nvfp4", True),
    ("fp8-e4m3-channel", "fp8-e4m3-tensor", True), ("int4-g32", "int8-token-asym", False),
])  # fmt: skip
def test_inputs_of_compressed_tensors_come_back(
    weights: str, inputs: str, ranged: bool, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("compressed_tensors")
    monkeypatch.setattr(write, "is_as_stored", lambda *_: False)
    from workbench.numerics.ranges import Range

    layers = [layer.name for layer in model.summary.stored if layer.kind == "linear"]
    plan = Plan().assign(layers, weights=weights, inputs=inputs, algorithm="rtn")
    bounds = {name: (-1.5 - number / 7, 2.0 + number / 3) for number, name in enumerate(layers)}
    ranges = {
        (name, "input"): Range(low=low, high=high, method="manual", clipped=0.0)
        for name, (low, high) in bounds.items() if ranged
    }  # fmt: skip
    quantized = quantize(model, plan, ranges=ranges)
    exporter("compressed-tensors").export(quantized, model, tmp_path / "out", silent)
    again = open_model(tmp_path / "out")
    assert again.notes == ()
    assert {as_stored(again, Plan()).of(name).inputs for name in layers} == {inputs}
    stated = {name: again.encoded_range(name) for name in layers}
    if not ranged:
        assert set(stated.values()) == {None}
        return
    again_ranges = {
        (name, "input"): Range(low=pair[0], high=pair[1], method="manual", clipped=0.0)
        for name, pair in stated.items() if pair is not None
    }  # fmt: skip
    second = quantize(again, as_stored(again, Plan()), ranges=again_ranges)
    exporter("compressed-tensors").export(second, again, tmp_path / "twice", silent)
    first, repeated = ((tmp_path / place / "model.safetensors").read_bytes() for place in ("out", "twice"))
    assert first == repeated


def changed(folder: Path, **settings: Any) -> Path:
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] |= settings
    (folder / "config.json").write_text(json.dumps(config))
    return folder


STATIC = {"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": False, "symmetric": True}


def test_code_of_the_folder_is_never_run(model: Model, tmp_path: Path) -> None:
    """As DeepSeek-V3's folders have it: transformers knows the network, or the weights open alone."""
    _, out = exported("compressed-tensors", model, planned(model, ("int4-g32",)), tmp_path)
    config = json.loads((out / "config.json").read_text())
    (out / "modeling.py").write_text("raise SystemExit('ran')")
    for architecture in ("Qwen3ForCausalLM", "OwnForCausalLM"):
        named = {**config, "architectures": [architecture], "auto_map": {"AutoModelForCausalLM": "modeling.Own"}}
        (out / "config.json").write_text(json.dumps(named))
        again = open_model(out)
        said = (*again.notes, again.summary.cannot_run or "")
        assert any("auto_map" in each and "never run" in each for each in said)
        assert (again.summary.cannot_run is None) is (architecture == "Qwen3ForCausalLM")


def test_a_cache_that_no_plan_can_say_is_noted(model: Model, tmp_path: Path) -> None:
    pytest.importorskip("compressed_tensors")
    _, out = exported("compressed-tensors", model, planned(model, ("int4-g32",)), tmp_path)
    again = open_model(changed(out, kv_cache_scheme=STATIC))
    assert len(again.notes) == 1
    assert "keys and values as float of 8 bits, one calibrated scale for each tensor" in again.notes[0]
    assert not any(again.encoded_cache(layer.name) for layer in again.summary.layers)


def test_a_cache_alone_opens_again(model: Model, tmp_path: Path) -> None:
    pytest.importorskip("compressed_tensors")
    makers = [layer.name for layer in model.summary.layers if layer.name.endswith(("k_proj", "v_proj"))]
    plan = Plan().assign(makers, cache="fp8-e4m3-token")
    _, out = exported("compressed-tensors", model, plan, tmp_path)
    again = open_model(out)
    assert again.notes == ()
    actual = resolve(as_stored(again, Plan()), again.summary.layers)
    assert {name for name, each in actual.items() if each.cache == "fp8-e4m3-token"} == set(makers)


def test_inputs_that_no_plan_can_say_are_noted(model: Model, tmp_path: Path) -> None:
    pytest.importorskip("compressed_tensors")
    _, out = exported("compressed-tensors", model, planned(model, ("int8-channel",)), tmp_path)
    config = json.loads((out / "config.json").read_text())
    for group in config["quantization_config"]["config_groups"].values():
        group["input_activations"] = STATIC
    again = open_model(changed(out, config_groups=config["quantization_config"]["config_groups"]))
    assert "round the inputs of 15 layers (lm_head)" in again.notes[0]


def again_as_stored(kind: str, folder: Path, out: Path, plan: Plan | None = None, **options: str) -> dict[str, Any]:
    opened = open_model(folder)
    quantized = quantize(opened, as_stored(opened, plan or Plan()))
    settings = [f"{option}={value}" for option, value in options.items()]
    exporter(kind, settings).export(quantized, opened, out, silent)
    read: dict[str, Any] = json.loads((out / "config.json").read_text())["quantization_config"]
    return read


@pytest.mark.parametrize("kind, scheme", [
    ("compressed-tensors", "nvfp4"), ("gptq", "int4-g64"), ("mlx", "mxfp4"), ("torchao", "int8-channel"),
])  # fmt: skip
def test_a_checkpoint_by_its_own_plan_is_the_same_to_the_byte(
    kind: str, scheme: str, model: Model, tmp_path: Path
) -> None:
    """Also what no plan says: a scale for the tensor that is no float's inverse, a cache with calibrated scales."""
    if kind in NEEDS:
        pytest.importorskip(NEEDS[kind])
    _, out = exported(kind, model, planned(model, (scheme,)), tmp_path)
    if kind == "compressed-tensors":
        changed(out, kv_cache_scheme=STATIC)
        tensors = load_file(out / "model.safetensors")
        inverse = torch.tensor([1.9000002])
        assert not any(1 / (1 / inverse + step * 2**-24) == inverse for step in (-1, 0, 1))
        tensors["model.layers.0.mlp.up_proj.weight_global_scale"] = inverse
        save_file(tensors, out / "model.safetensors", {"format": "pt"})
    (out / "config.json").write_text(json.dumps(json.loads((out / "config.json").read_text()) | {"stated": 1}))
    again_as_stored(kind, out, tmp_path / "again")
    for file in (out / "config.json", *out.glob("*.safetensors")):
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes(), file.name


def test_a_changed_layer_or_format_is_written_anew(model: Model, tmp_path: Path) -> None:
    _, out = exported("gptq", model, planned(model, ("int4-g64",)), tmp_path)
    layer = "model.layers.0.mlp.up_proj"
    opened = open_model(out)
    plan = as_stored(opened, Plan()).assign([layer], weights="int8-g64")
    exporter("gptq").export(quantize(opened, plan), opened, tmp_path / "edited", silent)
    assert load_file(tmp_path / "edited" / "model.safetensors")[f"{layer}.qweight"].shape == (64, 512)
    assert again_as_stored("gptq", out, tmp_path / "v2", checkpoint_format="gptq_v2")["checkpoint_format"] == "gptq_v2"
    assert again_as_stored("gptq", tmp_path / "v2", tmp_path / "v2-again")["checkpoint_format"] == "gptq_v2"
    assert (
        again_as_stored("gptq", tmp_path / "v2", tmp_path / "v1", checkpoint_format="gptq")["checkpoint_format"]
        == "gptq"
    )


def test_a_changed_range_is_written_anew(model: Model, tmp_path: Path) -> None:
    pytest.importorskip("compressed_tensors")
    from workbench.numerics.ranges import Range

    layer = "model.layers.0.mlp.up_proj"
    plan = Plan().assign([layer], weights="fp8-e4m3-channel", inputs="fp8-e4m3-tensor", algorithm="rtn")
    key, folder = (layer, "input"), tmp_path / "1.0"
    for source, high in ((model, 1.0), (open_model, 1.0), (open_model, 2.0)):
        opened = source if isinstance(source, Model) else source(folder)
        ranges = {key: Range(low=-high, high=high, method="manual", clipped=0.0)}
        out = tmp_path / str(high) if isinstance(source, Model) or high != 1.0 else tmp_path / "again"
        exporter("compressed-tensors").export(quantize(opened, plan, ranges=ranges), opened, out, silent)
    scales = {place: load_file(tmp_path / place / "model.safetensors")[f"{layer}.input_scale"] for place in
              ("1.0", "again", "2.0")}  # fmt: skip
    assert torch.equal(scales["1.0"], scales["again"]) and torch.allclose(scales["2.0"], 2 * scales["1.0"])

"""GPTQ folders: codes where AutoGPTQ's own loops put them, the evaluated values, import again, refusals by layer."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tests.deployment.exporters.llamas import folder_of
from workbench.deployment.exporters import Refuses, exporter
from workbench.deployment.tensors import planned
from workbench.errors import ExportError
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.numerics.formats import parse_scheme
from workbench.planning.plan import Plan, resolve
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.steps.files.export import applied
from workbench.steps.files.first_session import as_stored

Q, K, V = (f"model.layers.0.self_attn.{name}_proj" for name in "qkv")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return open_model(folder_of("llama", tmp_path_factory.mktemp("llama")))


def packed_by_loops(codes: np.ndarray, bits: int) -> np.ndarray:
    """Return codes ``[inputs, outputs]`` as AutoGPTQ packs them: down the columns, 3 bits over three words."""
    out = np.zeros((codes.shape[0] * bits // 32, codes.shape[1]), np.uint64)
    for place in range(codes.shape[0]):
        for bit in range(bits):
            word, at = divmod(place * bits + bit, 32)
            out[word] |= ((codes[place].astype(np.uint64) >> np.uint64(bit)) & np.uint64(1)) << np.uint64(at)
    return out.astype(np.uint32).view(np.int32)


@pytest.mark.parametrize("name", ["int4-g32", "int4-g32-asym", "int3-g32", "int8-channel-sfp16", "int2-g16-asym"])
@pytest.mark.parametrize("version", ["gptq", "gptq_v2"])
def test_tensors_are_those_of_autogptq_and_come_back(name: str, version: str, model: Model, tmp_path: Path) -> None:
    plan = Plan().assign([Q], weights=name, algorithm="rtn")
    quantized = quantize(model, plan)
    out = tmp_path / "out"
    exporter("gptq", [f"checkpoint_format={version}"]).export(quantized, model, out, silent)
    tensors, scheme = load_file(out / "model.safetensors"), parse_scheme(name)
    codes, scales, shifts = scheme.unpacked(quantized.tensors[Q])
    bits = scheme.element.bits
    assert np.array_equal(tensors[f"{Q}.qweight"].numpy(), packed_by_loops(codes.numpy().T, bits))
    zeros = np.full(scales.shape, 2 ** (bits - 1)) if shifts is None else shifts.numpy().astype(int)
    expected = packed_by_loops(zeros - (version == "gptq"), bits).T
    assert np.array_equal(tensors[f"{Q}.qzeros"].numpy(), expected)
    assert torch.equal(tensors[f"{Q}.scales"].float(), scales.T)
    width = 64 // scales.shape[1]
    assert tensors[f"{Q}.g_idx"].tolist() == [column // width for column in range(64)]
    again = open_model(out)
    assert torch.equal(again.weight(Q), quantized.bind(model).weight(Q).float())
    planned = as_stored(again, Plan())
    assert resolve(planned, again.summary.layers)[Q].weights == scheme.name
    writer = exporter("gptq", [f"checkpoint_format={version}"])
    writer.export(quantize(again, planned), again, tmp_path / "2", silent)
    second = load_file(tmp_path / "2" / "model.safetensors")
    assert second.keys() == tensors.keys() and all(torch.equal(second[key], tensors[key]) for key in tensors)


def test_mixed_widths_are_said_by_dynamic_rules(model: Model, tmp_path: Path) -> None:
    plan = Plan().assign(["model.layers.*"], weights="int4-g32", algorithm="rtn")
    plan = plan.assign([K], weights="int8-g32").assign([V], weights="keep")
    exporter("gptq").export(quantize(model, plan), model, tmp_path / "out", silent)
    config = json.loads((tmp_path / "out" / "config.json").read_text())["quantization_config"]
    assert (config["bits"], config["group_size"], config["sym"]) == (4, 32, True)
    key = K.replace(".", r"\.")
    assert config["dynamic"][f"+:^{key}$"] == {"bits": 8, "group_size": 32, "sym": True}
    assert config["dynamic"]["-:^" + V.replace(".", r"\.") + "$"] == {}
    (chosen,) = config["modules_in_block_to_quantize"]  # optimum compares the ends of names, vLLM any part
    linear = [layer.name for layer in model.summary.layers if layer.name.startswith("model.layers.")]
    for names in ({each for each in linear if any(each.endswith(part) for part in chosen)},
                  {each for each in linear if any(part in each for part in chosen)}):  # fmt: skip
        assert names == {*linear} - {V}
    again = as_stored(open_model(tmp_path / "out"), Plan())
    assert again.of(K).weights == "int8-g32" and again.of(V).weights == "keep"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, []),
        ({K: "keep", Q: "keep", V: "keep"}, []),
        ({"*.layers.1.mlp.down_proj": "int8-g32"}, [("transformers", "model.layers.1.mlp.down_proj")]),
        ({"*.down_proj": "int4-g16"}, [("transformers", "model.layers.0.mlp.down_proj, model.layers.1.mlp.down_proj")]),
        ({"lm_head": "int4-g32"}, [("transformers", "lm_head")]),
        ({K: "int8-g32"}, [("transformers", K), ("vLLM", f"{Q}, {K}, {V}")]),
        ({K: "keep"}, [("vLLM", f"{Q}, {K}, {V}")]),
    ],
)
def test_who_does_not_load_a_mix_is_said(changed: dict[str, str], said: list[tuple[str, str]], tmp_path: Path) -> None:
    model = open_model(folder_of("llama", tmp_path / "llama", tie_word_embeddings=False))
    plan = Plan().assign(["model.layers.*"], weights="int4-g32", algorithm="rtn")
    for pattern, scheme in changed.items():
        plan = plan.assign([pattern], weights=scheme, algorithm="rtn")
    quantized, _ = applied(model, plan, "gptq", tmp_path / "out", session=None, settings=(), progress=silent)
    notes = [note for note in quantized.notes if not note.startswith("the tensors take")]
    assert len(notes) == len(said)
    assert all(who in note and names in note for note, (who, names) in zip(notes, said, strict=True))


def test_what_gptq_cannot_hold_is_named_by_layer(model: Model, tmp_path: Path) -> None:
    plan = Plan().assign([Q], weights="int8-channel").assign([K], weights="int5-g32")
    plan = plan.assign([V], weights="fp8-e4m3-channel").assign(["lm_head"], weights="int4-g32", inputs="int8-token")
    with pytest.raises(ExportError) as refused:
        exporter("gptq").export(quantize(model, plan), model, tmp_path / "out", silent)
    for part in (f"{Q}: GPTQ stores float16 scales; take int8-channel-sfp16",
                 f"{K}: GPTQ stores integers of 2, 3, 4, 8", f"{V}: GPTQ stores integers, not",
                 "lm_head: GPTQ checkpoints quantize weights alone"):  # fmt: skip
        assert part in str(refused.value)
    assert not os.listdir(tmp_path)
    with pytest.raises(ExportError, match="checkpoint_format is auto, gptq, gptq_v2, not 'v3'"):
        exporter("gptq", ["checkpoint_format=v3"]).export(quantize(model, Plan()), model, tmp_path / "out", silent)


def test_a_zero_point_of_zero_needs_the_second_format(tmp_path: Path) -> None:
    import transformers

    folder = folder_of("llama", tmp_path / "llama")
    network = transformers.AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        network.get_submodule(Q).weight.abs_()
    network.save_pretrained(folder)
    positive = open_model(folder)
    quantized = quantize(positive, Plan().assign([Q], weights="int4-g32-asym", algorithm="rtn"))
    with pytest.raises(ExportError, match="zero point of 0.*checkpoint_format=gptq_v2"):
        exporter("gptq", ["checkpoint_format=gptq"]).export(quantized, positive, tmp_path / "out", silent)
    assert os.listdir(tmp_path) == ["llama"]
    for options in (["checkpoint_format=gptq_v2"], ["checkpoint_format=auto"], []):
        exporter("gptq", options).export(quantized, positive, tmp_path / "out", silent)
        config = json.loads((tmp_path / "out" / "config.json").read_text())["quantization_config"]
        assert config["checkpoint_format"] == "gptq_v2"
        assert torch.equal(open_model(tmp_path / "out").weight(Q), quantized.bind(positive).weight(Q).float())
    either = quantize(positive, Plan().assign([K], weights="int4-g32-asym", algorithm="rtn"))
    exporter("gptq").export(either, positive, tmp_path / "out", silent)
    config = json.loads((tmp_path / "out" / "config.json").read_text())["quantization_config"]
    assert config["checkpoint_format"] == "gptq"


def test_the_reason_of_a_router_is_true(tmp_path: Path) -> None:
    pytest.importorskip("compressed_tensors")
    mixture = open_model(folder_of("qwen3moe", tmp_path / "moe", num_hidden_layers=1))
    (router,) = (layer for layer in mixture.summary.layers if layer.name.endswith("mlp.gate.weight"))
    plan = Plan().assign([router.name], weights="int8-channel-sfp16", algorithm="rtn")
    assert router.axes == (0, 1)
    for kind in ("gptq", "compressed-tensors", "mlx", "torchao"):
        chosen = exporter(kind)
        assert isinstance(chosen, Refuses)
        with pytest.raises(ExportError, match="weights of other modules, such as routers") as refused:
            chosen.refuse(planned(plan, mixture, {}), mixture)
        assert "inputs x outputs" not in str(refused.value)

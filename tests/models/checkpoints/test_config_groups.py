"""Config groups of compressed-tensors that overlap, in folders of the library: each module has what it gives it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.deployment.exporters.llamas import folder_of
from workbench.models.sources import open_model
from workbench.planning.plan import Plan, resolve
from workbench.steps.files.first_session import as_stored

transformers = pytest.importorskip("transformers")
pytest.importorskip("compressed_tensors", reason="compressed-tensors is not installed")

INT4 = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": True}
INT8 = {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True}
INT3 = {"num_bits": 3, "type": "int", "strategy": "channel", "symmetric": True}
MX = {"type": "float", "strategy": "group", "group_size": 32, "symmetric": True, "scale_dtype": torch.uint8}
GROUPS = (
    ("classes before expressions", [(["Linear"], INT4), (["re:.*down_proj$"], INT8)]),
    ("expressions before names", [(["re:.*layers.0.*"], INT4), (["model.layers.0.mlp.down_proj"], INT8)]),
    ("a class of tables", [(["Embedding"], INT8), (["Linear"], INT4)]),
    (
        "microscaling",
        [
            (["re:.*(q|k|v)_proj"], {**MX, "num_bits": 4}),
            (["re:.*o_proj"], {**MX, "num_bits": 6}),
            (["Linear"], {**MX, "num_bits": 8}),
        ],
    ),
    ("three of a kind", [(["re:.*mlp.*"], INT3), (["re:.*up_proj"], INT8), (["Linear"], INT4)]),
)


def library_folder(groups: list[tuple[list[str], dict[str, Any]]], source: Path, out: Path) -> dict[str, torch.Tensor]:
    """Quantize with the library and write what it packed; returns the weights that it decodes, by module."""
    from compressed_tensors.compressors import ModelCompressor, decompress_module
    from compressed_tensors.quantization import QuantizationConfig, apply_quantization_config
    from compressed_tensors.quantization.utils import calculate_qparams

    network = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    settings = {
        f"group_{number}": {"targets": targets, "weights": weights} for number, (targets, weights) in enumerate(groups)
    }
    config = QuantizationConfig.model_validate({"config_groups": settings, "ignore": ["lm_head"]})
    apply_quantization_config(network, config)
    packed = {name: each for name, each in network.named_modules() if hasattr(each, "weight_scale")}
    for module in packed.values():
        args = module.quantization_scheme.weights
        blocks = module.weight.detach().reshape(len(module.weight), -1, args.group_size or module.weight.shape[1])
        scale, _ = calculate_qparams(blocks.amin(-1), blocks.amax(-1), args)
        module.weight_scale.data = scale
    compressor = ModelCompressor.from_pretrained_model(network)
    compressor.compress_model(network)
    network.save_pretrained(out)
    compressor.update_config(str(out))
    for module in packed.values():
        decompress_module(module)
    return {name: module.weight.detach() for name, module in packed.items()}


@pytest.mark.parametrize("groups", [groups for _, groups in GROUPS], ids=[name for name, _ in GROUPS])
def test_every_module_has_the_group_that_the_library_gives_it(
    groups: list[tuple[list[str], dict[str, Any]]], tmp_path: Path
) -> None:
    source = folder_of("llama", tmp_path / "llama", intermediate_size=96, tie_word_embeddings=False)
    values = library_folder(groups, source, tmp_path / "out")
    model = open_model(tmp_path / "out")
    planned = resolve(as_stored(model, Plan()), model.summary.layers)
    assert {name for name, each in planned.items() if each.weights != "keep"} == values.keys()
    for name, value in values.items():
        assert torch.equal(model.weight(name), value), name

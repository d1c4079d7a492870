"""Graphs and the length of the text: frequencies that are chosen by it, graphs of one length, tables of tokens."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

import workbench

for package in ("onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(package)

import onnxruntime  # noqa: E402

from tests.deployment.exporters.llamas import folder_of  # noqa: E402
from tests.deployment.onnx.test_plans import apart  # noqa: E402
from workbench.deployment.exporters import exporter  # noqa: E402
from workbench.deployment.proof.onnx_proof import run  # noqa: E402
from workbench.errors import ExportError  # noqa: E402
from workbench.models.sources import open_model  # noqa: E402
from workbench.planning.plan import Plan  # noqa: E402
from workbench.progress import silent  # noqa: E402
from workbench.quantization.quantize import quantize  # noqa: E402
from workbench.steps.files.export import applied  # noqa: E402

HALF, ORIGINAL = 8, 16
ROPE = {
    "rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": ORIGINAL, "factor": 4.0,
    "short_factor": [1 + at / 10 for at in range(HALF)], "long_factor": [2 + at / 2 for at in range(HALF)],
}  # fmt: skip


@pytest.mark.parametrize("opened_first", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_longrope_chooses_by_length_in_the_graph_as_in_the_network(opened_first: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    transformers.Phi3ForCausalLM(transformers.Phi3Config(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=64, original_max_position_embeddings=ORIGINAL, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, initializer_range=0.3, rope_parameters=ROPE,
    )).save_pretrained(tmp_path)  # fmt: skip
    model = open_model(tmp_path)
    batches = {length: _batch(length) for length in (ORIGINAL - 4, ORIGINAL, ORIGINAL + 1, 40)}
    before = {length: model.run(batch) for length, batch in batches.items()} if opened_first else {}
    quantized = quantize(model, Plan().assign(["model.layers.0.mlp.down_proj"], weights="int8-g32", algorithm="rtn"))
    exporter("onnx").export(quantized, model, tmp_path / "m.onnx", silent)
    for length, batch in batches.items():
        assert apart(quantized, model, batch, tmp_path / "m.onnx") < 1e-5, length
        assert not before or torch.equal(model.run(batch), before[length])
    exporter("onnx-genai").export(quantized, model, tmp_path / "genai", silent)
    long = model.run(batches[40])[:, : ORIGINAL - 4]
    assert not torch.allclose(long, model.run({name: each[:, : ORIGINAL - 4] for name, each in batches[40].items()}))


def test_dynamic_frequencies_are_those_of_the_trained_lengths(tmp_path: Path) -> None:
    rope = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0}
    folder = folder_of("llama", tmp_path / "llama", max_position_embeddings=ORIGINAL, rope_parameters=rope)
    model = open_model(folder)
    short, long = _batch(ORIGINAL - 1), _batch(40)
    before = model.run(long)  # which leaves the frequencies of 40 tokens behind
    made, (file,) = applied(model, Plan(), "onnx", tmp_path / "m.onnx", session=None, settings=(), progress=silent)
    (note,) = made.notes
    assert f"texts of up to {ORIGINAL} tokens" in note and "dynamic NTK" in note
    assert apart(made, model, short, file) < 1e-5
    assert apart(made, model, long, file) > 1e-3, "frequencies that do not change show nothing"
    torch.testing.assert_close(model.run(long), before, rtol=0, atol=0)


@pytest.mark.filterwarnings("ignore")
def test_a_graph_of_one_length_is_noted_and_its_runtime_names_the_lengths(tmp_path: Path) -> None:
    """Mamba's scan is a loop over the tokens, which torch unrolls."""
    settings = transformers.MambaConfig(vocab_size=64, hidden_size=16, num_hidden_layers=1, state_size=4)
    transformers.MambaForCausalLM(settings).save_pretrained(tmp_path / "mamba")
    model = open_model(tmp_path / "mamba")
    made, (file,) = applied(model, Plan(), "onnx", tmp_path / "m.onnx", session=None, settings=(), progress=silent)
    (note,) = made.notes
    assert re.search(r"the graph takes input_ids of any x \d+, attention_mask of any x \d+ alone", note)
    with pytest.raises(ExportError, match=r"the graph takes input_ids of any x \d+ alone, and the samples have 1 x 40"):
        run(file, _batch(40), [1])


def test_static_inputs_of_a_table_need_no_range_at_the_export(tmp_path: Path) -> None:
    model = open_model(folder_of("llama", tmp_path / "llama", tie_word_embeddings=False))
    plan = Plan().assign(["model.embed_tokens"], weights="int8-channel", inputs="int8-tensor", algorithm="rtn")
    made, _ = applied(model, plan, "onnx", tmp_path / "m.onnx", session=None, settings=(), progress=silent)
    assert made.notes == () and apart(made, model, _batch(9), tmp_path / "m.onnx") < 1e-5


def _batch(length: int) -> dict[str, torch.Tensor]:
    ids = torch.arange(length)[None] * 5 % 61 + 3
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


NET = """
import torch


def make():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
"""


def test_sizes_that_no_data_tell_are_noted(tmp_path: Path) -> None:
    """The network takes pictures of any size, and its graph those that it was captured with."""
    (tmp_path / "net.py").write_text(NET, encoding="utf-8")
    np.save(tmp_path / "pictures.npy", np.zeros((4, 3, 20, 24), np.float32))
    model = workbench.open(tmp_path / "net.py", factory="make", trust=True)
    session = workbench.calibrate(model, tmp_path / "pictures.npy", batch_size=2)
    for known, noted, sizes in ((None, True, (32, 32)), (session, False, (20, 24))):
        made, (file,) = applied(
            model, Plan(), "onnx", tmp_path / f"{noted}.onnx", session=known, settings=(), progress=silent
        )
        assert any("the graph takes" in note and "no data say" in note for note in made.notes) == noted
        (given,) = onnxruntime.InferenceSession(str(file)).get_inputs()
        assert tuple(given.shape[1:]) == (3, *sizes)
        model = workbench.open(tmp_path / "net.py", factory="make", trust=True)

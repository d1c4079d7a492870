"""GGUF files as models: the network that transformers computes, the file's types as the plan, damage in one line."""

from __future__ import annotations

import os
import struct
import time
import tracemalloc
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from gguf.quants import dequantize

from tests.deployment.exporters.llamas import folder_of
from tests.models.sources.gguf_copies import copied
from workbench.deployment.exporters import exporter
from workbench.errors import ModelError, NotAModelError
from workbench.models.data.datasets import open_dataset
from workbench.models.data.inputs import fast_tokenizer
from workbench.models.gguf.architectures import ARCHITECTURES
from workbench.models.gguf.container import read_gguf
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.models.summary import quantizable
from workbench.numerics.formats.gguf.lattice import LATTICES
from workbench.numerics.formats.gguf.stored import SIZES
from workbench.planning.plan import Plan
from workbench.planning.totals import plan_totals
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.steps.files.first_session import as_stored

TEXT = "Hello world, it's 1234  naïve café — tokens!\n\n\tend"


def written(model: Model, plan: Plan, out: Path) -> Path:
    exporter("gguf").export(quantize(model, plan), model, out, silent)
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of("llama", tmp_path_factory.mktemp("folder"), hidden_size=256, intermediate_size=256, head_dim=64)


@pytest.fixture(scope="module")
def file(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = open_model(folder)
    plan = Plan().assign(["model.layers.*.mlp.*"], weights="q4_k", algorithm="rtn")
    plan = plan.assign(["model.layers.*.self_attn.*"], weights="q4_0", algorithm="rtn")
    return written(
        model, plan.assign(["model.embed_tokens"], weights="fp16"), tmp_path_factory.mktemp("file") / "m.gguf"
    )


@pytest.mark.parametrize("name", [each.model_types[0] for each in ARCHITECTURES])
def test_every_architecture_comes_back_as_the_same_network(name: str, tmp_path: Path) -> None:
    folder = folder_of(name, tmp_path / "folder")
    model = open_model(folder)
    names = [layer.name for layer in quantizable(model.summary.stored)]
    plan = Plan().assign([name for name in names if any(part in name for part in ("mlp", "ffn", "feed_forward"))]
                         or ["encoder.layer.0.intermediate.dense"], weights="q8_0", algorithm="rtn")  # fmt: skip
    result = quantize(model, plan)
    out = tmp_path / "model.gguf"
    exporter("gguf").export(result, model, out, silent)
    again = open_model(out)
    assert again.summary.cannot_run is None, again.summary.cannot_run
    tokens = {"input_ids": torch.arange(3, 23).reshape(1, 20), "attention_mask": torch.ones(1, 20, dtype=torch.int64)}
    with torch.no_grad():
        expected, actual = result.bind(model).run(tokens), again.run(tokens)
    assert torch.allclose(actual, expected, rtol=1e-4, atol=1e-4), float((actual - expected).abs().max())
    assert written(again, as_stored(again, Plan()), tmp_path / "again.gguf").read_bytes() == out.read_bytes()


def test_the_first_plan_says_the_files_types_and_its_bytes(file: Path) -> None:
    model = open_model(file)
    plan = as_stored(model, Plan())
    kinds = {layer.name: plan.of(layer.name).weights for layer in model.summary.stored}
    assert kinds["model.layers.1.mlp.up_proj"] == "q4_k" and kinds["model.layers.0.self_attn.k_proj"] == "q4_0"
    assert kinds["model.embed_tokens"] == "keep"
    nbytes = sum(tensor.n_bytes for tensor in gguf.GGUFReader(file).tensors)
    assert plan_totals(model.summary, plan).nbytes == nbytes
    weights = quantize(model, plan).bind(model)
    for layer in model.summary.stored:
        assert torch.equal(weights.weight(layer.name).float(), model.weight(layer.name).float())


def test_a_changed_layer_changes_alone(file: Path, tmp_path: Path) -> None:
    model = open_model(file)
    plan = as_stored(model, Plan()).assign(["model.layers.0.self_attn.q_proj"], weights="q5_1", algorithm="rtn")
    before, after = (gguf.GGUFReader(each) for each in (file, written(model, plan, tmp_path / "new.gguf")))
    stored = {tensor.name: tensor for tensor in after.tensors}
    for tensor in before.tensors:
        same = tensor.tensor_type == stored[tensor.name].tensor_type
        assert same == (tensor.name != "blk.0.attn_q.weight")
        assert not same or np.array_equal(tensor.data, stored[tensor.name].data)
    assert stored["blk.0.attn_q.weight"].tensor_type.name == "Q5_1"


def test_the_tokenizer_is_the_folders(file: Path, folder: Path) -> None:
    ours, theirs = fast_tokenizer(open_model(file).inputs.tokenizer), fast_tokenizer(folder)
    assert ours.encode(TEXT).ids == theirs.encode(TEXT).ids and ours.decode(ours.encode(TEXT).ids) == TEXT


@pytest.mark.parametrize("options", ["?window=16", "?text=sentences&window=12", ""])
def test_texts_become_the_tokens_that_the_folder_makes_of_them(
    file: Path, folder: Path, tmp_path: Path, options: str
) -> None:
    text = tmp_path / "text.txt"
    text.write_text(f"{TEXT} {'many words follow one another here. ' * 400}\n" * 4)
    ours, theirs = (open_dataset(f"{text}{options}", open_model(place)) for place in (file, folder))
    assert len(ours) == len(theirs) > 0
    assert torch.equal(next(ours.batches(4))["input_ids"], next(theirs.batches(4))["input_ids"])


def one_bit(rows: np.ndarray, kind: gguf.GGMLQuantizationType) -> np.ndarray:
    """Decode Q1_0 as llama.cpp documents it, a weight at a time: the package does not."""
    width, octets = gguf.GGML_QUANT_SIZES[kind]
    values = []
    for block in rows.reshape(-1, octets).tolist():
        (scale,) = struct.unpack("<e", bytes(block[:2]))
        values += [scale if block[2 + j // 8] >> j % 8 & 1 else -scale for j in range(width)]
    return np.array(values, np.float32).reshape(len(rows), -1)


def test_types_that_are_only_read(tmp_path: Path) -> None:
    out = tmp_path / "iq.gguf"
    writer = gguf.GGUFWriter(out, "mamba")
    generator = np.random.default_rng(0)
    sizes = {**SIZES, **{lattice.ggml: (256, lattice.nbytes) for lattice in LATTICES}}
    for kind, (width, octets) in sizes.items():
        blocks = generator.integers(0, 64, (4, 2 * octets), np.uint8)
        writer.add_tensor(f"{kind}.weight", blocks, raw_dtype=gguf.GGMLQuantizationType[kind])
        assert (width, octets) == gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    writer.add_tensor("norm.weight", np.ones(4, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    model = open_model(out)
    assert "architecture mamba is not known" in str(model.summary.cannot_run)
    reader = gguf.GGUFReader(out)
    for tensor in reader.tensors[:-1]:
        expected = (one_bit if tensor.tensor_type.name == "Q1_0" else dequantize)(tensor.data, tensor.tensor_type)
        assert np.array_equal(model.weight(tensor.name.removesuffix(".weight")).numpy(), expected)
    plan = as_stored(model, Plan())
    assert written(model, plan, tmp_path / "again.gguf").read_bytes() == out.read_bytes()
    other = quantize(model, plan.assign(["IQ2_S"], weights="nvfp4-gguf"))
    assert "nvfp4-gguf is only read" in other.left["IQ2_S"] and "IQ2_S" not in other.tensors


def _metadata(**values: Any) -> bytes:
    return b"".join(struct.pack("<Q", len(key)) + key.encode() + value for key, value in values.items())


TENSORS = b"".join(struct.pack("<Q4sIQIQ", 4, b"%04d" % number, 1, 1000, 0, 0) for number in range(100))
MANY = b"GGUF" + struct.pack("<IQQ", 3, 100, 0) + TENSORS + bytes(8000)
"""A hundred tensors in the same bytes, each of which would be read."""


@pytest.mark.parametrize("content, message", [
    (b"", "does not begin with GGUF"),
    (b"GGML" + bytes(40), "does not begin with GGUF"),
    (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
    (b"GGUF" + struct.pack("<IQQ", 9, 0, 0), "version 9"),
    (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "1152921504606846976 tensors"),
    (b"GGUF" + struct.pack("<IQQ", 3, 0, 0), "without tensors"),
    (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + _metadata(a=struct.pack("<IIQ", 9, 4, 1 << 61)), "entries in a"),
    (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + _metadata(a=struct.pack("<IQ", 77, 0)), "unknown type 77"),
    (b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q1sIQQIQ", 1, b"x", 2, 33, 5, 2, 0), "blocks of 32"),
    (b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q1sIQIQ", 1, b"x", 1, 8, 0, 0), "lies at 0 with 32 bytes"),
    (b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q1sIQIQ", 1, b"x", 1, 8, 200, 0), "GGML type 200"),
    (b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q1sIQQIQ", 1, b"x", 2, 0, 1 << 40, 0, 0), "is empty"),
    (MANY, "its tensors take 400000 bytes"),
])  # fmt: skip
def test_a_foreign_or_damaged_file_is_one_line(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(NotAModelError, match=message) as refused:
        open_model(path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("head", "words"), [
    (struct.pack("<IQQ", 3, 1 << 23, 0), "twice"), (struct.pack("<IQQ", 3, 1 << 25, 0), "are the most"),
    (struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<IIQ", 9, 0, 1 << 29), "are the most"),
    (struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<IIQ", 9, 8, 1 << 26), "are the most"),
    (struct.pack("<IQQ", 3, 0, 1 << 23), "twice"),
])  # fmt: skip
def test_a_sparse_file_fills_no_memory(head: bytes, words: str, tmp_path: Path) -> None:
    """A gigabyte of zeros takes no room on the disk; as tensors, texts and numbers it would take tens in memory."""
    with (tmp_path / "m.gguf").open("wb") as stream:
        stream.write(b"GGUF" + head)
        stream.truncate(1 << 30)
    tracemalloc.start()
    with pytest.raises(NotAModelError, match=words):
        open_model(tmp_path / "m.gguf")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 24


def test_no_damage_of_the_header_escapes(file: Path, tmp_path: Path) -> None:
    whole = bytearray(file.read_bytes())
    start = min(int(tensor.data_offset) for tensor in gguf.GGUFReader(file).tensors)
    generator, path = np.random.default_rng(0), tmp_path / "model.gguf"
    places = [*range(4, 1200, 37), *generator.integers(start - 2400, start, 40)]
    for place in places:
        garbled = bytearray(whole)
        garbled[place] ^= int(generator.integers(1, 256))
        path.write_bytes(garbled)
        try:
            open_model(path)
        except ModelError as error:
            assert "\n" not in str(error)
    for length in generator.integers(0, len(whole), 12):
        path.write_bytes(whole[:length])
        with pytest.raises(NotAModelError):
            open_model(path)


@pytest.mark.parametrize("key", ["attention.head_count", "attention.head_count_kv", "attention.key_length",
                                 "rope.dimension_count", "block_count", "context_length", "feed_forward_length",
                                 "embedding_length"])  # fmt: skip
@pytest.mark.parametrize("value", [0, 1, 3, 256, 2**31 - 1, 2**32 - 1])
def test_metadata_that_do_not_fit_the_tensors_leave_the_weights(
    file: Path, tmp_path: Path, key: str, value: int
) -> None:
    content = bytearray(file.read_bytes())
    assert (start := content.find(f"llama.{key}".encode())) > 0
    place = start + len(f"llama.{key}") + 4
    struct.pack_into("<I", content, place, value)
    (tmp_path / "m.gguf").write_bytes(content)
    summary = open_model(tmp_path / "m.gguf").summary
    assert summary.layers and "\n" not in (summary.cannot_run or "")
    if key == "attention.head_count":
        assert summary.cannot_run


@pytest.mark.parametrize("added, message", [
    ("blk.0.attn_q.scale", "no place for blk.0.attn_q.scale"), ("rope.scaling.attn_factor", "attn_factor"),
])  # fmt: skip
def test_what_the_network_would_leave_out_leaves_the_weights(
    file: Path, tmp_path: Path, added: str, message: str
) -> None:
    out = tmp_path / "m.gguf"

    def change(writer: gguf.GGUFWriter) -> None:
        if added.startswith("rope"):
            writer.add_float32(f"llama.{added}", 1.5)
        else:
            writer.add_tensor(added, np.ones(4, np.float32))

    copied(file, out, change)
    summary = open_model(out).summary
    assert summary.layers and message in str(summary.cannot_run)


def test_a_tensor_takes_no_time_of_its_own(tmp_path: Path) -> None:
    """The version of the package gguf was looked up for each of them: 0.4 ms."""
    names = [b"%05d.weight" % number for number in range(5000)]
    facts = b"".join(struct.pack("<Q12sIQQIQ", 12, name, 2, 1, 1, 0, 32 * place) for place, name in enumerate(names))
    (tmp_path / "m.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, len(names), 0) + facts + bytes(32 * 5001))
    read_gguf(tmp_path / "m.gguf")
    start = time.process_time()
    assert len(read_gguf(tmp_path / "m.gguf").tensors) == 5000
    assert time.process_time() - start < 1


def test_a_file_that_is_cut_while_it_is_open_is_named(tmp_path: Path) -> None:
    facts = struct.pack("<Q8sIQQIQ", 8, b"a.weight", 2, 64, 64, 0, 0)
    (tmp_path / "m.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + facts + bytes(32 + 64 * 64 * 4))
    file = read_gguf(tmp_path / "m.gguf")
    os.truncate(tmp_path / "m.gguf", 100)
    with pytest.raises(ModelError, match="truncated while it was open"):
        file.raw("a.weight")

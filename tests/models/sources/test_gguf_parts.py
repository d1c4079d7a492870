"""Models in parts, as the package gguf writes them: opened from any part as one; what lacks is named in one line."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch

from tests.deployment.exporters.llamas import folder_of
from workbench.deployment.exporters import exporter
from workbench.errors import NotAModelError
from workbench.models.data.inputs import fast_tokenizer
from workbench.models.gguf import container
from workbench.models.sources import open_model
from workbench.models.sources.files import own_files
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.steps.files.first_session import as_stored


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("whole")
    model = open_model(folder_of("llama", place / "folder"))
    plan = Plan().assign(["model.layers.*"], weights="q8_0", algorithm="rtn")
    exporter("gguf").export(quantize(model, plan), model, place / "m.gguf", silent)
    return place / "m.gguf"


@pytest.fixture
def parts(whole: Path, tmp_path: Path) -> list[Path]:
    """The file in parts of seven tensors; the first has none."""
    reader = gguf.GGUFReader(whole)
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama", split_max_tensors=7, small_first_shard=True)
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            element = field.types[1] if len(field.types) > 1 else None
            writer.add_key_value(field.name, field.contents(), field.types[0], element)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return sorted(tmp_path.glob("*.gguf"))


def test_any_part_opens_the_model(whole: Path, parts: list[Path], tmp_path: Path) -> None:
    assert len(parts) == 4 and not gguf.GGUFReader(parts[0]).tensors
    one = open_model(whole)
    for part in (parts[0], parts[3]):
        model = open_model(part)
        assert model.summary.cannot_run is None and model.summary.fingerprint == one.summary.fingerprint
        assert own_files(model.summary.source) == set(parts)  # the first too, which holds no tensors
    assert model.inputs.tokenizer is not None
    assert fast_tokenizer(model.inputs.tokenizer).encode("Once upon").ids
    tokens = {"input_ids": torch.arange(6)[None]}
    assert torch.equal(model.run(tokens), one.run(tokens))
    plan = as_stored(model, Plan())
    assert plan.of("model.layers.1.mlp.up_proj").weights == "q8_0"
    exporter("gguf").export(quantize(model, plan), model, tmp_path / "again.gguf", silent)
    assert (tmp_path / "again.gguf").read_bytes() == whole.read_bytes()


def number(key: str, kind: str, value: int) -> bytes:
    """Return an entry of metadata as a file has it."""
    return key.encode() + struct.pack("<I" + kind, {"H": 2, "i": 5}[kind], value)


def changed(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, new))


@pytest.mark.parametrize("damage, message", [
    (lambda parts: parts[2].unlink(), "one of the 4 parts of a model, and m-00003-of-00004.gguf is not beside it"),
    (lambda parts: parts[1].rename(parts[1].with_name("other.gguf")), "m-00002-of-00004.gguf is not beside it"),
    (lambda parts: shutil.copy(parts[2], parts[1]), r"m-00002-of-00004.gguf says that .* are \[2, 4\]"),
    (lambda parts: changed(parts[0], number("split.tensors.count", "i", 21), number("split.tensors.count", "i", 22)),
     "which have 21 tensors, 22 were expected"),
    (lambda parts: changed(parts[3], number("split.count", "H", 4), number("split.count", "H", 6)), r"are \[3, 6\]"),
    (lambda parts: parts[3].write_bytes(parts[3].read_bytes()[:-40]), "is not a whole GGUF file"),
    (lambda parts: changed(parts[2], b"blk.1.attn_q.weight", b"blk.0.attn_q.weight"), "have 20 tensors, 21 were"),
])  # fmt: skip
def test_what_lacks_is_one_line(damage: Any, message: str, parts: list[Path]) -> None:
    damage(parts)
    with pytest.raises(NotAModelError, match=message) as refused:
        open_model(parts[0])
    assert "\n" not in str(refused.value)


def test_all_parts_together_have_as_many_entries_as_a_file_may(
    parts: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = gguf.GGUFReader(parts[0]).fields.values()
    entries = sum(1 + len(each.data) * (len(each.types) > 1) for each in fields if not each.name.startswith("GGUF."))
    monkeypatch.setattr(container, "MOST", entries + 1)
    with pytest.raises(NotAModelError, match=f"m-00002-of-00004.gguf .* {entries + 1} are the most of everything"):
        open_model(parts[0])


def test_a_part_under_another_name(parts: list[Path]) -> None:
    with pytest.raises(NotAModelError, match="is not called so; name it NAME-00001-of-00004.gguf, by its number"):
        open_model(parts[3].rename(parts[3].with_name("download (1).gguf")))


@pytest.mark.parametrize("kind, message", [
    ("adapter", "is an adapter .* join the two with llama-export-lora"), ("imatrix", "is an importance matrix, not a"),
])  # fmt: skip
def test_files_that_hold_no_model(kind: str, message: str, tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_type(kind)
    writer.add_tensor("blk.0.attn_q.weight.lora_a", torch.zeros(8, 64).numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(NotAModelError, match=message):
        open_model(tmp_path / "m.gguf")

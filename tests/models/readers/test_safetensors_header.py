"""Our reader of safetensors headers against the library's."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from workbench.errors import NotAModelError
from workbench.models.sources import open_model
from workbench.models.sources.stored import tensors_in_files


def test_tensors_are_those_of_the_library(tmp_path: Path) -> None:
    whole = torch.randn(6, 4)
    tensors = {
        "z": whole, "a": whole.half(), "m.bf16": whole.bfloat16(), "f8": whole.to(torch.float8_e5m2),
        "one": torch.tensor(2.5),
        "none": torch.zeros(0, 3), "bool": whole > 0, "i64": torch.arange(3), "u8": torch.arange(5, dtype=torch.uint8),
        "c64": torch.complex(whole, whole),
    }  # fmt: skip
    file = tmp_path / "m.safetensors"
    save_file(tensors, file, metadata={"format": "pt", "a": "b"})
    store = tensors_in_files([file])
    with safe_open(str(file), framework="pt") as library:
        assert list(store.tensors) == list(library.keys()) and store.metadata == library.metadata()
        for name in tensors:
            mine, theirs = store.read(name), library.get_tensor(name)
            assert mine.dtype == theirs.dtype and mine.shape == theirs.shape and store.tensors[name].shape == mine.shape
            assert torch.equal(mine, theirs), name


def test_a_file_that_is_replaced_is_read_again_and_writing_into_a_tensor_does_not_change_it(tmp_path: Path) -> None:
    file = tmp_path / "m.safetensors"
    save_file({"a": torch.zeros(4)}, file)
    store = tensors_in_files([file])
    store.read("a").add_(1)
    save_file({"b": torch.ones(4), "a": torch.full((4,), 3.0)}, tmp_path / "n.safetensors")
    (tmp_path / "n.safetensors").replace(file)
    assert store.read("a").tolist() == [3.0] * 4
    save_file({"b": torch.ones(4)}, tmp_path / "n.safetensors")
    (tmp_path / "n.safetensors").replace(file)
    with pytest.raises(NotAModelError, match="holds no tensor a any more"):
        store.read("a")


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


HEADERS: dict[str, Any] = {
    "whole": {"a": entry()}, "a gap": {"a": entry(offsets=(4, 12))}, "overlap": {"a": entry(), "b": entry()},
    "too short": {"a": entry(shape=(3,), offsets=(0, 12))}, "backwards": {"a": entry(offsets=(8, 0))},
    "negative": {"a": entry(shape=(-2,))}, "huge": {"a": entry(shape=(2**62, 4))},
    "fraction": {"a": entry(shape=(2.0,))}, "true": {"a": entry(shape=(True, 2))}, "a list": [entry()], "a text": "a",
    "no dtype": {"a": {"shape": [2], "data_offsets": [0, 8]}}, "trailing": {"a": entry(shape=(1,), offsets=(0, 4))},
    "numbers as metadata": {"__metadata__": {"a": 1}, "a": entry()},
    "an odd dtype": {"a": entry(dtype=["F32"])}, "three offsets": {"a": entry(offsets=(0, 8, 8))},
}  # fmt: skip


@pytest.mark.parametrize("name", HEADERS)
def test_what_the_library_refuses_is_refused(tmp_path: Path, name: str) -> None:
    text, file = json.dumps(HEADERS[name]).encode(), tmp_path / "m.safetensors"
    file.write_bytes(struct.pack("<Q", len(text)) + text + bytes(8))
    try:
        with safe_open(str(file), framework="pt"):
            whole = True
    except (SafetensorError, OSError):
        whole = False
    assert whole == (name == "whole")
    if whole:
        assert tensors_in_files([file]).read("a").tolist() == [0.0, 0.0]
        return
    with pytest.raises(NotAModelError) as caught:
        tensors_in_files([file])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [
    b"", b"\x01", struct.pack("<Q", 2**63), struct.pack("<Q", 40) + b"{}", struct.pack("<Q", 2) + b"\xff\xff",
    struct.pack("<Q", 100_000) + b"[" * 100_000, struct.pack("<Q", 30) + b'{"a":{},"a":{"dtype":"F32"}}  ',
])  # fmt: skip
def test_damage_is_one_line(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "m.safetensors").write_bytes(data)
    with pytest.raises(NotAModelError) as caught:
        tensors_in_files([tmp_path / "m.safetensors"])
    assert "\n" not in str(caught.value)


def folder_of(place: Path, config: dict[str, Any], **tensors: tuple[str, list[int]]) -> Path:
    """Write a folder with a matrix, and tensors without numbers."""
    entries = {
        name: {"dtype": dtype, "shape": shape, "data_offsets": [4, 4]} for name, (dtype, shape) in tensors.items()
    }
    head = json.dumps({"a.weight": {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]}} | entries).encode()
    (place / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + bytes(4))
    (place / "config.json").write_text(json.dumps({"model_type": "qwen2_moe"} | config))
    return place


@pytest.mark.parametrize("shape", [[10**10, 0, 8], [0, 10**10], [2**61, 8, 0], [3, 2**61, 2**61, 0]], ids=str)
def test_a_tensor_without_numbers_has_no_axes_without_end(tmp_path: Path, shape: list[int]) -> None:
    """Experts of an MLX folder were counted one by one: a few bytes took minutes and the memory."""
    names = [f"model.layers.0.mlp.switch_mlp.gate_proj.{part}" for part in ("weight", "scales", "biases")]
    tensors = dict(zip(names, [("U32", shape), ("F16", shape), ("F16", shape)], strict=True))
    folder = folder_of(tmp_path, {"quantization": {"group_size": 32, "bits": 4}}, **tensors)
    with pytest.raises(NotAModelError, match="is empty and says"):
        open_model(folder)


def test_a_tensor_without_numbers_is_no_layer(tmp_path: Path) -> None:
    folder_of(
        tmp_path, {}, **{"b.weight": ("F32", [0, 128]), "c.weight": ("F32", [128, 0]), "d.weight": ("F32", [8, 0])}
    )
    model = open_model(tmp_path / "model.safetensors")
    assert not model.summary.layers and {each.name for each in model.summary.others} >= {"b.weight", "c.weight"}

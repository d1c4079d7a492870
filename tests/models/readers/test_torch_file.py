"""Our reader of torch.save's files against torch's own; hostile pickles run nothing; no library reads a file first."""

from __future__ import annotations

import collections
import io
import pickle
import struct
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from workbench.errors import DataError, NotAModelError, UnsafeModelError
from workbench.models.readers.plain_pickle import NotPlainError
from workbench.models.readers.torch_file import read_torch_file
from workbench.models.sources import open_model


def state() -> dict[str, Any]:
    whole = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    return {
        "a": whole, "b": whole.t(), "c": whole[1:, ::2], "d": torch.tensor(3.5), "e": torch.zeros(0, 3),
        "half": whole.half(), "bf16": whole.bfloat16(), "f8": whole.to(torch.float8_e4m3fn), "f64": whole.double(),
        "ints": torch.arange(5), "bytes": torch.arange(5, dtype=torch.uint8), "short": torch.arange(3).short(),
        "bool": torch.tensor([True, False, True]), "complex": torch.tensor([1 + 2j]),
        "u16": torch.arange(3).to(torch.uint16), "parameter": nn.Parameter(whole.clone()),
        "nested": {"lr": 0.1, "betas": (0.9, 0.999), "on": True, "none": None},
        "list": [1, -5, 2**40, 2**100, "text ä", b"bytes", [torch.ones(2)]], "size": torch.Size([2, 3]),
        "ordered": collections.OrderedDict(x=1), "device": torch.device("cpu"), "tags": {"p", "q"},
    }  # fmt: skip


def as_numbers(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor.detach().double()


def same(first: Any, other: Any) -> bool:
    if isinstance(first, torch.Tensor):
        kinds = first.dtype == other.dtype and first.shape == other.shape and first.stride() == other.stride()
        return kinds and bool(torch.equal(as_numbers(first), as_numbers(other)))
    if isinstance(first, dict):
        return [*first] == [*other] and all(same(first[key], other[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(other) and all(map(same, first, other))
    return bool(first == other) or str(first) == other


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("protocol", [2, 4])
def test_everything_is_read_as_torch_reads_it(tmp_path: Path, legacy: bool, protocol: int) -> None:
    saved = state()
    if legacy:
        del saved["f8"], saved["u16"]
    file = tmp_path / "m.pt"
    torch.save(saved, file, pickle_protocol=protocol, _use_new_zipfile_serialization=not legacy)
    loaded, ours = torch.load(file, weights_only=False), read_torch_file(file)  # our own file
    for name in saved:
        assert same(loaded[name], ours[name]), name
    assert ours["a"].data_ptr() == ours["b"].data_ptr() or legacy or ours["a"].untyped_storage().nbytes()


class Harm:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return open, (str(self.marker), "w")


OPERATIONS = {
    "a call": b"cos\nsystem\n(S'touch MARK'\ntR.", "INST": b"(S'touch MARK'\nios\nsystem\n.",
    "OBJ": b"(cos\nsystem\nS'touch MARK'\no.", "NEWOBJ": b"\x80\x02cos\nsystem\nS'touch MARK'\n\x85\x81.",
    "two names": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x0atouch MARK\x85R.", "EXT1": b"\x80\x02\x82\x01.",
    "an attribute": b"\x80\x04\x8c\x0bcollections\x8c\x19OrderedDict.__class__.mro\x93.",
    "a change": b"ccollections\nOrderedDict\n}S'x'\nI1\nsb.", "a buffer": b"\x80\x05\x97.",
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("legacy", [False, True])
def test_pickles_that_do_more_than_hold_data_are_refused(tmp_path: Path, name: str, legacy: bool) -> None:
    marker, file = tmp_path / "MARK", tmp_path / "m.pt"
    data = OPERATIONS[name]
    if b"\x8c\x0a" not in data:  # a length follows
        data = data.replace(b"MARK", str(marker).encode())
    if legacy:
        stream = io.BytesIO()
        for part in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}):
            pickle.dump(part, stream, protocol=2)
        file.write_bytes(stream.getvalue() + data + pickle.dumps([]))
    else:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("m/data.pkl", data)
    with pytest.raises(NotPlainError):
        read_torch_file(file)
    with pytest.raises(UnsafeModelError, match="opening it would run the code"):
        open_model(file)
    assert not marker.exists()


def test_a_pickled_object_is_refused(tmp_path: Path) -> None:
    torch.save({"a.weight": torch.ones(2, 2), "x": Harm(tmp_path / "MARK")}, tmp_path / "m.pt")
    with pytest.raises(UnsafeModelError, match="io.open|builtins.open"):
        open_model(tmp_path / "m.pt")
    assert not (tmp_path / "MARK").exists()


def laughs() -> bytes:
    """Return ten lists of ten of the one before: a tree of 10^10 from 300 bytes; then a tuple of it as a key."""
    text = b"\x80\x02]q\x00"
    for level in range(40):
        text += b"h" + bytes([level]) + b"h" + bytes([level]) + b"\x86q" + bytes([level + 1])
    return text + b"."


@pytest.mark.parametrize(("data", "words"), [
    (laughs(), "tensors"), (laughs()[:-1] + b"0}h\x28K\x01s.", "key"), (b"\x80\x02]q\x00h\x00a.", "."),
    (b"\x80\x02\x8a\xff" + b"\xff" * 20, "."), (b"(" * 100_000 + b".", "."), (b"\x80\x02)" * 3 + b"a.", "."),
    (b"", "."),
])  # fmt: skip
def test_bombs_and_damage_are_one_line(tmp_path: Path, data: bytes, words: str) -> None:
    with zipfile.ZipFile(tmp_path / "m.pt", "w") as archive:
        archive.writestr("m/data.pkl", data)
    with pytest.raises(NotAModelError, match=words) as caught:
        open_model(tmp_path / "m.pt")
    assert "\n" not in str(caught.value)


def again_and_again(key: bytes, times: int = 300_000) -> bytes:
    """Return a table of one key that is set many times."""
    return b"\x80\x02" + key + b"q\x000}" + b"h\x00Ns" * times + b"."


def of_one_hash(times: int = 60_000) -> bytes:
    """Return a table of numbers that have the same hash: multiples of what Python divides by."""
    numbers = (number * (2**61 - 1) for number in range(times))
    return b"\x80\x02}" + b"".join(b"\x8a\x0a" + each.to_bytes(10, "little") + b"Ns" for each in numbers) + b"."


@pytest.mark.parametrize("data", [
    again_and_again(b"(" + b"N" * 300_000 + b"t"),
    again_and_again(b"\x8b" + struct.pack("<i", 1 << 20) + b"a" * (1 << 20)),
    of_one_hash(), b"\x80\x02}" + b"".join(b"K\x01J" + struct.pack("<i", n) + b"\x86Ns" for n in range(2000)) + b".",
])  # fmt: skip
def test_no_table_takes_long(tmp_path: Path, data: bytes) -> None:
    """Some 0.3 to 2 MB that took minutes: hashes of numbers and tuples are computed each time, and are no secret."""
    with zipfile.ZipFile(tmp_path / "m.pt", "w") as archive:
        archive.writestr("m/data.pkl", data)
    start = time.process_time()
    with pytest.raises(NotAModelError, match="key"):
        open_model(tmp_path / "m.pt")
    assert time.process_time() - start < 5


def test_a_compressed_archive_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m/data.pkl", b"\x80\x02}.")
        archive.writestr("m/data/0", bytes(1 << 20))
    with pytest.raises(NotAModelError, match="compressed"):
        open_model(tmp_path / "m.pt")


def test_no_library_reads_a_file_that_was_not_checked(
    tmp_path: Path, llama: Path, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not torch's reader, nor pickle's, nor that of safetensors: what they get is what was read and checked here."""
    import safetensors
    import safetensors.torch

    torch.save({"a.weight": torch.ones(4, 4)}, tmp_path / "m.pt")

    def forbidden(*arguments: Any, **named: Any) -> Any:
        raise AssertionError("a library reads the file itself")

    for module, name in ((torch, "load"), (pickle, "load"), (pickle, "loads"), (safetensors, "safe_open"),
                         (safetensors.torch, "load_file"), (safetensors.torch, "load")):  # fmt: skip
        monkeypatch.setattr(module, name, forbidden)
    import transformers.modeling_utils

    monkeypatch.setattr(transformers.modeling_utils, "safe_open", forbidden)
    assert open_model(tmp_path / "m.pt").summary.layers
    assert open_model(bare).summary.layers
    assert open_model(llama).summary.cannot_run is None


def test_data_of_odd_tensors_are_told(tmp_path: Path) -> None:
    from tests.models.data.test_datasets import model
    from workbench.models.data.datasets import open_dataset

    torch.save({"inputs": torch.zeros(1).expand(1 << 20, 1 << 20)}, tmp_path / "x.pt")
    with pytest.raises(DataError, match="fewer values"):
        open_dataset(tmp_path / "x.pt", model(tokens=False))
    torch.save({"inputs": torch.ones(4, 3)}, tmp_path / "y.pt")
    (batch,) = open_dataset(tmp_path / "y.pt", model(tokens=False)).batches(4)
    assert np.array_equal(batch["inputs"].numpy(), np.ones((4, 3)))


def test_tensors_in_the_same_bytes_are_not_read_without_end(tmp_path: Path) -> None:
    """Views of one storage, each of which is read: 20 MB were 160 GB, and took minutes."""
    storage = torch.zeros(1 << 18)
    views = {f"t{place}": storage.as_strided((1 << 9, 500), (500, 1), place) for place in range(2000)}
    torch.save(dict(list(views.items())[:50]), tmp_path / "few.pt")
    torch.save(views, tmp_path / "many.pt")
    assert len(open_model(tmp_path / "few.pt").summary.layers) == 50
    with pytest.raises(NotAModelError, match="more than 64 times"):
        open_model(tmp_path / "many.pt")


def test_a_tensor_without_numbers_has_no_axes_without_end(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(4, 4), "b": torch.zeros(1 << 40, 0)}, tmp_path / "m.pt")
    with pytest.raises(NotAModelError, match="is empty and says"):
        open_model(tmp_path / "m.pt")

"""The packed file, decoded here by other means than the workbench's: bytes counted, every value compared."""

from __future__ import annotations

import dataclasses
import json
import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from tests.deployment.exporters.models import TensorModel, plan_of, quantized, tensor_model
from workbench.deployment.exporters import Refuses, exporter
from workbench.deployment.exporters.packed_safetensors import read_packed
from workbench.deployment.tensors import planned
from workbench.errors import ExportError
from workbench.models.layer import StoredTensor
from workbench.numerics.formats import parse_scheme
from workbench.planning.plan import Plan
from workbench.planning.totals import plan_totals
from workbench.progress import silent

PLANS = {
    "mixed": plan_of(odd="int3-g32-asym", c_attn="int4-g16", conv="fp8-e4m3-channel", embed="int8-channel"),
    "odd widths": plan_of(odd="int5-g7-asym", c_attn="int2-g16-asym-sbf16", плотный="int6-tensor", conv="int7-channel"),
    "floats": plan_of(odd="fp8-e5m2-g5", c_attn="fp8-e4m3-b16x8", conv="bf16", embed="fp16", плотный="fp32"),
    "asymmetric": plan_of(odd="int4-channel-asym", c_attn="int4-tensor-asym", conv="int2-b4x5-asym"),
    "nothing": Plan(),
}


def export(plan: Plan, out: Path) -> tuple[TensorModel, Any]:
    model = tensor_model()
    result = quantized(model, plan)
    exporter("safetensors").export(result, model, out, silent)
    return model, result


@pytest.mark.parametrize("name", PLANS)
def test_the_file_holds_the_plans_bytes_and_no_more(name: str, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    model, _ = export(PLANS[name], out)
    (header,) = struct.unpack("<Q", out.read_bytes()[:8])
    assert out.stat().st_size - 8 - header == plan_totals(model.summary, PLANS[name]).nbytes


@pytest.mark.parametrize("name", PLANS)
def test_the_numpy_reader_gives_the_evaluated_values(name: str, tmp_path: Path) -> None:
    model, result = export(PLANS[name], tmp_path / "m.safetensors")
    tensors = read_packed(tmp_path / "m.safetensors")
    assert set(tensors) == {layer.parameter for layer in model.summary.stored} | {k.name for k in model.summary.others}
    for layer in model.summary.stored:
        if layer.name in result.tensors:
            stored = result.tensors[layer.name]
            matrix = tensors[layer.parameter].transpose(layer.axes).reshape(layer.matrix)
            expected = parse_scheme(stored.scheme).decode(stored).numpy()
            assert matrix.dtype == np.float32 and np.ascontiguousarray(matrix).tobytes() == expected.tobytes()
        else:
            expected = model.tensors[layer.parameter].float().numpy()
            np.testing.assert_array_equal(tensors[layer.parameter], expected)
    assert tensors["norm.count"] == 3 and tensors["mask"].tolist() == [True, False, True]
    np.testing.assert_array_equal(tensors["norm.weight"], model.tensors["norm.weight"].float().numpy())


def bits_of(row: bytes, bits: int, count: int) -> list[int]:
    """Read codes one bit at a time from a little-endian stream."""
    whole = int.from_bytes(row, "little")
    return [(whole >> (index * bits)) & ((1 << bits) - 1) for index in range(count)]


def test_integers_decode_by_hand(tmp_path: Path) -> None:
    model, result = export(PLANS["mixed"], tmp_path / "m.safetensors")
    tensors = load_file(tmp_path / "m.safetensors")
    codes = np.array([bits_of(row.tobytes(), 3, 37) for row in tensors["odd.weight.codes"].numpy()])
    shifts = np.array(bits_of(tensors["odd.weight.zero_points"].numpy().tobytes(), 3, 14)).reshape(7, 2)
    scales = tensors["odd.weight.scales"].float().numpy().reshape(7, 2)
    group = np.arange(37) // 32
    by_hand = (codes - shifts[:, group]).astype(np.float32) * scales[:, group]
    expected = parse_scheme("int3-g32-asym").decode(result.tensors["odd"]).numpy()
    assert by_hand.tobytes() == expected.tobytes()

    codes = np.array([bits_of(row.tobytes(), 4, 32) for row in tensors["c_attn.weight.codes"].numpy()])
    scales = tensors["c_attn.weight.scales"].float().numpy().reshape(48, 2)
    by_hand = (codes - 8).astype(np.float32) * scales[:, np.arange(32) // 16]
    np.testing.assert_array_equal(by_hand.T, read_packed(tmp_path / "m.safetensors")["c_attn.weight"])


def test_fp8_decodes_by_another_library(tmp_path: Path) -> None:
    _, result = export(PLANS["mixed"], tmp_path / "m.safetensors")
    tensors = load_file(tmp_path / "m.safetensors")
    values = tensors["conv.weight.codes"].numpy().view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    by_hand = values * tensors["conv.weight.scales"].float().numpy().reshape(6, 1)
    expected = parse_scheme("fp8-e4m3-channel").decode(result.tensors["conv"]).numpy()
    assert by_hand.tobytes() == expected.tobytes()


def test_other_tensors_are_as_the_model_stores_them(tmp_path: Path) -> None:
    model, _ = export(plan_of(odd="int4-g32"), tmp_path / "m.safetensors")
    tensors = load_file(tmp_path / "m.safetensors")
    for name in ("c_attn.weight", "conv.weight", "norm.weight", "norm.count", "mask", "empty"):
        assert tensors[name].dtype == model.tensors[name].dtype
        assert torch.equal(tensors[name], model.tensors[name])
    assert "head.weight" not in tensors


def test_the_header_carries_the_plan_and_the_schemes(tmp_path: Path) -> None:
    plan = PLANS["mixed"]
    export(plan, tmp_path / "m.safetensors")
    with safe_open(tmp_path / "m.safetensors", "np") as file:
        metadata = file.metadata()
    assert metadata["type"] == "quantization-workbench/packed"
    assert Plan.from_json(metadata["plan"]) == plan
    assert json.loads(metadata["tensors"])["c_attn.weight"]["scheme"] == "int4-g16"
    assert json.loads(metadata["schemes"])["int3-g32-asym"]["bits"] == 3


def test_a_header_starts_its_tensors_aligned(tmp_path: Path) -> None:
    export(PLANS["mixed"], tmp_path / "m.safetensors")
    raw = (tmp_path / "m.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    assert length % 8 == 0
    header = json.loads(raw[8 : 8 + length])
    widths = {"F32": 4, "I64": 8, "BF16": 2, "F16": 2}
    offsets = [(e["data_offsets"][0], widths.get(e["dtype"], 1)) for n, e in header.items() if n != "__metadata__"]
    assert all(start % width == 0 for start, width in offsets)


def test_other_files_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    export(PLANS["mixed"], out)
    whole = out.read_bytes()
    for content, words in (
        (b"", "not a whole safetensors"),
        (b"\xff" * 20, "not a whole safetensors"),
        (whole[:-1], "not a whole safetensors"),
        (whole.replace(b"quantization-workbench/packed", b"quantization-workbench/raided"), "not a packed file"),
    ):
        out.write_bytes(content)
        with pytest.raises(ExportError, match=words):
            read_packed(out)
    with pytest.raises(ExportError, match="No such file"):
        read_packed(tmp_path / "none")


def test_wrong_values_do_not_pass_the_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.deployment.exporters import packed_safetensors

    right = packed_safetensors.decode
    monkeypatch.setattr(packed_safetensors, "decode", lambda *given: right(*given) + np.float32(1))
    with pytest.raises(ExportError, match=r"odd.weight\[0, 0\] reads back as .* was written; please report"):
        export(PLANS["mixed"], tmp_path / "m.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["m.safetensors.failed"]


def test_two_tensors_of_one_name_are_refused(tmp_path: Path) -> None:
    model = tensor_model()
    twin = StoredTensor(name="odd.weight.codes", shape=(4,), dtype="uint8")
    summary = dataclasses.replace(model.summary, others=(*model.summary.others, twin))
    model = dataclasses.replace(model, summary=summary)
    with pytest.raises(ExportError, match=r"two tensors would be called odd\.weight\.codes"):
        exporter("safetensors").export(quantized(model, plan_of(odd="int4-g32")), model, tmp_path / "m", silent)
    chosen = exporter("safetensors")
    assert isinstance(chosen, Refuses)
    for scheme in ("int4-g32", "nf4-b64"):
        with pytest.raises(ExportError, match=r"two tensors would be called odd\.weight\.codes"):
            chosen.refuse(planned(plan_of(odd=scheme), model, {}), model)  # before any weight is rounded
    chosen.refuse(planned(plan_of(c_attn="int4-g32"), model, {}), model)
    named_like_it = dataclasses.replace(twin, name="odd.weight.zero_points")  # which symmetric integers have not
    model = dataclasses.replace(model, summary=dataclasses.replace(summary, others=(named_like_it,)))
    chosen.refuse(planned(plan_of(odd="int4-g32"), model, {}), model)
    with pytest.raises(ExportError, match=r"odd\.weight\.zero_points"):
        chosen.refuse(planned(plan_of(odd="int4-g32-asym"), model, {}), model)
    assert not list(tmp_path.iterdir())


def test_a_layer_with_nan_is_kept_and_counted_so(tmp_path: Path) -> None:
    model = tensor_model()
    broken = dict(model.tensors) | {"odd.weight": model.tensors["odd.weight"].clone().fill_(float("nan"))}
    summary = dataclasses.replace(model.summary, non_finite=("odd",))
    model = dataclasses.replace(model, tensors=broken, summary=summary)
    result = quantized(model, plan_of(odd="int4-g32", embed="int8-channel"))
    assert result.notes and "odd" not in result.tensors
    exporter("safetensors").export(result, model, tmp_path / "m", silent)
    assert torch.equal(load_file(tmp_path / "m")["odd.weight"].isnan(), torch.ones(7, 37, dtype=torch.bool))

"""Importance matrices of llama.cpp, in and out: against a naive loop, another reader and files written by hand."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

import workbench
from tests.deployment.exporters.llamas import folder_of
from workbench.deployment.imatrix import tensor_names, with_imatrix
from workbench.errors import DataError, MissingResultError
from workbench.models.gguf.imatrix import InputSquares, read_imatrix, write_imatrix, write_legacy
from workbench.models.layer import Layer, LayerKind
from workbench.models.model import Model
from workbench.planning.plan import Plan
from workbench.session.session import Session

FEW = {"samples": 6, "batch_size": 3, "window": 16}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return workbench.open(folder_of("llama", tmp_path_factory.mktemp("llama"), tie_word_embeddings=False))


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("text") / "calibration.txt"
    place.write_text("Once upon a time there was a little girl who had a big red ball. " * 60, encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def session(model: Model, text: Path) -> Session:
    return workbench.calibrate(model, text, **FEW)


def by_hand(model: Model, text: Path) -> dict[str, tuple[np.ndarray, int]]:
    """Sums of squared inputs, added up by hooks on the network itself."""
    from workbench.models.data.batches import batches_of
    from workbench.models.data.reading import Reading
    from workbench.steps.session_data import for_calibration

    sums: dict[str, tuple[np.ndarray, int]] = {}

    def add(name: str, x: torch.Tensor, output: torch.Tensor) -> None:
        flat = x.detach().reshape(-1, x.shape[-1]).double()
        old, count = sums.get(name, (np.zeros(flat.shape[1]), 0))
        sums[name] = old + flat.square().sum(dim=0).numpy(), count + len(flat)

    data = for_calibration(model, text, samples=6, seed=0, reading=Reading(window=16))
    layers = [layer.name for layer in model.summary.layers if layer.kind is LayerKind.LINEAR]
    for batch in batches_of(model, data, 3):
        model.run(batch, tap=add, layers=layers)
    return sums


def test_the_file_holds_the_sums_of_squared_inputs_under_the_names_of_llama_cpp(
    model: Model, session: Session, text: Path, tmp_path: Path
) -> None:
    workbench.export(session, "imatrix", tmp_path / "imatrix.gguf")
    reader = gguf.GGUFReader(tmp_path / "imatrix.gguf")
    stored = {tensor.name: tensor.data for tensor in reader.tensors}
    assert reader.fields["general.type"].contents() == "imatrix"
    assert reader.fields["imatrix.datasets"].contents() == [session.calibration.name]
    names = tensor_names(model.summary)
    expected = {names[name][0]: sums for name, sums in by_hand(model, text).items()}
    assert {name.removesuffix(".in_sum2") for name in stored if name.endswith(".in_sum2")} == set(expected)
    assert {"blk.0.attn_q.weight", "blk.1.ffn_down.weight", "output.weight"} <= set(expected)
    for name, (sums, count) in expected.items():
        np.testing.assert_allclose(stored[f"{name}.in_sum2"].reshape(-1), sums, rtol=2e-5)
        assert stored[f"{name}.counts"].tolist() == [[count]]


def test_the_older_form_holds_means_times_calls(session: Session, tmp_path: Path) -> None:
    workbench.export(session, "imatrix", tmp_path / "imatrix.dat")
    workbench.export(session, "imatrix", tmp_path / "imatrix.gguf")
    data = (tmp_path / "imatrix.dat").read_bytes()
    (number,), at, seen = struct.unpack_from("<i", data), 4, {}
    for _ in range(number):
        (length,) = struct.unpack_from("<i", data, at)
        name = data[at + 4 : at + 4 + length].decode()
        calls, size = struct.unpack_from("<ii", data, at + 4 + length)
        seen[name] = np.frombuffer(data, "<f4", size, at + 12 + length) / calls
        at += 12 + length + 4 * size
    newer = read_imatrix(tmp_path / "imatrix.gguf")
    assert list(seen) == list(newer)
    for name, means in seen.items():
        np.testing.assert_allclose(means, newer[name].means[0], rtol=1e-6)
    assert struct.unpack_from("<i", data, at)[0] == 1  # 96 tokens are one chunk


@pytest.mark.parametrize("ending", ["gguf", "dat"])
def test_a_matrix_that_was_written_rounds_as_the_calibration_does(
    model: Model, session: Session, tmp_path: Path, ending: str
) -> None:
    file = tmp_path / f"imatrix.{ending}"
    workbench.export(session, "imatrix", file)
    alone = workbench.calibrate(model, imatrix=file)
    assert alone.calibration is None
    assert "has no gradients" in alone.notes[-1]
    name = "model.layers.1.mlp.down_proj"
    plan = Plan().assign([name], weights="q4_0", algorithm="rtn-weighted")
    inputs = {layer: replace(each, by_loss=None) for layer, each in session.curvature.items()}  # all a file can hold
    session = replace(session, curvature=inputs)
    mine, theirs = (workbench.quantize(model, plan, session=each).tensors[name].arrays["blocks"] for each in
                    (session, alone))  # fmt: skip
    assert np.mean(mine == theirs) > 0.999  # the file's numbers are float32
    plain = workbench.quantize(model, plan.assign([name], algorithm="rtn")).tensors[name].arrays["blocks"]
    assert np.any(mine != plain)


def test_without_gradients_output_errors_are_scored_and_losses_refused(
    model: Model, session: Session, tmp_path: Path
) -> None:
    workbench.export(session, "imatrix", tmp_path / "imatrix.gguf")
    alone = workbench.calibrate(model, imatrix=tmp_path / "imatrix.gguf")
    name = "model.layers.0.self_attn.q_proj"
    scored = workbench.score(alone, model=model, metric="output_error", schemes=("q4_0", "q8_0"))
    weight, columns = model.weight(name).double(), torch.from_numpy(session.curvature[name].columns)
    error = workbench.quantize(model, Plan().assign([name], weights="q4_0")).bind(model).weight(name).double() - weight
    expected = float((error.square() @ columns).sum() / (weight.square() @ columns).sum())
    assert scored.sensitivities["output_error"].cells([name], ("q4_0",))[0, 0] == pytest.approx(expected, rel=1e-4)
    with pytest.raises(MissingResultError, match="needs the curvature of a calibration"):
        workbench.score(alone, model=model, schemes=("q4_0",))


def test_a_shared_table_is_rounded_and_scored_by_what_enters_the_head(text: Path, tmp_path: Path) -> None:
    model = workbench.open(folder_of("llama", tmp_path / "tied", tie_word_embeddings=True))
    session = workbench.calibrate(model, text, **FEW)
    workbench.export(session, "imatrix", tmp_path / "imatrix.gguf")
    alone = workbench.calibrate(model, imatrix=tmp_path / "imatrix.gguf")
    table = "model.embed_tokens"
    plan = Plan().assign([table], weights="q4_0", algorithm="rtn-weighted")
    stored = workbench.quantize(model, plan, session=alone).tensors[table]
    columns = torch.from_numpy(session.curvature["lm_head"].columns)
    weight = model.weight(table).double()
    rounded = workbench.quantize(model, plan, session=alone).bind(model).weight(table).double()
    plain = workbench.quantize(model, plan.assign([table], algorithm="rtn")).bind(model).weight(table).double()
    assert ((rounded - weight).square() @ columns).sum() < ((plain - weight).square() @ columns).sum()
    scored = workbench.score(alone, model=model, metric="output_error", schemes=("q4_0",), algorithm="rtn-weighted")
    expected = float(((rounded - weight).square() @ columns).sum() / (weight.square() @ columns).sum())
    assert scored.sensitivities["output_error"].cells([table], ("q4_0",))[0, 0] == pytest.approx(expected, rel=1e-4)
    assert stored.scheme == "q4_0"


def test_with_data_too_the_file_replaces_the_inputs_and_leaves_the_gradients(
    model: Model, session: Session, text: Path, tmp_path: Path
) -> None:
    name = "model.layers.0.mlp.up_proj"
    ones = {"blk.0.ffn_up.weight": InputSquares(means=np.full((1, 64), 2, np.float32), counts=np.array([512]))}
    write_imatrix(tmp_path / "ones.gguf", ones, "")
    both = workbench.calibrate(model, text, imatrix=tmp_path / "ones.gguf", **FEW)
    assert (both.curvature[name].columns == 2).all()
    np.testing.assert_array_equal(both.curvature[name].rows, session.curvature[name].rows)
    assert both.calibration == session.calibration
    other = both.curvature["model.layers.1.mlp.up_proj"]
    np.testing.assert_array_equal(other.columns, session.curvature["model.layers.1.mlp.up_proj"].columns)
    assert any("ones.gguf gave the input statistics of 1 tensors; it lacks" in note for note in both.notes)


def test_experts_have_a_matrix_each(tmp_path: Path, model: Model) -> None:
    entry = InputSquares(means=np.arange(24, dtype=np.float32).reshape(3, 8), counts=np.array([100, 0, 7]))
    write_imatrix(tmp_path / "experts.gguf", {"mlp.experts": entry}, "")
    write_legacy(tmp_path / "experts.dat", {"mlp.experts": entry}, "")
    read = read_imatrix(tmp_path / "experts.gguf")["mlp.experts"]
    assert read.counts.tolist() == [100, 0, 7]
    np.testing.assert_allclose(read.means[[0, 2]], entry.means[[0, 2]], rtol=1e-6)
    older = read_imatrix(tmp_path / "experts.dat")["mlp.experts"].means.reshape(3, 8)
    np.testing.assert_allclose(older[[0, 2]], entry.means[[0, 2]], rtol=1e-6)
    assert (older[1] == 1).all()  # as llama.cpp writes an expert that saw nothing
    layer = Layer(name="mlp.experts", kind=LayerKind.EXPERTS, parameter="mlp.experts", shape=(3, 5, 8), dtype="float32",
                  axes=(0, 1, 2), row_axes=2)  # fmt: skip
    summary = replace(model.summary, layers=(layer,))
    curvature, _ = with_imatrix(summary, {}, tmp_path / "experts.gguf")
    known = curvature["mlp.experts"]
    np.testing.assert_allclose(known.importance()[[0, 4, 10, 14]], entry.means[[0, 0, 2, 2]], rtol=1e-6)
    np.testing.assert_allclose(known.importance()[7], entry.means[[0, 2]].mean(axis=0), rtol=1e-6)  # nothing was seen


def test_files_that_do_not_serve_are_refused_in_one_line(model: Model, session: Session, tmp_path: Path) -> None:
    workbench.export(session, "imatrix", tmp_path / "good.gguf")
    workbench.export(session, "imatrix", tmp_path / "good.dat")
    workbench.export(session, "gguf", tmp_path / "model.gguf", plan=Plan(), model=model)
    whole = {ending: (tmp_path / f"good.{ending}").read_bytes() for ending in ("gguf", "dat")}
    names = tensor_names(model.summary)
    wide = {names["model.layers.0.mlp.up_proj"][0]: InputSquares(means=np.ones((1, 65), np.float32), counts=np.ones(1))}
    bad = {"a.b": InputSquares(means=np.full((1, 64), np.nan, np.float32), counts=np.ones(1, np.int64))}
    write_imatrix(tmp_path / "wide.gguf", wide, "")
    write_imatrix(tmp_path / "nan.gguf", bad, "")
    other = {"a.b": InputSquares(means=np.ones((1, 4), np.float32), counts=np.ones(1))}
    write_imatrix(tmp_path / "other.gguf", other, "")
    cut = {"cut.gguf": whole["gguf"][:4000], "cut.dat": whole["dat"][:4000]}
    for name, content in {"empty.dat": b"", "text.dat": b"once upon a time there was", **cut}.items():
        (tmp_path / name).write_bytes(content)
    for name, reason in (
        ("empty.dat", "not a whole importance matrix"),
        ("text.dat", "not an importance matrix"), ("cut.gguf", "GGUF file"),
        ("cut.dat", "not a whole importance matrix"), ("model.gguf", "without an importance matrix"),
        ("wide.gguf", "has 65 values .* the layer has 64 inputs"), ("nan.gguf", "negative or infinite"),
        ("other.gguf", "matches none of the model's"), ("missing.gguf", "cannot be read"), ("", "cannot be read"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=reason) as caught:
            workbench.calibrate(model, imatrix=tmp_path / name)
        assert "\n" not in str(caught.value)
    bare = replace(session, curvature={})
    with pytest.raises(MissingResultError, match="calibrate first"):
        workbench.export(bare, "imatrix", tmp_path / "none.gguf")
    assert not (tmp_path / "none.gguf").exists()

"""Outputs from the disk: the second evaluation runs one model, and nothing stale, damaged or too large is used."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.models.networks import decoder, sequences, tokens
from workbench.cache import FOLDER_VARIABLE, cache_folder
from workbench.measurement.evaluate import evaluate
from workbench.measurement.reference import outputs
from workbench.measurement.reference.cache import ArrayCache
from workbench.measurement.reference.outputs import ReferenceOutputs


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the samples that any model runs."""
    from workbench.models.execution.network import NetworkModel

    counted: list[int] = []
    run = NetworkModel.run

    def count(self, batch, *args, **kwargs):
        counted.append(len(next(iter(batch.values()))))
        return run(self, batch, *args, **kwargs)

    monkeypatch.setattr(NetworkModel, "run", count)
    return counted


@pytest.mark.parametrize("coded", [False, True])
def test_a_second_plan_costs_one_pass_and_the_figures_stay(coded, runs, tmp_path, monkeypatch) -> None:
    if coded:
        monkeypatch.setattr(outputs, "CODED_FROM", 1)
    cache, data = ArrayCache(folder=tmp_path), tokens()
    first = evaluate(decoder(0), decoder(1), data, batch_size=4, cache=cache)
    assert sum(runs) == 2 * len(data) + 1  # the first sample once more: whether the model is repeatable
    runs.clear()
    again = evaluate(decoder(0), decoder(1), data, batch_size=4, cache=cache)
    assert sum(runs) == len(data) + 1
    plain = evaluate(decoder(0), decoder(1), data, batch_size=4)
    for name, metric in plain.items():
        assert np.array_equal(first[name].per_sample, again[name].per_sample)
        assert again[name].value == pytest.approx(metric.value, rel=2e-4)
        assert again[name].baseline == pytest.approx(metric.baseline, rel=1e-6)
    assert np.array_equal(plain["kl"].per_sample, first["kl"].per_sample)  # coded alike without a disk


def test_a_model_that_computes_something_else_is_noticed(runs, tmp_path) -> None:
    cache, data, model = ArrayCache(folder=tmp_path), tokens(), decoder(0)
    evaluate(model, decoder(1), data, cache=cache)
    changed = decoder(2)
    changed = type(changed)(
        dataclasses.replace(changed.summary, fingerprint=model.summary.fingerprint), changed.body, changed.inputs
    )
    cache = ArrayCache(folder=tmp_path)  # as another process has
    result = evaluate(changed, decoder(1), data, cache=cache)
    assert result["kl"].value == evaluate(decoder(2), decoder(1), data)["kl"].value
    assert evaluate(changed, decoder(1), data, cache=cache)["kl"].value == result["kl"].value


def test_damaged_files_are_computed_again(tmp_path) -> None:
    cache, data = ArrayCache(folder=tmp_path), sequences()
    expected = evaluate(decoder(0), decoder(1), tokens(), cache=cache)["kl"].value
    for path in sorted(tmp_path.rglob("*.safetensors")):
        whole = path.read_bytes()
        for damaged in (whole[:-3], whole[:-1] + bytes([whole[-1] ^ 1]), b"", b"\xff" * 64):
            path.write_bytes(damaged)
            assert evaluate(decoder(0), decoder(1), tokens(), cache=cache)["kl"].value == expected
    assert len(data)


def test_the_folder_keeps_its_bound_and_a_failing_disk_costs_nothing(tmp_path, monkeypatch) -> None:
    cache = ArrayCache(folder=tmp_path / "some", most_bytes=2500)
    for number in range(5):
        assert cache.store(f"key {number}", "000000", {"output": np.zeros(250, np.float32)})
        size = sum(path.stat().st_size for path in (tmp_path / "some").rglob("*") if path.is_file())
        assert size <= 2500 + 400  # headers of files
    assert cache.load("key 4", "000000") is not None and cache.load("key 0", "000000") is None
    assert not cache.store("large", "000000", {"output": np.zeros(1000, np.float32)})
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    assert not ArrayCache(folder=blocked).store("key", "000000", {"output": np.zeros(2)})
    assert evaluate(decoder(0), decoder(1), tokens(), cache=ArrayCache(folder=blocked))["kl"].value > 0
    monkeypatch.setenv(FOLDER_VARIABLE, "")
    assert cache_folder("outputs") is None
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert cache_folder("outputs") == tmp_path / "outputs"


@pytest.mark.skipif(os.name == "nt", reason="who may write is not said by a mode there")
def test_a_cache_that_others_may_write_into_is_none(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    (tmp_path / "outputs").mkdir()
    assert cache_folder("outputs") == tmp_path / "outputs"
    (tmp_path / "outputs").chmod(0o777)
    assert cache_folder("outputs") is None
    (tmp_path / "outputs").chmod(0o700)
    status = os.stat(tmp_path)
    monkeypatch.setattr(Path, "stat", lambda path: os.stat_result((0o40700, *status[1:4], 12345, *status[5:])))
    assert cache_folder("outputs") is None


def test_views_of_a_model_are_never_stored(tmp_path) -> None:
    model = decoder(0)
    name = model.summary.layers[0].name
    view = model.with_weights({name: torch.zeros_like(model.weight(name))})
    evaluate(view, decoder(1), tokens(), cache=ArrayCache(folder=tmp_path))
    assert not list(tmp_path.rglob("*.safetensors"))


def test_what_was_computed_now_is_not_compared_and_what_lay_there_is_never_mixed_with_it(runs, tmp_path) -> None:
    data, model = tokens(), decoder(0)
    count = len(data)
    evaluate(model, decoder(1), data, batch_size=4, cache=ArrayCache(folder=tmp_path))
    next(tmp_path.rglob("000000.safetensors")).unlink()
    changed = decoder(2)
    changed = type(changed)(
        dataclasses.replace(changed.summary, fingerprint=model.summary.fingerprint), changed.body, changed.inputs
    )
    runs.clear()
    cache = ArrayCache(folder=tmp_path)
    result = evaluate(changed, decoder(1), data, batch_size=4, cache=cache)
    assert result["kl"].value == evaluate(decoder(2), decoder(1), data, batch_size=4)["kl"].value
    runs.clear()
    known = ReferenceOutputs(model=changed, data=data, batch_size=4, cache=cache)
    assert sum(len(known.run(number, batch)) for number, batch in enumerate(data.batches(4))) == count and not runs

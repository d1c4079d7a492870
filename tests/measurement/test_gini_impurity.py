"""Doubt of answers against plain sums; the sentence only where the calibration data are easier."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tests.models.networks import Rows, convolutions, images, model_of
from workbench.measurement import gini_impurity
from workbench.measurement.gini_impurity import confidence_note, impurities
from workbench.measurement.reference.cache import ArrayCache
from workbench.measurement.reference.outputs import ReferenceOutputs
from workbench.models.data.batches import samples_of
from workbench.models.execution.network import NetworkModel
from workbench.models.summary import OutputKind


def scaled(factor: float, seed: int) -> Rows:
    return Rows(inputs=factor * images(40, seed).tensors["inputs"])


def classifier() -> NetworkModel:
    """Logits in proportion to the inputs: large ones make it confident."""
    torch.manual_seed(0)
    return model_of(nn.Sequential(nn.Flatten(), nn.Linear(128, 3)), OutputKind.CLASS_LOGITS)


def test_gini_impurity_is_one_minus_the_sum_of_squared_probabilities() -> None:
    model, data = convolutions(), images(10)
    p = model.run(data.tensors).double().softmax(-1)
    expected = (p * (1 - p)).sum(-1).detach().numpy()
    np.testing.assert_allclose(impurities(model, data, batch_size=3), expected, rtol=1e-5)


def test_easier_calibration_data_are_named_and_like_ones_are_not() -> None:
    model = classifier()
    easy, hard = scaled(30.0, 1), scaled(0.5, 2)
    sentence = confidence_note(model, easy, hard)
    share = impurities(model, easy).mean() / impurities(model, hard).mean()
    assert share < 0.8 and f"too low, about {share:.2g} of" in sentence and "calibrate on data like these" in sentence
    assert confidence_note(model, hard, easy) == "" == confidence_note(model, scaled(0.5, 3), hard)


@pytest.mark.parametrize("batch_size", [1, 7])
def test_the_first_samples_are_enough(batch_size: int) -> None:
    torch.manual_seed(0)
    assert 64 <= len(impurities(convolutions(), images(300), batch_size)) < 80


def test_outputs_that_an_evaluation_left_are_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, data, cache = convolutions(), images(10), ArrayCache(folder=tmp_path)
    expected = impurities(model, data, batch_size=4)
    known = ReferenceOutputs(model=model, data=data, batch_size=4, cache=cache)
    for number, batch in enumerate(data.batches(4)):
        known.run(number, batch)
    sizes: list[int] = []
    run = type(model).run
    monkeypatch.setattr(
        type(model), "run", lambda self, batch, **how: sizes.append(samples_of(batch)) or run(self, batch, **how)
    )
    for own, ran in ((cache, []), (ArrayCache(folder=tmp_path), [1])):  # another process's are compared once
        np.testing.assert_array_equal(impurities(model, data, batch_size=4, cache=own), expected)
        assert sizes == ran
    sizes.clear()
    empty = ArrayCache(folder=tmp_path / "empty")
    impurities(model, data, batch_size=4, cache=empty)
    assert sizes == [4, 4, 2] and empty.load(known.key, f"{0:06}") is None  # nor are outputs stored for it


def test_no_more_samples_run_once_they_are_enough_and_all_do_where_they_are_not(tmp_path: Path) -> None:
    model, data, cache = convolutions(), images(10), ArrayCache(folder=tmp_path)
    whole = impurities(model, data, batch_size=4)
    for _ in range(2):  # the second time from the disk
        np.testing.assert_array_equal(impurities(model, data, 4, cache, enough=lambda means: len(means) > 3), whole[:4])
    np.testing.assert_array_equal(impurities(model, data, 4, cache, enough=lambda means: len(means) > 5), whole[:8])
    np.testing.assert_array_equal(impurities(model, data, 4, cache), whole)
    np.testing.assert_array_equal(impurities(model, data, 4, cache, enough=lambda means: len(means) > 3), whole)


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0, 3.0, 6.0, 30.0])
def test_looking_at_fewer_samples_says_the_same(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    model, own, other = classifier(), scaled(factor, 1), scaled(2.0, 2)
    early = confidence_note(model, own, other, batch_size=8)
    monkeypatch.setattr(gini_impurity, "_enough_samples", lambda others: lambda means: False)
    assert confidence_note(model, own, other, batch_size=8) == early

"""A weight that several layers use is rounded for all of its uses: the head of a tied model is its embedding, too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import workbench
from tests.deployment.exporters.llamas import folder_of
from workbench.measurement.calibrate import calibrate
from workbench.measurement.second_moments import SecondMoments
from workbench.measurement.shared_weights import curvature_of
from workbench.models.data.datasets import open_dataset
from workbench.numerics.curvature import predicted_loss, predicted_loss_full
from workbench.numerics.rounding.round_weight import round_weight

TABLE, HEAD = "model.embed_tokens", "lm_head"


@pytest.fixture(params=[True, False], ids=["tied", "apart"])
def case(request, tmp_path):
    model = workbench.open(folder_of("llama", tmp_path / "llama", tie_word_embeddings=request.param))
    torch.manual_seed(0)
    path = tmp_path / "tokens.npy"
    np.save(path, torch.randint(model.inputs.vocabulary, (16, 12)).numpy())
    data = open_dataset(path, model, samples=16, seed=0)
    return model, data, calibrate(model, data).curvature, request.param


def test_rows_and_columns_weigh_as_much_as_those_of_all_uses_together(case):
    model, _, curvature, tied = case
    known, uses = curvature_of(model.summary, curvature, TABLE), [curvature[TABLE], curvature[HEAD]][: 1 + tied]
    whole = sum(np.outer(use.rows, use.weighing[0]) for use in uses)
    np.testing.assert_allclose(np.outer(known.rows, known.weighing[0]).sum(axis=0), whole.sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(np.outer(known.rows, known.weighing[0]).sum(axis=1), whole.sum(axis=1), rtol=1e-9)


def test_each_weight_is_as_important_as_it_is_to_all_uses(case):
    model, _, curvature, tied = case
    uses = [curvature[TABLE], curvature[HEAD]][: 1 + tied]
    expected = sum(np.outer(use.rows, use.weighing[0]) for use in uses) if tied else curvature[TABLE].weighing
    np.testing.assert_allclose(curvature_of(model.summary, curvature, TABLE).importance(), expected, rtol=1e-5)


def test_the_moment_is_that_of_all_uses_and_diagonal_for_what_is_looked_up(case):
    model, data, curvature, tied = case
    moments = SecondMoments(model, data, curvature)
    expected, shares = np.diag(curvature[TABLE].weighing[0]), [curvature[TABLE].rows.sum(), curvature[HEAD].rows.sum()]
    if tied:
        expected = (expected * shares[0] + moments[HEAD].full.astype(np.float64) * shares[1]) / sum(shares)
    np.testing.assert_allclose(curvature_of(model.summary, moments, TABLE).full, expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("algorithm", ["rtn-weighted", "gptq"])
def test_rounding_a_table_costs_less_than_by_one_of_its_uses(case, algorithm):
    model, data, curvature, tied = case
    moments = SecondMoments(model, data, curvature) if algorithm == "gptq" else curvature
    uses = [moments[TABLE], moments[HEAD]][: 1 + tied]
    weight = model.weight(TABLE)

    def loss(known, by):
        rounded = round_weight(TABLE, weight, "int3-g16-asym", by, known).values
        if algorithm == "gptq":
            return sum(predicted_loss_full(rounded - weight, replace(use, outputs=None)) for use in uses)
        return sum(predicted_loss(rounded, use, weight) for use in uses)

    together = loss(curvature_of(model.summary, moments, TABLE), algorithm)
    assert together < loss(None, "rtn-clip")
    if tied and algorithm == "rtn-weighted":
        assert together < min(loss(use, algorithm) for use in uses)


@pytest.mark.parametrize("algorithm", ["gptq", "gptaq"])
def test_a_whole_model_is_rounded_with_its_table(case, algorithm, tmp_path):
    model, _, _, _ = case
    session = workbench.calibrate(model, tmp_path / "tokens.npy", samples=16)
    names = [layer.name for layer in model.summary.stored if not layer.keep]
    plan = workbench.Plan().assign(names, weights="int4-g16-asym", algorithm=algorithm)
    quantized = workbench.quantize(model, plan, session=session)
    assert TABLE in quantized.tensors and not quantized.left

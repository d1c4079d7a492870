"""Transforms on models: the outputs stay, rounding costs less, and what cannot be done is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.measurement.moments import whole_curvature
from tests.models.networks import convolutions
from tests.quantization.transforms.networks import After, Fused, Gated, language_model, sentences, with_outliers
from workbench.errors import CannotRunError, MissingResultError, PlanError, TransformError
from workbench.measurement.calibrate import calibrate
from workbench.measurement.evaluate import evaluate
from workbench.models.sources.weights_only import WeightsOnlyModel
from workbench.models.summary import quantizable
from workbench.planning import transform_names as names
from workbench.planning.budgets import Budgets
from workbench.planning.plan import Plan
from workbench.planning.search.search import search
from workbench.planning.totals import plan_totals
from workbench.quantization.quantize import quantize
from workbench.quantization.train import train
from workbench.quantization.transforms import apply
from workbench.quantization.transforms.apply import TRANSFORMS, transform
from workbench.sensitivity.score import score

ALL = ("awq", "smoothquant", "rotation", "rotation-3", "rotation-heads")


def plan_for(model, *transforms, **assignment):
    names = [layer.name for layer in quantizable(model.summary.layers)]
    return replace(Plan().assign(names, **assignment), transforms=transforms)


def kl(model, plan, data, **options):
    return evaluate(model, quantize(model, plan, data=data, **options).bind(model), data)["kl"].value


@pytest.mark.parametrize("offset", [0.0, 1.0])
@pytest.mark.parametrize("name", ALL)
def test_the_outputs_stay_and_the_model_is_untouched(name, offset):
    model, data = with_outliers(language_model(Gated, offset=offset)), sentences()
    before = {layer.name: model.weight(layer.name).clone() for layer in model.summary.layers}
    plan = plan_for(model, name, weights="int4-g8-asym", inputs="int8-token")
    transformed = transform(model, plan, curvature=whole_curvature(model, data), data=data)
    assert 0 < transformed.deviation < 1e-5 and transformed.report and not transformed.notes
    with torch.no_grad():
        for batch in data.batches(3):
            exact = model.run(batch)
            assert float((transformed.model.run(batch) - exact).abs().max()) < 1e-5 * float(exact.abs().max())
    assert any(not torch.equal(transformed.model.weight(layer), before[layer]) for layer in before)
    assert all(torch.equal(model.weight(layer), before[layer]) for layer in before)


@pytest.mark.parametrize("name", ALL)
def test_the_rewritten_curvature_is_that_of_the_rewritten_model(name):
    model, data = language_model(Gated), sentences()
    plan = plan_for(model, name, weights="int4-g8-asym", inputs="int8-tensor", range_method="min-max")
    ranges = {(layer.name, "input"): None for layer in model.summary.layers}
    known = whole_curvature(model, data, weighed=False)
    transformed = transform(model, plan, curvature=known, data=data, ranges=ranges)
    again, expected = calibrate(transformed.model, data), whole_curvature(transformed.model, data, weighed=False)
    for layer in expected:
        if model.summary.by_name[layer].kind.value == "linear" and layer != "out":
            mine, true = transformed.curvature[layer], expected[layer]
            np.testing.assert_allclose(mine.full, true.full, rtol=1e-3, atol=1e-4 * np.abs(true.full).max())
            np.testing.assert_allclose(mine.columns, true.columns, rtol=1e-3, atol=1e-5 * true.columns.max())
            if not name.startswith("rotation"):
                np.testing.assert_allclose(mine.rows, true.rows, rtol=0.5)  # a factor's square would be far more
            largest = np.abs(true.outputs).max()
            np.testing.assert_allclose(mine.outputs, true.outputs, rtol=1e-2, atol=1e-3 * largest)
            known = transformed.ranges[layer, "input"]
            if known is not None:
                assert max(-known.low, known.high) == pytest.approx(again.statistics[layer, "input"].absmax, rel=1e-4)


@pytest.mark.parametrize("name", ["awq", "smoothquant", "rotation-3"])
def test_what_weighs_the_columns_is_that_of_the_rewritten_model(name):
    model, data = language_model(Gated), sentences()
    plan = plan_for(model, name, weights="int4-g8-asym", inputs="int8-tensor", range_method="min-max")
    known = whole_curvature(model, data)
    transformed = transform(model, plan, curvature=known, data=data)
    for layer, true in whole_curvature(transformed.model, data).items():
        mine = transformed.curvature[layer]
        scaled = not name.startswith("rotation") and not np.array_equal(mine.rows, known[layer].rows)
        if model.summary.by_name[layer].kind.value == "linear" and layer != "out" and not scaled:
            assert (mine.weighing >= 0).all() and mine.weighing.shape == true.weighing.shape
            share = true.full.trace() / mine.full.trace()  # the rows have what the columns lack
            np.testing.assert_allclose(mine.full * share, true.full, rtol=1e-3, atol=1e-4 * np.abs(true.full).max())


def test_awq_wins_where_a_few_inputs_are_large():
    model, data = with_outliers(language_model(Gated)), sentences()
    result = calibrate(model, data)
    plain = plan_for(model, weights="int3-g16-asym")
    scaled = replace(plain, transforms=("awq",))
    before, after = (kl(model, plan, data, curvature=result.curvature) for plan in (plain, scaled))
    assert after < before / 2
    transformed = transform(model, scaled, curvature=result.curvature, data=data)
    assert all(change.after <= change.before for change in transformed.report)
    assert next(change for change in transformed.report if change.source == "body.0.one.gain").alpha
    scaled, plain = calibrate(transformed.model, data).moments["body.0.a"], result.moments["body.0.a"]
    assert np.ptp(np.log(scaled)) < np.ptp(np.log(plain))


def test_smoothquant_wins_where_static_ranges_span_outliers():
    model, data = with_outliers(language_model(Gated)), sentences()
    result = calibrate(model, data)
    plain = plan_for(model, weights="int8-channel", inputs="int8-tensor")
    ranges = {
        (layer, tap): apply.range_method("min-max").range(item, apply.parse_scheme("int8-tensor"))
        for (layer, tap), item in result.statistics.items() if tap == "input" and layer != "ids"
    }  # fmt: skip
    smooth = replace(plain, transforms=("smoothquant",))
    before, after = (kl(model, p, data, curvature=result.curvature, ranges=ranges) for p in (plain, smooth))
    assert after < before / 5
    transformed = transform(model, smooth, curvature=result.curvature, data=data, ranges=ranges)
    assert next(change for change in transformed.report if change.source == "body.0.one.gain").alpha
    assert transformed.ranges["body.0.a", "input"].high < ranges["body.0.a", "input"].high / 4


def test_rotation_wins_where_channels_are_outliers():
    model, data = with_outliers(language_model(Gated), factor=60.0), sentences()
    plain = plan_for(model, weights="int4-channel", inputs="int8-token")
    before = kl(model, plain, data)
    assert kl(model, replace(plain, transforms=("rotation",)), data) < before / 2


def test_a_rotation_unties_the_head_and_counts_it():
    model, data = language_model(Gated), sentences()
    plan = plan_for(model, "rotation", weights="int8-channel")
    result = quantize(model, plan, data=data)
    assert result.changes.untied == ("out",) and result.summary.by_name["out"].tied_to is None
    assert set(result.changes.weights) == {"ids", "out"}
    extra = plan_totals(model.summary, plan).nbytes - plan_totals(model.summary, replace(plan, transforms=())).nbytes
    assert extra == model.summary.by_name["ids"].nbytes
    bits = [plan_totals(model.summary, replace(plan, transforms=t)).bits_per_weight for t in ((), ("rotation",))]
    assert bits[0] == bits[1]
    assert plan_totals(model.summary, replace(plan, transforms=("awq",))).nbytes + extra == (
        plan_totals(model.summary, plan).nbytes
    )


def test_a_search_keeps_the_plans_transforms_and_counts_their_bytes():
    model = language_model(Gated)
    table = score(model, "weight_error", ["int4-g8", "int8-channel"])
    summary = model.summary
    base, budget = Plan(transforms=("rotation", "awq")), 9000
    plan = search(summary, table, budgets=Budgets(nbytes=budget), base=base)
    assert plan.transforms == base.transforms and plan_totals(summary, plan).nbytes <= budget
    plain = search(summary, table, budgets=Budgets(nbytes=budget), base=Plan())
    assert plan_totals(summary, plan).nbytes - 4 * 24 * 16 < plan_totals(summary, plain).nbytes <= budget


def test_one_seed_gives_the_same_bits_and_another_others():
    model, data = language_model(Gated), sentences()
    first, again, other = (
        quantize(model, plan_for(model, name, weights="int4-g8"), data=data)
        for name in ("rotation", "rotation", "rotation-1")
    )
    codes = [result.tensors["body.0.a"].arrays["codes"] for result in (first, again, other)]
    assert np.array_equal(codes[0], codes[1]) and not np.array_equal(codes[0], codes[2])


def test_nan_in_one_layer_is_named_and_the_others_go_on():
    model, data = language_model(Gated), sentences()
    actual = calibrate(model, data)
    broken = model.weight("body.1.e").clone()
    broken[2, 3] = torch.nan
    bad = model.with_weights({"body.1.e": broken})
    result = quantize(bad, plan_for(model, "awq", weights="int4-g8"), curvature=actual.curvature)
    assert "body.1.e" not in result.tensors and "body.0.e" in result.tensors
    assert any("body.1.e holds NaN" in note and "awq left" in note for note in result.notes)
    assert any("could not be checked" in note for note in result.notes)
    with pytest.raises(TransformError, match="body.1.e holds NaN"):
        quantize(bad, plan_for(model, "rotation", weights="int4-g8"))


def test_what_is_missing_is_named():
    model, data = language_model(Gated), sentences()
    with pytest.raises(MissingResultError, match="awq needs the second moment of the inputs of body.0.a"):
        quantize(model, plan_for(model, "awq", weights="int4-g8"))
    with pytest.raises(MissingResultError, match="smoothquant needs calibration data"):
        quantize(model, plan_for(model, "smoothquant", weights="int8-channel", inputs="int8-token"))
    with pytest.raises(MissingResultError, match="calibrated again"):
        transform(model, plan_for(model, "rotation", weights="int8-channel", inputs="int8-tensor"))
    with pytest.raises(PlanError, match="awg.*awq"):
        quantize(model, plan_for(model, "awg", weights="int4-g8"))
    note = quantize(model, plan_for(model, "smoothquant", weights="int4-g8"), data=data).notes
    assert note == ("the plan quantizes no inputs that could be smoothed: smoothquant changed nothing",)


def test_models_that_cannot_be_rewritten():
    model = language_model(After)
    with pytest.raises(TransformError, match="has no place"):
        quantize(model, plan_for(model, "awq", weights="int4-g8"))
    with pytest.raises(TransformError, match="no attention whose values"):
        quantize(model, plan_for(model, "rotation-heads", weights="int4-g8"))
    with pytest.raises(TransformError, match="native_layer_norm"):
        quantize(language_model(Fused), Plan(transforms=("rotation",)))
    with pytest.raises(TransformError, match="inputs of .* are not known"):
        quantize(convolutions(), Plan(transforms=("awq",)))
    bare = WeightsOnlyModel(replace(model.summary, cannot_run="weights only"), None)
    with pytest.raises(CannotRunError, match="cannot be transformed.*weights only"):
        quantize(bare, Plan(transforms=("awq",)))


def test_a_change_of_the_outputs_does_not_pass(monkeypatch):
    model, data = language_model(Gated), sentences()
    result = calibrate(model, data)
    right = apply.Draft.multiply_columns
    monkeypatch.setattr(apply.Draft, "multiply_columns", lambda self, name, factor: right(self, name, factor * 1.001))
    with pytest.raises(TransformError, match="outputs of Gated differ by"):
        quantize(model, plan_for(model, "awq", weights="int3-g8"), curvature=result.curvature, data=data)


def test_every_transform_has_a_name_that_finds_it():
    assert [apply.find_transform(each.name) for each in TRANSFORMS] == list(TRANSFORMS)
    assert apply.find_transform("rotation-7").seed == 7
    assert tuple(each.name for each in TRANSFORMS) == names.REWRITES
    assert set(names.KNOWN) - set(names.REWRITES) == {"bias-correction", "norm-reestimation"}
    names.check_names([*names.KNOWN, "rotation-7"])
    with pytest.raises(PlanError, match="no transform 'rotatoin'; the closest are rotation"):
        names.check_names(["rotatoin"])


def test_training_refuses_a_plan_with_transforms():
    model, data = language_model(Gated), sentences()
    with pytest.raises(PlanError, match="the plan transforms the model .awq."):
        train(model, plan_for(model, "awq", weights="int4-g8"), data, steps=1)

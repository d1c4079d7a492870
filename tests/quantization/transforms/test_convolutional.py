"""Folding, equalizing and correcting convolutional networks by the names in a plan."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from tests.measurement.moments import whole_curvature
from tests.quantization.transforms.convolutional import Chain, Plain, Residual, Stopped, classifier, pictures
from workbench.errors import CannotRunError, MissingResultError, TransformError
from workbench.measurement.calibrate import calibrate
from workbench.measurement.evaluate import evaluate
from workbench.models.sources.weights_only import WeightsOnlyModel
from workbench.numerics.formats import parse_scheme
from workbench.numerics.ranges import range_method
from workbench.planning.plan import Plan
from workbench.quantization.quantize import quantize
from workbench.quantization.transforms.apply import transform

ORDERS = (("fold-norms",), ("equalize",), ("fold-norms", "equalize"), ("equalize", "fold-norms"))


def plan_for(model, *transforms, scheme="int4-tensor", **options):
    return replace(Plan.uniform(model.summary.stored, scheme, **options), transforms=transforms)


def outputs(model, data):
    with torch.no_grad():
        return model.run(next(data.batches(len(data))))


@pytest.mark.parametrize("names", ORDERS)
@pytest.mark.parametrize("network", [Chain, Residual])
def test_the_outputs_stay_and_the_model_is_untouched(network, names):
    model, data = classifier(network), pictures()
    before = {layer.name: model.weight(layer.name).clone() for layer in model.summary.layers}
    exact = outputs(model, data)
    done = transform(model, plan_for(model, *names), data=data)
    assert 0 < done.deviation < 1e-5 and {change.transform for change in done.report} == set(names)
    result = outputs(done.model, data)
    assert float((result - exact).abs().max()) < 1e-5 * float(exact.abs().max())
    assert any(not torch.equal(done.model.weight(name), before[name]) for name in before)
    assert all(torch.equal(model.weight(name), before[name]) for name in before)


@pytest.mark.parametrize("names", ORDERS)
def test_the_rewritten_curvature_is_that_of_the_rewritten_model(names):
    model, data = classifier(), pictures()
    done = transform(model, plan_for(model, *names), curvature=whole_curvature(model, data, weighed=False), data=data)
    for layer, true in whole_curvature(done.model, data, weighed=False).items():
        mine = done.curvature[layer]
        np.testing.assert_allclose(mine.full, true.full, rtol=1e-3, atol=1e-5 * np.abs(true.full).max())
        if layer == "a" or names == ("fold-norms",):  # where inputs stay, rows follow exactly
            first, other = mine.rows * mine.columns.sum(), true.rows * true.columns.sum()
            np.testing.assert_allclose(first, other, rtol=1e-3, atol=1e-9)


def test_folded_weights_are_those_that_torch_fuses():
    model, data = classifier(), pictures()
    done = transform(model, plan_for(model, "fold-norms"), data=data)
    network = model.body.network
    for layer, norm, fuse in (
        ("a", "na", fuse_conv_bn_eval), ("b", "nb", fuse_conv_bn_eval), ("e", "ne", fuse_linear_bn_eval),
        ("f", "nf", fuse_linear_bn_eval),
    ):  # fmt: skip
        behind = deepcopy(network.get_submodule(norm))
        if behind.weight is None:
            behind.weight, behind.bias = nn.Parameter(torch.ones(3)), nn.Parameter(torch.zeros(3))
        fused = fuse(network.get_submodule(layer), behind)
        torch.testing.assert_close(done.model.weight(layer), fused.weight.flatten(1).detach(), rtol=1e-5, atol=1e-6)
        own = f"{layer}.bias" in done.changes.others
        bias = done.model.other(f"{layer}.bias" if own else f"{norm}.bias")
        torch.testing.assert_close(bias, fused.bias.detach(), rtol=1e-5, atol=1e-6)
        assert own == (layer in "af") and not bool(done.model.other(f"{norm}.running_mean").any())
    assert done.folded == ("na", "nb", "ne", "nf")


@pytest.mark.parametrize("names", [("equalize",), ("fold-norms", "equalize")])
def test_equalized_channels_have_one_largest_weight_on_both_sides(names):
    model, data = classifier(), pictures()
    done = transform(model, plan_for(model, *names), data=data)
    pairs = {change.source: change.layers for change in done.report if change.transform == "equalize"}
    assert pairs == {"a": ("b",), "b": ("c",), "c": ("d",), "d": ("e",), "e": ("f",)}
    weights = {name: done.model.weight(name).abs() for name in "abcdef"}
    behind = {
        "a": weights["b"].amax(1), "b": weights["c"].amax(0),
        "c": weights["d"].reshape(2, 2, 3, 9).amax((1, 3)).flatten(), "d": weights["e"].reshape(10, 4, 4).amax((0, 2)),
        "e": weights["f"].amax(0),
    }  # fmt: skip
    for name, largest in behind.items():
        torch.testing.assert_close(weights[name].amax(1), largest, rtol=5e-3, atol=0)


def test_of_a_residual_block_the_inner_channels_alone_are_free():
    model, data = classifier(Residual), pictures()
    done = transform(model, plan_for(model, "equalize"), data=data)
    assert [(change.source, change.layers) for change in done.report] == [("one", ("two",))]


def test_equalizing_wins_where_channels_differ_and_one_scale_serves_all():
    model, data = classifier(), pictures(64)
    factor = torch.logspace(-3, 0, 6)
    kernels = model.weight("d") / factor.reshape(2, 1, 3, 1).expand(2, 2, 3, 9).reshape(4, 27)
    model = model.with_weights({"c": model.weight("c") * factor[:, None], "d": kernels})
    kl = {
        names: evaluate(model, quantize(model, plan_for(model, *names), data=data).bind(model), data)["kl"].value
        for names in ((), ("equalize",))
    }
    assert kl["equalize",] < kl[()] / 2


@pytest.mark.parametrize("layer", ["a", "b", "d", "e"])
def test_corrected_outputs_have_the_old_mean(layer):
    """Of one rounded layer with exact inputs; ``b`` and ``e`` have a norm and no bias."""
    model, data = classifier(), pictures()
    plan = replace(Plan().assign([layer], weights="int3-tensor"), transforms=("bias-correction",))
    after = {"a": "na", "b": "nb", "d": "d", "e": "ne"}[layer]

    def mean(view):
        seen = []
        handle = model.body.network.get_submodule(after).register_forward_hook(lambda m, a, o: seen.append(o.clone()))
        outputs(view, data)
        handle.remove()
        return seen[0].transpose(0, 1).flatten(1).mean(dim=1)

    true = mean(model)
    plain, corrected = (
        mean(quantize(model, each, data=data).bind(model)) for each in (replace(plan, transforms=()), plan)
    )
    assert float((plain - true).abs().max()) > 1e-3
    torch.testing.assert_close(corrected, true, rtol=1e-4, atol=1e-5)


def test_reestimated_norms_see_inputs_of_their_own_mean_and_variance():
    model, data = classifier(), pictures(64)
    plan = replace(Plan().assign(["a"], weights="int3-tensor"), transforms=("norm-reestimation",))
    result = quantize(model, plan, data=data)
    a = model.body.network.get_submodule("a")
    x = next(data.batches(64))["inputs"]
    shape = a.weight.shape
    with torch.no_grad():
        old = a(x)
        rounded = parse_scheme("int3-tensor").decode(result.tensors["a"]).reshape(shape)
        new = torch.nn.functional.conv2d(x, rounded, a.bias, padding=1)
    mean = model.other("na.running_mean") + new.mean((0, 2, 3)) - old.mean((0, 2, 3))
    variance = model.other("na.running_var") * new.var((0, 2, 3)) / old.var((0, 2, 3))
    torch.testing.assert_close(result.others["na.running_mean"], mean, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(result.others["na.running_var"], variance, rtol=1e-4, atol=1e-5)


def test_corrections_do_not_add_up_twice_and_leave_folded_norms_alone():
    model, data = classifier(), pictures(64)
    alone, both = (
        quantize(model, plan_for(model, *names), data=data)
        for names in (("norm-reestimation",), ("bias-correction", "norm-reestimation"))
    )
    torch.testing.assert_close(both.others["nb.running_mean"], alone.others["nb.running_mean"], rtol=0.2, atol=0.1)
    with pytest.raises(TransformError, match="norm-reestimation: Chain has no batch norm.*fold-norms folded na, nb"):
        quantize(model, plan_for(model, "fold-norms", "norm-reestimation"), data=data)
    after = quantize(model, plan_for(model, "norm-reestimation", "equalize"), data=data)
    assert set(after.others) == {f"{n}.running_{what}" for n in ("na", "nb", "ne", "nf") for what in ("mean", "var")}


def test_static_ranges_are_taken_anew_where_inputs_were_scaled():
    model, data = classifier(), pictures()
    result = calibrate(model, data)
    scheme = parse_scheme("int8-tensor")
    ranges = {
        (layer, tap): range_method("min-max").range(item, scheme)
        for (layer, tap), item in result.statistics.items() if tap == "input"
    }  # fmt: skip
    plan = plan_for(model, "equalize", inputs="int8-tensor", range_method="min-max")
    done = transform(model, plan, data=data, ranges=ranges, curvature=result.curvature)
    again = calibrate(done.model, data)
    assert done.ranges["a", "input"] == ranges["a", "input"] and done.ranges["c", "input"] != ranges["c", "input"]
    for layer in "bcdef":
        assert done.ranges[layer, "input"].high == pytest.approx(again.statistics[layer, "input"].maximum, rel=1e-4)


def test_what_is_not_there_is_named():
    data = pictures()
    for network, names, message in (
        (Plain, ["fold-norms"], "Plain has no batch norm that could be folded: behind its first layer a comes relu"),
        (Stopped, ["fold-norms"], "the batch norm n was not folded: it normalises by the statistics of each batch"),
        (Stopped, ["equalize"], "no two layers that could be equalized: the channels of a meet .*norm"),
        (Stopped, ["norm-reestimation"], "norm-reestimation: Stopped has no batch norm with running statistics"),
        (Plain, ["bias-correction"], "bias-correction: a has neither a bias nor a batch norm behind it"),
    ):
        model = classifier(network)
        with pytest.raises(TransformError, match=message):
            quantize(model, plan_for(model, *names), data=data)


@pytest.mark.parametrize("name", ["bias-correction", "norm-reestimation"])
def test_a_correction_needs_the_calibrations_data_and_a_model_that_runs(name):
    model = classifier()
    with pytest.raises(MissingResultError, match=f"{name} compares .*calibrate first .--session S.qwb"):
        quantize(model, plan_for(model, name))
    bare = WeightsOnlyModel(replace(model.summary, cannot_run="weights only", layers=(), others=()), None)
    with pytest.raises(CannotRunError, match="weights only|cannot be run"):
        quantize(bare, Plan(transforms=(name,)), data=pictures())


def test_a_layer_that_has_neither_is_noted():
    model, data = classifier(), pictures()
    result = quantize(model, plan_for(model, "bias-correction"), data=data)
    assert result.notes == ("bias-correction left c alone: no bias or batch norm takes their mean",)
    assert set(result.others) == {"a.bias", "d.bias", "f.bias", "nb.running_mean", "ne.running_mean"}


@pytest.mark.parametrize("name", ["fold-norms", "equalize"])
def test_nan_in_one_layer_is_named_and_the_others_go_on(name):
    model, data = classifier(), pictures()
    broken = model.weight("b").clone()
    broken[0, 0] = torch.nan
    result = quantize(model.with_weights({"b": broken}), plan_for(model, name), data=data)
    assert any("b " in note and "NaN" in note and f"{name} left" in note for note in result.notes)
    assert "b" not in result.tensors and "f" in result.tensors

"""Losses of activations against autograd by hand and measured divergences; the key-value cache; the search."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.models.networks import convolutions, decoder, images, recurrent, sequences, tokens
from workbench.errors import MissingResultError, ModelError
from workbench.measurement.gradients import drawn_gradient, sample_generators
from workbench.models.kv_cache import makes_keys_or_values
from workbench.models.summary import OutputKind
from workbench.numerics.formats import parse_scheme
from workbench.numerics.ranges import Range
from workbench.planning.budgets import Budgets
from workbench.planning.plan import Plan
from workbench.planning.search.search import search
from workbench.quantization.quantize import quantize
from workbench.sensitivity.score import score

SCHEMES = ("int8-token", "int6-token", "int4-token", "fp8-e4m3-token")


def test_the_loss_is_noise_times_gradient_by_hand():
    """Gradients at the input of ``up`` by autograd through a copy of the rest of the network."""
    model, data = decoder(), tokens()
    network = model.body.network
    table = score(model, "predicted_kl_inputs", ("int4-token",), dataset=data, batch_size=10, seed=3, layers=["up"])
    ids = data.tensors["input_ids"]
    x = network.embed(ids)
    x = (x + network.value(x).cumsum(dim=1) / torch.arange(1, 8)[:, None]).detach()
    entering = x.clone().requires_grad_()
    output = network.head(x + network.down(torch.tanh(network.up(entering))))
    gradient = drawn_gradient(output, data.tensors, OutputKind.TOKEN_LOGITS, sample_generators(3, 0, data.tensors))
    at_input = torch.autograd.grad(output, entering, gradient)[0].reshape(-1, 8)
    flat = x.reshape(-1, 8)
    scheme = parse_scheme("int4-token")
    noise = scheme.round(flat, scheme.fit(flat)) - flat
    expected = 0.5 * float((at_input.double() ** 2 * noise.double() ** 2).sum()) / 70
    assert table.of("up", "int4-token") == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("make", "data"), [(decoder, tokens(400, 7)), (convolutions, images(400))], ids=["t", "c"])
def test_predictions_are_near_measured_losses(make, data):
    model = make()
    schemes = ("int6-token", "int5-token") if make is decoder else ("int6-token",)
    predicted = score(model, "predicted_kl_inputs", schemes, dataset=data, batch_size=50)
    measured = score(model, "measured_kl_inputs", schemes, dataset=data, batch_size=50)
    ratio = predicted.score / measured.score
    assert predicted.layers == measured.layers and "embed" not in predicted.row
    assert 0.6 < np.median(ratio) < 1.5
    assert ratio.min() > 0.3 and ratio.max() < 3


def test_measured_losses_are_those_of_the_bound_plan():
    model, data = decoder(), tokens()
    measured = score(model, "measured_kl_inputs", SCHEMES, dataset=data, batch_size=4, layers=["down"])
    with torch.no_grad():
        p = model.run(data.tensors).double().log_softmax(-1)
        for scheme in SCHEMES:
            bound = quantize(model, Plan().assign(["down"], inputs=scheme)).bind(model)
            q = bound.run(data.tensors).double().log_softmax(-1)
            naive = float((p.exp() * (p - q)).sum(-1).mean())
            assert measured.of("down", scheme) == pytest.approx(naive, rel=1e-4, abs=1e-9)


def test_static_schemes_take_the_calibrated_range():
    model, data = decoder(), tokens()
    with pytest.raises(MissingResultError, match="no range was calibrated"):
        score(model, "predicted_kl_inputs", ("int8-tensor",), dataset=data, layers=["up"])
    losses = []
    for reach in (4.0, 0.5):
        ranges = {("up", "input"): Range(low=-reach, high=reach, method="manual", clipped=0.0)}
        table = score(model, "predicted_kl_inputs", ("int8-tensor",), dataset=data, layers=["up"], ranges=ranges)
        losses.append(table.of("up", "int8-tensor"))
    assert losses[1] > 10 * losses[0] > 0


@pytest.mark.parametrize("metric", ["predicted_kl", "measured_kl"])
def test_layers_out_of_reach_cost_nothing(metric):
    table = score(recurrent(), f"{metric}_inputs", ("int8-token",), dataset=sequences(), batch_size=5)
    assert table.of("unused", "int8-token") == 0.0 and table.unused == ("unused",)
    assert table.of("out", "int8-token") > 0


def test_names_that_no_tap_sees_are_refused():
    with pytest.raises(ModelError, match="upp"):
        score(decoder(), "predicted_kl_inputs", ("int8-token",), dataset=tokens(), layers=["upp"])
    with pytest.raises(MissingResultError, match="nothing to score"):
        score(decoder(), "predicted_kl_inputs", (), dataset=tokens())
    with pytest.raises(ModelError, match="keys or values"):
        score(convolutions(), "predicted_kl_cache", ("int8-token",), dataset=images())


def test_the_cache_is_that_of_keys_and_values():
    model, data = decoder(), tokens(400, 7)
    assert [layer.name for layer in model.summary.layers if makes_keys_or_values(layer)] == ["value"]
    schemes = ("int6-token", "int4-token")
    table = score(model, "predicted_kl_cache", schemes, dataset=data, batch_size=50)
    with torch.no_grad():
        p = model.run(data.tensors).double().log_softmax(-1)
        for name in schemes:
            scheme = parse_scheme(name)

            def rounded(module, args, output, scheme=scheme):
                rows = output.reshape(-1, output.shape[-1])
                return scheme.round(rows, scheme.fit(rows)).reshape(output.shape)

            handle = model.body.network.value.register_forward_hook(rounded)
            try:
                q = model.run(data.tensors).double().log_softmax(-1)
            finally:
                handle.remove()
            measured = float((p.exp() * (p - q)).sum(-1).mean())
            assert 0.6 < table.of("value", name) / measured < 1.6


def test_a_search_takes_the_table_and_pays_for_activations():
    model, data = decoder(), tokens(100, 7)
    layers = ["value", "up", "down"]
    weights = score(model, "measured_kl", ("int4-channel", "int8-channel"), dataset=data, layers=layers)
    inputs = score(model, "predicted_kl_inputs", ("int8-token", "int4-token"), dataset=data, layers=layers)
    assert (inputs.score[:, 1] > inputs.score[:, 0]).all()
    plan = search(model.summary, weights, budgets=Budgets(bits_per_weight=9.5), base=Plan(), inputs=inputs)
    assert plan.of("up").weights != "keep"


def test_the_same_seed_gives_the_same_bits():
    tables = [
        score(decoder(), "predicted_kl_inputs", SCHEMES, dataset=tokens(), batch_size=4, seed=seed)
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(tables[0].score, tables[1].score)
    assert not np.array_equal(tables[0].score, tables[2].score)

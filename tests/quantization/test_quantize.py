"""The quantized model: its bits, its view, its inputs, and what it refuses."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from tests.models.networks import convolutions, decoder, images, tokens
from workbench.deployment.exporters import exporter
from workbench.errors import FingerprintMismatchError, MissingResultError, NonFiniteError, UnmatchedRuleError
from workbench.numerics.formats import parse_scheme
from workbench.numerics.ranges import Range
from workbench.planning.plan import Plan
from workbench.planning.totals import layer_bits
from workbench.progress import silent
from workbench.quantization.quantize import quantize


def test_the_stored_bits_decode_to_what_runs():
    model = decoder()
    plan = Plan().assign(["up"], weights="int4-g32-asym").assign(["down"], weights="int8-channel", algorithm="rtn")
    result = quantize(model, plan)
    assert set(result.tensors) == {"up", "down"}
    bound = result.bind(model)
    for name, clip in (("up", True), ("down", False)):
        scheme = parse_scheme(result.tensors[name].scheme)
        assert torch.equal(bound.weight(name), scheme.quantize(model.weight(name), clip_search=clip))
        assert 8 * result.tensors[name].nbytes == layer_bits(model.summary.by_name[name], scheme.name)
    assert torch.equal(bound.weight("value"), model.weight("value"))
    with torch.no_grad():
        direct = model.with_weights({name: bound.weight(name) for name in result.tensors})
        assert torch.equal(bound.run(tokens().tensors), direct.run(tokens().tensors))


def test_a_tied_weight_is_quantized_once_and_used_twice():
    model = decoder()
    result = quantize(model, Plan().assign(["head"], weights="int4-channel"))
    assert set(result.tensors) == {"embed"}
    assert torch.equal(result.bind(model).weight("head"), result.bind(model).weight("embed"))


def test_another_model_is_refused_with_both_fingerprints():
    model = decoder()
    with pytest.raises(FingerprintMismatchError, match="sha256:other.*sha256:test"):
        quantize(model, Plan(fingerprint="sha256:other"))
    result = quantize(model, Plan().assign(["up"], weights="int4-channel"))
    stranger = replace(result, summary=replace(result.summary, fingerprint="sha256:other"))
    with pytest.raises(FingerprintMismatchError, match="sha256:other.*sha256:test"):
        stranger.bind(model)
    with pytest.raises(UnmatchedRuleError, match="upp"):
        quantize(model, Plan().assign(["upp"], weights="int4-channel"))


def test_a_layer_with_nan_is_kept_and_noted():
    model = decoder()
    with torch.no_grad():
        model.body.network.up.weight[1, 1] = float("nan")
    result = quantize(model, Plan().assign(["up", "down"], weights="int4-channel"))
    assert set(result.tensors) == {"down"}
    assert len(result.notes) == 1 and "up" in result.notes[0] and "kept" in result.notes[0]


def test_what_cannot_be_served_is_left_and_named_and_the_others_go_on(tmp_path):
    model = decoder()
    plan = Plan().assign(["down"], weights="int4-channel").assign(["up"], weights="fp8-e4m3-channel", algorithm="hqq")
    result = quantize(model, plan)
    assert set(result.tensors) == {"down"} and set(result.left) == {"up"}
    assert re.search("hqq cannot round up to fp8-e4m3-channel.*asymmetric.*kept", result.left["up"])
    assert result.notes == (result.left["up"],)
    assert torch.equal(result.bind(model).weight("up"), model.weight("up"))
    (file,) = exporter("state-dict").export(result, model, tmp_path / "out.safetensors", silent)
    assert torch.equal(load_file(file)[model.summary.by_name["up"].parameter], model.weight("up"))


def inputs_seen(model, data, layer):
    result = []
    with torch.no_grad():
        model.run(data.tensors, tap=lambda name, x, y: result.append(x), layers=(layer,))
    return result[0]


def test_dynamic_inputs_have_a_scale_for_each_token():
    model, data = decoder(), tokens()
    bound = quantize(model, Plan().assign(["up"], inputs="int8-token")).bind(model)
    exact, observed = inputs_seen(model, data, "up"), inputs_seen(bound, data, "up")
    scale = exact.abs().amax(dim=-1, keepdim=True) / 127
    assert not torch.equal(exact, observed)
    assert ((observed - exact).abs() <= 0.51 * scale).all()


def test_static_inputs_need_their_range():
    model, data = decoder(), tokens()
    plan = Plan().assign(["up"], inputs="int8-tensor")
    with pytest.raises(MissingResultError, match="inputs of up.*int8-tensor"):
        quantize(model, plan)
    known = {("up", "input"): Range(low=-0.5, high=0.5, method="manual", clipped=0.0)}
    bound = quantize(model, plan, ranges=known).bind(model)
    exact, observed = inputs_seen(model, data, "up"), inputs_seen(bound, data, "up")
    assert float(observed.abs().max()) < 0.51
    assert ((observed - exact.clamp(-0.5, 0.5)).abs() <= 0.006).all()


def test_convolution_and_embedding_inputs():
    model, data = convolutions(), images()
    bound = quantize(model, Plan().assign(["grouped"], inputs="int8-token")).bind(model)
    exact, observed = inputs_seen(model, data, "grouped"), inputs_seen(bound, data, "grouped")
    scale = exact.flatten(1).abs().amax(dim=1) / 127
    assert ((observed - exact).abs() <= 0.51 * scale[:, None, None, None]).all()
    lm = decoder()
    for scheme in ("int8-token", "int8-tensor"):  # which no calibration has a range of token numbers for
        bound = quantize(lm, Plan().assign(["embed"], inputs=scheme).assign(["head"], inputs=None)).bind(lm)
        with torch.no_grad():
            assert torch.equal(bound.run(tokens().tensors), lm.run(tokens().tensors))


def test_nan_inputs_name_their_layer():
    model = convolutions()
    bound = quantize(model, Plan().assign(["first"], inputs="int8-token")).bind(model)
    with pytest.raises(NonFiniteError, match="input of first"):
        bound.run({"inputs": torch.full((1, 2, 8, 8), torch.nan)})


def test_a_bound_model_takes_further_weights():
    model, data = decoder(), tokens()
    bound = quantize(model, Plan().assign(["up"], weights="int4-channel", inputs="int8-token")).bind(model)
    other = bound.with_weights({"down": torch.zeros(8, 12)})
    assert torch.equal(other.weight("up"), bound.weight("up")) and not other.weight("down").any()
    assert torch.equal(inputs_seen(other, data, "up"), inputs_seen(bound, data, "up"))

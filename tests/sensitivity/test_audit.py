"""The audit against runs of the whole model; what it says of losses that add up and of such that do not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.models.networks import decoder, tokens
from workbench.errors import PlanError
from workbench.numerics.formats import parse_scheme
from workbench.sensitivity.audit import Audit, audit_weights


def quantized(model, scheme="int3-channel"):
    return {layer.name: parse_scheme(scheme).quantize(model.weight(layer.name)) for layer in model.summary.stored}


def kl(model, weights, data):
    with torch.no_grad():
        p = model.run(data.tensors).double().log_softmax(-1)
        q = model.with_weights(weights).run(data.tensors).double().log_softmax(-1)
    return float((p.exp() * (p - q)).sum(-1).mean())


def test_every_figure_is_that_of_whole_runs() -> None:
    model, data = decoder(), tokens()
    weights = quantized(model)
    result = audit_weights(model, weights, data, predicted={"up": 0.5}, batch_size=4)
    assert result.whole == pytest.approx(kl(model, weights, data), rel=1e-4)
    for index, name in enumerate(result.layers):
        assert result.alone[index] == pytest.approx(kl(model, {name: weights[name]}, data), rel=1e-4)
        rest = {other: matrix for other, matrix in weights.items() if other != name}
        assert result.joined[index] == pytest.approx(result.whole - kl(model, rest, data), rel=1e-3, abs=1e-9)
    assert result.predicted[result.layers.index("up")] == 0.5 and np.isnan(result.predicted_sum)
    assert np.isnan(result.correction)


def test_the_largest_interactions_come_first_and_the_sentence_judges() -> None:
    result = Audit(
        layers=("a", "b", "c"), predicted=np.array([1.0, 1.0, 2.0]), alone=np.array([1.0, 1.0, 1.0]),
        joined=np.array([1.1, 3.0, 0.0]), whole=6.0, samples=4,
    )  # fmt: skip
    assert result.most_interacting(2) == ("b", "c")
    assert result.correction == 1.5
    assert "do not add up" in result.sentence("nats") and "4 samples" in result.sentence("nats")


def test_a_plan_that_keeps_everything_has_nothing_to_audit() -> None:
    with pytest.raises(PlanError, match="no layer"):
        audit_weights(decoder(), {}, tokens())


def test_an_audit_says_whether_a_uniform_plan_of_its_size_is_better() -> None:
    model, data = decoder(), tokens()
    fine, coarse = quantized(model, "int8-channel"), quantized(model, "int3-channel")
    others = {("int8-channel", 8.0): fine, ("int3-channel", 3.0): coarse}
    result = audit_weights(model, coarse, data, uniform=others, batch_size=4, predicted_error=0.1, predicted_samples=10)
    better, same = result.uniform
    assert better.loss == pytest.approx(kl(model, fine, data), rel=1e-3) and better.low > 0
    assert same.loss == result.whole and same.low == same.high == 0.0
    assert result.low < result.whole < result.high
    assert result.best_uniform == better and "WORSE than" in result.against_uniform("nats")
    assert "nats" not in result.sentence("½ d²") + result.against_uniform("½ d²")
    turned = audit_weights(model, fine, data, uniform={("int3-channel", 3.0): coarse}, batch_size=4)
    assert "is better than" in turned.against_uniform("nats") and turned.uniform[0].high < 0

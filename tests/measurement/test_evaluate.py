"""Metrics by hand, intervals against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
import torch

from tests.models.networks import (
    Decoder,
    Rows,
    convolutions,
    decoder,
    images,
    model_of,
    recurrent,
    sequences,
    tokens,
)
from workbench.errors import DataError
from workbench.measurement.bootstrap import interval
from workbench.measurement.divergence import logit_divergence
from workbench.measurement.evaluate import evaluate
from workbench.models.summary import OutputKind


def test_divergence_of_two_coins():
    p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.9, 0.1])
    by_hand = 0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(0.5 / 0.1)
    assert float(logit_divergence(p.log(), q.log())) == pytest.approx(by_hand, rel=1e-6)


@pytest.mark.parametrize("size", [1e-7, 1e-3, 1.0, 100.0])
def test_divergence_is_that_of_exact_arithmetic(size):
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(4, 9, generator=generator).double()
    b = a + size * torch.randn(4, 9, generator=generator).double()
    from mpmath import exp, log, mp, mpf

    mp.dps = 60
    for row_a, row_b, result in zip(a.tolist(), b.tolist(), logit_divergence(a, b).tolist(), strict=True):
        za, zb = sum(exp(mpf(v)) for v in row_a), sum(exp(mpf(v)) for v in row_b)
        exact = sum(exp(mpf(x)) / za * (x - log(za) - y + log(zb)) for x, y in zip(row_a, row_b, strict=True))
        assert result == pytest.approx(float(exact), rel=1e-6)


def test_a_model_against_itself():
    result = evaluate(decoder(), decoder(), tokens(), batch_size=3)
    assert set(result) == {"kl", "top1_agreement", "perplexity"}
    assert result["kl"].value == 0 and result["top1_agreement"].value == 100
    assert result["perplexity"].value == result["perplexity"].baseline


def test_token_metrics_by_hand():
    reference, candidate, data = decoder(0), decoder(1), tokens()
    result = evaluate(reference, candidate, data, batch_size=4)
    ids = data.tensors["input_ids"]
    with torch.no_grad():
        p = reference.run({"input_ids": ids}).double().log_softmax(-1)
        q = candidate.run({"input_ids": ids}).double().log_softmax(-1)
    assert result["kl"].value == pytest.approx(float((p.exp() * (p - q)).sum(-1).mean()), rel=1e-5)
    assert result["top1_agreement"].value == pytest.approx(100 * float((p.argmax(-1) == q.argmax(-1)).double().mean()))
    for values, expected in ((q, result["perplexity"].value), (p, result["perplexity"].baseline)):
        nll = -values[:, :-1].gather(-1, ids[:, 1:, None]).mean()
        assert expected == pytest.approx(float(nll.exp()), rel=1e-5)
    assert all(m.low <= m.value <= m.high and m.samples == 10 for m in result.values())
    assert result["kl"].per_sample.shape == (10,)


def test_padding_counts_for_nothing():
    ids = tokens().tensors["input_ids"]
    mask = torch.ones_like(ids)
    mask[:, 4:] = 0
    padded = evaluate(decoder(0), decoder(1), Rows(input_ids=ids, attention_mask=mask))
    cut = evaluate(decoder(0), decoder(1), Rows(input_ids=ids[:, :4]))
    for name, metric in padded.items():
        assert metric.value == pytest.approx(cut[name].value, rel=1e-6)  # float32 passes of other shapes


def test_labels_say_which_tokens_count():
    ids = tokens().tensors["input_ids"]
    labels = torch.where(torch.arange(ids.shape[1]) < 3, -100, ids)
    result = evaluate(decoder(0), decoder(1), Rows(input_ids=ids, labels=labels))
    with torch.no_grad():
        logits = decoder(1).run({"input_ids": ids})
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    assert result["perplexity"].value == pytest.approx(float(loss.exp()), rel=1e-5)
    tagger = model_of(Decoder(), OutputKind.TOKEN_CLASSES)
    with torch.no_grad():
        right = (tagger.run({"input_ids": ids}).argmax(-1) == labels)[labels >= 0]
    accuracy = evaluate(tagger, tagger, Rows(input_ids=ids, labels=labels))["accuracy"]
    assert accuracy.value == pytest.approx(100 * float(right.double().mean()))


def test_class_metrics_by_hand():
    reference, candidate, data = convolutions(0), convolutions(1), images(40)
    result = evaluate(reference, candidate, data, batch_size=7)
    with torch.no_grad():
        a, b = (model.run({"inputs": data.tensors["inputs"]}).argmax(-1) for model in (reference, candidate))
    labels = data.tensors["labels"]
    assert result["accuracy"].value == pytest.approx(100 * float((b == labels).double().mean()))
    assert result["accuracy"].baseline == pytest.approx(100 * float((a == labels).double().mean()))
    assert result["top1_agreement"].value == pytest.approx(100 * float((a == b).double().mean()))
    assert "accuracy" not in evaluate(reference, candidate, Rows(inputs=data.tensors["inputs"]))


def test_embeddings_are_compared_by_cosine():
    result = evaluate(recurrent(0), recurrent(0), sequences())
    assert result["cosine"].value == pytest.approx(1.0) and result["relative_error"].value == 0
    data = sequences()
    other = evaluate(recurrent(0), recurrent(1), data)
    with torch.no_grad():
        first, second = (recurrent(seed).run(data.tensors) for seed in (0, 1))
    half = float((first - second).double().square().sum(dim=1).mean() / 2)
    assert other["half_squared_distance"].value == pytest.approx(half, rel=1e-6)
    assert other["cosine"].value < 0.99 and other["cosine"].higher_is_better


def test_the_interval_is_that_of_scipy():
    values = np.random.default_rng(0).lognormal(size=300)
    low, high = interval(values, np.ones(300), seed=1, transform=np.exp)
    result = scipy.stats.bootstrap(
        (values,), lambda x, axis: np.exp(x.mean(axis=axis)), n_resamples=5000, method="percentile",
        rng=np.random.default_rng(2), vectorized=True,
    )  # fmt: skip
    width = result.confidence_interval.high - result.confidence_interval.low
    assert low == pytest.approx(result.confidence_interval.low, abs=0.06 * width)
    assert high == pytest.approx(result.confidence_interval.high, abs=0.06 * width)
    assert interval(values, np.ones(300), seed=1) == interval(values, np.ones(300), seed=1)


def test_empty_data_are_refused():
    with pytest.raises(DataError, match="no samples"):
        evaluate(decoder(), decoder(), Rows(input_ids=torch.zeros(0, 4, dtype=torch.int64)))

"""Scores of continuations and the likeliest ones, against one run of the network for each row."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.models.networks import decoder
from workbench.measurement.harness import answers
from workbench.measurement.harness.answers import continued, scores
from workbench.models.model import Model

ROWS = [([1, 2, 3], [4, 5]), ([7], [8]), ([2, 2, 2, 2, 2, 2], [1]), ([5, 6], [7, 8, 9, 10]), ([3, 1], [1])]


def alone(model: Model, context: list[int], continuation: list[int]) -> tuple[float, bool]:
    """The score by the definition."""
    with torch.no_grad():
        logits = model.run({"input_ids": torch.tensor([context + continuation])})[0].double().log_softmax(-1)
    places = range(len(context) - 1, len(context) + len(continuation) - 1)
    pairs = zip(places, continuation, strict=True)
    picked = [(logits[place, token], int(logits[place].argmax()) == token) for place, token in pairs]
    return float(sum(score for score, _ in picked)), all(best for _, best in picked)


@pytest.mark.parametrize("batch_size", [1, 3, 8])
def test_rows_of_any_length_are_scored_as_if_alone(batch_size: int) -> None:
    model, heard = decoder(0), list[int]()
    answers = scores(model, ROWS, longest=100, batch_size=batch_size, done=heard.append)
    for (score, likely), row in zip(answers, ROWS, strict=True):
        expected = alone(model, *row)
        assert score == pytest.approx(expected[0], abs=1e-5) and likely == expected[1]
    assert sum(heard) == len(ROWS) and max(heard) <= batch_size


def test_the_likeliest_continuation_is_said_to_be() -> None:
    model = decoder(0)
    best = continued(model, [1, 2, 3], most=4, kept=lambda new, last: len(new) if last else None)
    assert len(best) == 4
    assert scores(model, [([1, 2, 3], best)], longest=100, batch_size=1)[0][1]
    assert not scores(model, [([1, 2, 3], [(best[0] + 1) % 13])], longest=100, batch_size=1)[0][1]
    assert continued(model, [1, 2, 3], most=4, kept=lambda new, last: 2 if len(new) == 3 else None) == best[:2]


def test_of_long_rows_the_end_is_seen() -> None:
    model = decoder(0)
    ((score, _),) = scores(model, [([9] * 20 + [1, 2], [4, 5])], longest=3, batch_size=1)
    assert score == pytest.approx(alone(model, [1, 2], [4, 5])[0], abs=1e-5)
    ((score, _),) = scores(model, [([1], [9, 9, 3, 4, 5])], longest=2, batch_size=1)  # more answer than is seen at once
    assert score == pytest.approx(alone(model, [3], [4, 5])[0], abs=1e-5)


def test_few_rows_run_together_where_the_vocabulary_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "PASS_BYTES", 4 * 13 * 6)  # six positions of a vocabulary of thirteen
    model, heard = decoder(0), list[int]()
    model.inputs = replace(model.inputs, vocabulary=13)
    scores(model, ROWS, longest=100, batch_size=8, done=heard.append)
    assert heard == [1, 1, 1, 2]

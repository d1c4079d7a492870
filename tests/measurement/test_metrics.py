"""Every listed evaluation metric keeps the contract of its record; a new one needs its file and one line."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from tests.models.networks import Rows, convolutions, decoder, images, model_of, recurrent, sequences, tokens
from workbench.measurement import evaluate as evaluation
from workbench.measurement.evaluate import evaluate
from workbench.measurement.metrics import METRICS, metric_meaning, metric_title
from workbench.measurement.metrics.logits import KL
from workbench.measurement.metrics.metric import EvaluationMetric, Outputs, Sums
from workbench.measurement.paired import against_baseline
from workbench.models.execution.network import NetworkModel
from workbench.models.summary import OutputKind


def classifier(seed: int) -> NetworkModel:
    """A classifier of eight classes."""
    torch.manual_seed(seed)
    return model_of(nn.Sequential(nn.Flatten(), nn.Linear(128, 8)), OutputKind.CLASS_LOGITS)


def pixels(seed: int) -> NetworkModel:
    """A segmentation, or frames of speech, of four classes."""
    torch.manual_seed(seed)
    return model_of(nn.Conv2d(2, 4, 3, padding=1), OutputKind.POSITION_CLASSES)


def regressor(seed: int) -> NetworkModel:
    """One number of five."""
    torch.manual_seed(seed)
    return model_of(nn.Linear(5, 1), OutputKind.EMBEDDING)


class Objects(nn.Module):
    """Eight objects of two labels, all but certain."""

    def __init__(self) -> None:
        super().__init__()
        self.labels, self.boxes = nn.Linear(16, 2), nn.Linear(16, 4)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        rows = pictures.reshape(len(pictures), -1, 16)
        return torch.cat([self.labels(rows) + 3, self.boxes(rows).sigmoid()], dim=-1)


def detector(seed: int) -> NetworkModel:
    """A detector."""
    torch.manual_seed(seed)
    return model_of(Objects(), OutputKind.DETECTIONS)


class Words:
    """A word for each id."""

    def written(self, rows: list[list[int]]) -> list[str]:
        return [" ".join(map(str, ids)) for ids in rows]

    heard = written


def drawn(count: int) -> Rows:
    """Pictures whose every pixel has a label."""
    return Rows(inputs=torch.randn(count, 2, 3, 4), labels=torch.randint(0, 4, (count, 3, 4)))


def spoken(count: int) -> Rows:
    """Pictures in place of sounds, with transcripts."""
    rows = Rows(inputs=torch.randn(count, 2, 3, 4), labels=torch.randint(0, 4, (count, 9)))
    object.__setattr__(rows, "text", Words())
    return rows


def numbers(count: int) -> Rows:
    """What a regressor is asked for."""
    return Rows(inputs=torch.randn(count, 5), labels=torch.randn(count))


CASES = (
    (decoder, tokens), (convolutions, images), (classifier, images), (recurrent, sequences), (pixels, drawn),
    (pixels, spoken), (regressor, numbers), (detector, images),
)  # fmt: skip


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_record_measures_the_outputs_that_it_is_for(metric: EvaluationMetric) -> None:
    assert metric.title[0].isupper() and metric_title(metric.name) == metric.title
    assert ("higher is better" in metric_meaning(metric.name)) == metric.higher_is_better
    assert ("lower is better" in metric_meaning(metric.name)) != metric.higher_is_better
    figures = []
    for make, data in CASES:
        result = evaluate(make(0), make(1), data(12), batch_size=5)
        figures += [result[metric.name]] if metric.name in result else []
    assert figures
    for figure in figures:
        assert (figure.unit, figure.higher_is_better) == (metric.unit, metric.higher_is_better)
        assert figure.samples == figure.per_sample.size == 12 and figure.low <= figure.value <= figure.high
        assert (against_baseline(figure) is None) == metric.compares_models
        same = figure.baseline_per_sample
        assert not metric.compares_models or (same is not None and (same == same[0]).all())


def test_a_metric_in_the_tuple_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(outputs: Outputs) -> Sums:
        return Sums(outputs.quantized[:, 0].double(), outputs.reference[:, 0].double(), outputs.ones)

    mine = replace(KL, name="first_logit", title="First logit", measure=measure, compares_models=False)
    monkeypatch.setattr(evaluation, "METRICS", (*METRICS, mine))
    result = evaluate(convolutions(0), convolutions(1), images(12), batch_size=5)
    assert list(result)[-1] == "first_logit" and against_baseline(result["first_logit"]) is not None

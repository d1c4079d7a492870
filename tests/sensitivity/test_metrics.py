"""Every listed sensitivity metric keeps the contract of its record; a new one needs its file and one line."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.networks import decoder, recurrent, sequences, tokens
from workbench.errors import PlanError
from workbench.measurement.calibrate import calibrate
from workbench.measurement.units import HALF_SQUARED_DISTANCE, NATS, is_divergence
from workbench.models.summary import OutputKind
from workbench.planning.plan import Assignment
from workbench.sensitivity.metrics import BY_NAME, METRICS, SCORED, find_metric, metric_title
from workbench.sensitivity.metrics.metric import SensitivityMetric
from workbench.sensitivity.score import score

LISTED = pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)


@LISTED
def test_a_record_says_what_the_faces_show(metric: SensitivityMetric) -> None:
    assert metric.title[0].isupper() and len(metric.meaning) > 20 and metric.unit
    assert hasattr(Assignment(), metric.part)
    assert all(name in BY_NAME for name in metric.derived_from)
    unit = metric.unit_for(OutputKind.EMBEDDING)
    assert (unit == HALF_SQUARED_DISTANCE) == (metric.unit == NATS) == is_divergence(metric.unit)
    assert metric.title_in(metric.unit) == metric.title
    assert metric.unit != NATS or "KL" not in metric.title_in(unit)


@pytest.mark.parametrize("name", SCORED)
def test_a_metric_fills_its_table(name: str) -> None:
    metric, model, data = BY_NAME[name], decoder(), tokens(6)
    schemes = ("int4-channel", "int8-channel") if metric.part == "weights" else ("int4-token", "int8-token")
    curvature = calibrate(model, data).curvature if metric.moments != "none" else {}
    table = score(model, name, schemes, curvature=curvature, dataset=data if metric.needs_data else None)
    known = table.score[~np.isnan(table.score).any(axis=1)]
    assert len(known) and (known[:, 0] > known[:, 1]).all(), "coarser formats are worse"
    assert (table.metric, table.unit, table.schemes) == (name, metric.unit, schemes)
    assert (table.samples, bool(table.data_hash)) == ((6, True) if metric.needs_data else (0, False))


def test_what_is_derived_or_unknown_is_not_scored() -> None:
    with pytest.raises(PlanError, match=r"no metric 'refined'.*predicted_kl"):
        score(decoder(), "refined", ("int8-channel",), dataset=tokens())
    with pytest.raises(PlanError, match="the closest are predicted_kl"):
        find_metric("predicted_k")
    assert metric_title("of_a_later_version") == "of_a_later_version"


def test_the_unit_is_that_of_the_models_outputs() -> None:
    table = score(recurrent(), "measured_kl_inputs", ("int4-token",), dataset=sequences(), layers=["out"])
    assert table.unit == HALF_SQUARED_DISTANCE

"""The checks on the bundled classifier, end to end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import workbench as wb
from workbench.engine.model_cache import ModelCache
from workbench.errors import MissingResultError
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.steps.checks.audit import AUDIT, AuditOptions
from workbench.steps.checks.quality import QUALITY, QualityOptions
from workbench.steps.checks.refine import REFINE, RefineOptions


@pytest.fixture(scope="module")
def judged():
    model = wb.open("demo:digits-classifier")
    session = wb.calibrate(model, samples=64, batch_size=16)
    return model, wb.score(session, model=model, schemes=("int3-channel", "int8-channel"), batch_size=16)


def test_an_audit_stands_beside_the_prediction(judged) -> None:
    model, session = judged
    plan = Plan.uniform(session.model.layers, "int3-channel")
    result = AUDIT(replace(session, plan=plan), AuditOptions(samples=48, batch_size=16), model=model).audit
    assert result.samples == 48 and np.isfinite(result.predicted_sum)
    assert 0.2 < result.correction < 5.0
    assert result.whole > 0 and (result.alone > 0).all()


def test_what_an_audit_left_out_is_counted(judged) -> None:
    model, session = judged
    plan = Plan.uniform(session.model.layers, "int3-channel")
    names = [layer.name for layer in session.model.layers]
    rounding = plan.assign(names[:2], inputs="int8-tensor-asym")
    weights_only = AUDIT(replace(session, plan=plan), AuditOptions(samples=8), model=model)
    both = AUDIT(replace(session, plan=rounding), AuditOptions(samples=8), model=model)
    assert weights_only.rounded_inputs == 0
    assert both.rounded_inputs == 2
    assert both.plan_hash == rounding.hash != plan.hash


def test_calibration_data_are_judged(judged) -> None:
    model, session = judged
    result = QUALITY(session, QualityOptions(samples=64, batch_size=8), model=model)
    assert result.saturation.samples == (8, 16, 32, 64)
    assert result.coverage.classes == 1.0 and sum(result.calibration.classes.values()) == 64
    assert 0 <= next(iter(result.distances.values())) < 1.0
    assert "samples" in result.sentence() and "standard deviations" in result.sentence()


def test_close_cells_are_measured_and_kept(judged) -> None:
    model, session = judged
    options = RefineOptions(bits_per_weight=5.0, samples=32, batch_size=16, tolerance=3.0)
    table = REFINE(session, options, model=model)
    assert np.isfinite(table.score).any()
    again = REFINE(REFINE.request(session, options).joined(session, table), options, model=model)
    assert again.score.tobytes() == table.score.tobytes()


def test_what_is_missing_is_named(judged) -> None:
    model, _ = judged
    with pytest.raises(MissingResultError, match="calibrate first"):
        QUALITY(wb.start(model), QualityOptions(), model=model)


def test_the_windows_requests_do_the_same(judged) -> None:
    model, session = judged
    models = ModelCache()
    models.put(model)
    planned = replace(session, plan=Plan.uniform(session.model.layers, "int3-channel"))
    request = AUDIT.request(planned, AuditOptions(samples=16))
    assert planned.plan.name in request.title and not request.reduced().session.statistics
    output = request.reduced().run(models, silent)
    assert (output.audit.samples, output.plan_name, output.plan_hash) == (16, planned.plan.name, planned.plan.hash)
    assert (output.rounded_inputs, output.cached) == (0, 0) and request.joined(planned, output).audit is output
    assert request.reduced().session.audit is None
    refining = REFINE.request(session, RefineOptions(bits_per_weight=5.0, samples=16, tolerance=3.0))
    assert "5 bits" in refining.title
    received: list[object] = []
    table = refining.reduced().run(models, lambda fraction, text, partial=None: received.append(partial))
    assert any(partial is not None for partial in received), "the table so far is reported"
    merged = refining.joined(session, table)
    assert merged.sensitivities["measured_kl"] is table
    assert merged.sensitivities["predicted_kl"] is session.sensitivities["predicted_kl"]

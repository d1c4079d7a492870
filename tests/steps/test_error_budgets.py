"""The error budget as a step and as a request: predicted as measured, kept in the session, its gains used again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.engine.model_cache import ModelCache
from workbench.errors import MissingResultError
from workbench.models.summary import quantizable
from workbench.planning.plan import Plan
from workbench.session.session import Session
from workbench.steps.checks.error_budget import ERROR_BUDGET, ErrorBudgetOptions


def test_the_error_budget_predicts_what_is_measured_and_stays_with_the_session(
    llama: Path, tokens: Path, tmp_path: Path
) -> None:
    model = wb.open(llama)
    session = wb.calibrate(model, tokens, batch_size=4)
    session = wb.score(session, "weight_error", model=model, schemes=["int8-channel"])
    plan = Plan.uniform(quantizable(session.model.layers), "int8-channel")
    session = replace(session, plan=plan)
    models = ModelCache()
    models.put(model)
    request = ERROR_BUDGET.request(session, ErrorBudgetOptions(samples=4))
    assert plan.name in request.title
    result = request.reduced().run(models, lambda *_: None)
    assert result.predicted is not None and result.plan_hash == plan.hash
    assert np.allclose(result.predicted.decibels, result.measured.decibels, atol=1.5)
    assert result.measured.blocks[-1] == "output" and (result.measured.decibels > 20).all()

    loaded = request.joined(session, result)
    loaded.save(tmp_path / "s.qwb")
    loaded = Session.load(tmp_path / "s.qwb")
    assert loaded.error_budget is not None and loaded.error_budget.predicted is not None
    np.testing.assert_array_equal(loaded.error_budget.predicted.share, result.predicted.share)
    texts: list[str] = []
    again = ERROR_BUDGET(
        loaded, ErrorBudgetOptions(samples=4), model=model,
        progress=lambda fraction, text, partial=None: texts.append(text),
    )  # fmt: skip
    assert (again.measured.noise == result.measured.noise).all()
    assert again.gains is loaded.error_budget.gains and not any(text.startswith("noise from") for text in texts)
    with pytest.raises(MissingResultError, match="calibrate first"):
        ERROR_BUDGET(replace(session, calibration=None), ErrorBudgetOptions(), model=model)

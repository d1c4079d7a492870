"""The main job on a model and data that nobody of this project made: calibrate, score, search, quantize, evaluate."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from workbench.measurement.calibrate import calibrate
from workbench.measurement.evaluate import evaluate
from workbench.models.data.datasets import open_dataset
from workbench.models.sources import open_model
from workbench.models.summary import embeddings, quantizable
from workbench.planning.budgets import Budgets
from workbench.planning.constraints import Constraints
from workbench.planning.plan import KEEP, Plan
from workbench.planning.search.search import search
from workbench.planning.totals import plan_totals
from workbench.quantization.quantize import quantize
from workbench.sensitivity.score import score

ROOT = Path(__file__).parents[2]
LLAMA = Path(os.environ.get("WORKBENCH_CASES", ROOT / ".." / "shared" / "cases")) / "llama-260k"
pytestmark = pytest.mark.skipif(not LLAMA.is_dir(), reason=f"the case {LLAMA} is not on this machine")

SCHEMES = ("int2-g32-asym", "int3-g32-asym", "int4-g32-asym", "int5-g32-asym", "int6-g32-asym", "int8-g32")


def test_a_small_llama_from_file_to_a_checked_plan():
    model = open_model(LLAMA)
    data = open_dataset(LLAMA / "calibration_tokens.npy", model, samples=32)
    held_out = open_dataset(LLAMA / "evaluation_tokens.npy", model, samples=16)
    result = calibrate(model, data)
    assert result.notes == () and len(result.curvature) == 37
    table = score(model, "predicted_kl", SCHEMES, curvature=result.curvature, dataset=data)
    assert np.isfinite(table.score).all()
    whole = search(model.summary, table, budgets=Budgets(bits_per_weight=4.5), base=Plan())
    assert whole.of("model.embed_tokens").weights != KEEP
    sums, loss = (plan_totals(model.summary, whole, table),
                  evaluate(model, quantize(model, whole).bind(model), held_out)["kl"].value)  # fmt: skip
    assert 1 / 1.5 < (sums.predicted or 0.0) / loss < 1.5 and sums.nbytes < 4.6 / 8 * model.summary.parameters
    plan = search(
        model.summary, table, budgets=Budgets(bits_per_weight=4.5), base=Plan(),
        constraints=Constraints(locked=embeddings(model.summary.layers)),
    )  # fmt: skip
    sums = plan_totals(model.summary, plan, table)
    assert 4.45 < sums.bits_per_weight <= 4.5 and sums.predicted is not None
    metrics = evaluate(model, quantize(model, plan).bind(model), held_out)
    assert 1 / 1.5 < sums.predicted / metrics["kl"].value < 1.5
    assert metrics["perplexity"].baseline < metrics["perplexity"].value < 1.15 * metrics["perplexity"].baseline
    uniform = Plan.uniform(quantizable(model.summary.layers), "int4-g32-asym")
    assert plan_totals(model.summary, uniform).bits_per_weight > sums.bits_per_weight
    worse = evaluate(model, quantize(model, uniform).bind(model), held_out)["kl"]
    assert metrics["kl"].value < worse.value * 1.1

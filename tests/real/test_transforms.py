"""Transforms on a Llama that nobody of this project made: the outputs stay, and quantizing it costs less."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

import workbench as wb
from workbench.models.data.datasets import open_dataset
from workbench.models.sources import open_model
from workbench.models.summary import quantizable
from workbench.planning.plan import Plan
from workbench.quantization.transforms.apply import transform
from workbench.session.calibrated_ranges import ranges_in_force

ROOT = Path(__file__).parents[2]
LLAMA = Path(os.environ.get("WORKBENCH_CASES", ROOT / ".." / "shared" / "cases")) / "llama-260k"
pytestmark = pytest.mark.skipif(not LLAMA.is_dir(), reason=f"the case {LLAMA} is not on this machine")


@pytest.fixture(scope="module")
def calibrated():
    model = open_model(LLAMA)
    return model, wb.calibrate(model, LLAMA / "calibration_tokens.npy", samples=16)


def kl(model, session, plan):
    result = wb.evaluate(session, plan, model=model, data=LLAMA / "evaluation_tokens.npy", samples=12)
    assert result.predicted_kl is None
    return result.metrics["kl"].value


@pytest.mark.parametrize(
    "weights, inputs, transforms, gain",
    [
        ("int4-g32-asym", None, ("awq",), 0.93),
        ("int4-channel", "int8-token", ("awq", "rotation-heads"), 0.95),
        ("int8-channel", "int8-tensor", ("smoothquant",), 0.5),
        ("int8-channel", "int4-token", ("rotation",), 0.97),
        ("int4-g32-asym", "int8-token", ("rotation",), 0.99),
    ],
)
def test_quantizing_costs_less(calibrated, weights, inputs, transforms, gain):
    model, session = calibrated
    names = [layer.name for layer in quantizable(model.summary.layers)]
    whole = "min-max"  # ranges of least loss alone do for static inputs what smoothing does for whole ranges
    plan = Plan().assign(names, weights=weights, inputs=inputs, range_method=whole)
    ranges = ranges_in_force(model.summary, plan, session.ranges, {})
    session = replace(session, active_ranges=ranges)
    assert kl(model, session, replace(plan, transforms=transforms)) < gain * kl(model, session, plan)


@pytest.mark.parametrize("name", ["awq", "rotation", "rotation-heads"])
def test_the_floating_point_outputs_stay(calibrated, name):
    model, session = calibrated
    plan = replace(Plan.uniform(quantizable(model.summary.layers), "int4-g32-asym"), transforms=(name,))
    data = open_dataset(LLAMA / "calibration_tokens.npy", model, samples=4)
    transformed = transform(model, plan, curvature=session.curvature, data=data)
    assert transformed.deviation < 1e-5 and len(transformed.report) >= 5

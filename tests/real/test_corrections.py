"""ResNet-20 on CIFAR-10, trained elsewhere: rewrites leave its outputs, corrections bring its top-1 back."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

import workbench as wb
from workbench.models.data.datasets import open_dataset
from workbench.planning.plan import Plan
from workbench.quantization.transforms.apply import transform

ROOT = Path(__file__).parents[2]
RESNET = Path(os.environ.get("WORKBENCH_CASES", ROOT / ".." / "shared" / "cases")) / "resnet20-cifar10"
pytestmark = pytest.mark.skipif(not RESNET.is_dir(), reason=f"the case {RESNET} is not on this machine")

FLOATING_POINT = 81.8


@pytest.fixture(scope="module")
def calibrated():
    model = wb.open(Path(__file__).with_name("resnet20.py"), weights=RESNET / "model.safetensors", trust=True)
    return model, wb.calibrate(model, RESNET / "calibration.npz", batch_size=16)


def top1(model, session, *transforms, algorithm):
    plan = replace(Plan.uniform(model.summary.stored, "int4-channel", algorithm=algorithm), transforms=transforms)
    result = wb.evaluate(session, plan, model=model, data=RESNET / "evaluation.npz", batch_size=100)
    return result.metrics["accuracy"].value


@pytest.mark.parametrize(
    "names, pairs",
    [(("fold-norms",), 0), (("equalize",), 9), (("fold-norms", "equalize"), 9)],
)
def test_the_floating_point_outputs_stay(calibrated, names, pairs):
    model, session = calibrated
    plan = replace(Plan.uniform(model.summary.stored, "int4-channel"), transforms=names)
    data = open_dataset(RESNET / "calibration.npz", model, samples=4)
    transformed = transform(model, plan, curvature=session.curvature, data=data)
    assert transformed.deviation < 1e-5 and not transformed.notes
    assert len(transformed.folded) == (19 if "fold-norms" in names else 0)
    assert len([change for change in transformed.report if change.transform == "equalize"]) == pairs


def test_four_bits_with_corrections_are_within_a_point(calibrated):
    result = top1(*calibrated, "bias-correction", "norm-reestimation", algorithm="gptq")
    assert result >= FLOATING_POINT - 1.0


def test_corrections_win_back_what_rounding_to_nearest_loses(calibrated):
    plain, corrected = (top1(*calibrated, *names, algorithm="rtn-clip") for names in ((), ("norm-reestimation",)))
    assert corrected > plain + 2.0

"""A job copied as Python does what the job did: the same model, trust and place, and the plan that it was about."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.engine.model_cache import ModelCache
from workbench.gui import screenshot
from workbench.gui.report.step import WRITE_REPORT, ReportOptions
from workbench.models.placement import Placement
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.session.workspace import State
from workbench.steps.calibrate import CALIBRATE, CalibrateOptions
from workbench.steps.checks.reconstruction import RECONSTRUCTION, ReconstructionOptions
from workbench.steps.evaluate import EVALUATE, EvaluateOptions
from workbench.steps.files.open_model import OPEN, OpenModelOptions
from workbench.steps.step import Request

SOURCE = """
import torch
from torch import nn
def build():
    return nn.Linear(3, 4)
def classifier():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 5))
"""
METRIC = "def metric(outputs, batch):\n    return outputs.float().abs().mean(1)\n"


@pytest.fixture
def session(tmp_path: Path) -> wb.Session:
    (tmp_path / "own.py").write_text(SOURCE)
    (tmp_path / "metric.py").write_text(METRIC)
    random = np.random.default_rng(0)
    np.savez(tmp_path / "d.npz", x=random.standard_normal((64, 8)).astype("float32"), labels=np.arange(64) % 5)
    options = OpenModelOptions(path=str(tmp_path / "own.py"), factory="classifier")
    return OPEN.request(None, options, trust=True).run(ModelCache(), silent)


def ran(request: Request[Any, Any], file: Path, current: wb.Session) -> dict[str, Any]:
    """Run the copied script; returns its variables."""
    current.save(file)
    variables: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        exec(request.python(file, current.plan), variables)  # the script that a user would run
    return variables


def test_the_function_the_trust_and_the_place_of_a_model_are_repeated(session: wb.Session, tmp_path: Path) -> None:
    place = Placement("cpu", "stored", 1 << 32)
    options = CalibrateOptions(data=str(tmp_path / "d.npz"), samples=16)
    request = CALIBRATE.request(session, options, trust=True, placement=place)
    for words in ("factory='classifier'", "trust=True", "device='cpu', dtype='stored', memory=4294967296"):
        assert words in request.python()
    calibrated = request.run(ModelCache(), silent)
    again = ran(request, tmp_path / "s.qwb", session)["session"]
    assert again.model == calibrated.model and again.ranges == calibrated.ranges
    own = EVALUATE.request(calibrated, EvaluateOptions(metric=str(tmp_path / "metric.py")), trust=True)
    expected = own.run(ModelCache(), silent)
    assert str(ran(own, tmp_path / "s.qwb", calibrated)["result"].metrics) == str(expected.metrics)


def test_the_plan_of_the_job_is_the_one_that_is_run(session: wb.Session, tmp_path: Path) -> None:
    plan = Plan(name="of the job", fingerprint=session.model.fingerprint).assign(["0", "2"], weights="int4-g32-asym")
    request = RECONSTRUCTION.request(replace(session, plan=plan), ReconstructionOptions(), trust=True)
    later = replace(session, plan=plan.assign(["0"], weights="int8-channel"))
    variables = ran(request, tmp_path / "s.qwb", later)
    assert variables["session"].plan == plan and "from_json" not in request.python(current=plan)
    expected = request.run(ModelCache(), silent)
    assert {name: list(column) for name, column in variables["result"].columns.items()} == {
        name: list(column) for name, column in expected.columns.items()
    }


def test_a_copied_report_is_of_the_plan_of_its_job(session: wb.Session, tmp_path: Path) -> None:
    drawn: list[Plan] = []
    plan = Plan(name="of the job", fingerprint=session.model.fingerprint).assign(["0"], weights="int4-g32-asym")
    options = ReportOptions(path=str(tmp_path / "r.html"), view=State())
    request = WRITE_REPORT.request(replace(session, plan=plan), options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(screenshot, "write_report", lambda about, out: drawn.append(about.plan))
        ran(request, tmp_path / "s.qwb", session)
    assert drawn == [plan]


def test_what_a_script_does_not_use_is_not_imported_and_other_names_stay(session: wb.Session, tmp_path: Path) -> None:
    other, data = session.plan.assign(["0"], weights="int3-channel"), 'a "session.qwb".txt'
    script = CALIBRATE.request(session, CalibrateOptions(data=data)).python(tmp_path / "s.qwb", other)
    assert "replace" not in script and repr(data) in script
    compile(script, "copied", "exec")

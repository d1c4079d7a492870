"""Every request has a script, whose names, calls and arguments exist."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import pkgutil
from inspect import Parameter, signature
from typing import Any

import pytest

import workbench.steps
from tests.gui import sessions
from workbench.gui.shell.as_python import as_python
from workbench.steps import requests, training
from workbench.steps.audits import AuditPlan, RefineTable
from workbench.steps.before_after import ShowAfter, WeighInput
from workbench.steps.calibration_data import BrowseSamples, JudgeCalibration
from workbench.steps.candidate_timing import TimeCandidates
from workbench.steps.channel_errors import FindChannelErrors
from workbench.steps.devices import ListDevices
from workbench.steps.error_budgets import MeasureErrorBudget
from workbench.steps.paired_differences import ComparePlans
from workbench.steps.rooflines import SweepBatches
from workbench.steps.step import Request
from workbench.steps.timings import TimeKernels
from workbench.steps.train_job import TrainModel

SESSION = sessions.full(1)
LAYER = SESSION.model.layers[1].name

MADE = (
    requests.OpenModel(path="m", factory="build"), requests.OpenSession(path="s.qwb"),
    requests.SaveSession(session=SESSION, path="s.qwb"),
    requests.Calibrate(session=SESSION, data="text.txt", samples=3),
    requests.Score(session=SESSION, metric="weight_error", schemes=("int8-channel",)),
    requests.Score(session=SESSION, metric="predicted_kl_inputs", samples=5),
    requests.SearchPlan(session=SESSION, nbytes=123456),
    requests.SearchPlan(session=SESSION, bits_per_weight=4.0, target="vllm"),
    requests.Evaluate(session=SESSION, seed=4, metric="own.py:mine"),
    requests.Export(session=SESSION, kind="plan-json", out="p.json"),
    TimeKernels(session=SESSION, batch=8), TimeCandidates(session=SESSION, schemes=("int8-channel",), batch=2),
    SweepBatches(session=SESSION, batches=(1, 7), repeats=3),
    TrainModel(session=SESSION, kind="safetensors", out="o", data="d.txt", steps=5, learning_rate=0.5),
    AuditPlan(session=SESSION, data="d.txt", samples=9),
    RefineTable(session=SESSION, bits_per_weight=3.5, tolerance=0.1),
    JudgeCalibration(session=SESSION, samples=6), MeasureErrorBudget(session=SESSION, samples=3),
    ShowAfter(session=SESSION, layer=LAYER), WeighInput(session=SESSION, layer=LAYER),
    FindChannelErrors(session=SESSION, layer=LAYER), BrowseSamples(session=SESSION, split="evaluation", start=20),
    ComparePlans(first=SESSION.evaluations[0], second=SESSION.evaluations[1]), ListDevices(),
)  # fmt: skip

NEVER_SHOWN = {"Request", "Step"}
"""Requests that stand in no list of jobs."""


def all_requests() -> set[str]:
    """Return the names of all requests there are: frozen dataclasses with a title that run on open models."""
    found = set()
    for module in pkgutil.iter_modules(workbench.steps.__path__):
        for name, one in vars(importlib.import_module(f"workbench.steps.{module.name}")).items():
            if isinstance(one, type) and dataclasses.is_dataclass(one) and {"title", "run"} <= set(dir(one)):
                found.add(name)
    return found


def test_there_is_an_example_of_every_request() -> None:
    names = {type(request).__name__ for request in MADE if not isinstance(request, Request)}
    assert names == all_requests() - NEVER_SHOWN


def called(tree: ast.Module) -> list[tuple[Any, ast.Call]]:
    """Return every call of something that the script imports, with what is called."""
    there: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                holder = importlib.import_module(node.module)
                held = getattr(holder, one.name, None)
                there[one.name] = held or importlib.import_module(f"{node.module}.{one.name}")
        elif isinstance(node, ast.Import):
            there["wb"] = importlib.import_module(node.names[0].name)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            path, where = [], node.func
            while isinstance(where, ast.Attribute):
                path, where = [where.attr, *path], where.value
            if isinstance(where, ast.Name) and where.id in there:
                what = there[where.id]
                for part in path:
                    what = getattr(what, part)
                found.append((what, node))
    return found


@pytest.mark.parametrize("request_", MADE, ids=lambda request: type(request).__name__)
def test_the_script_calls_what_there_is(request_: Any) -> None:
    text = as_python(request_)
    compile(text, "script", "exec")
    calls = called(ast.parse(text))
    assert calls or "session.save" in text, text
    for what, call in calls:
        keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        signature(what).bind(*call.args, **keywords)
        if any(one.kind is Parameter.VAR_KEYWORD for one in signature(what).parameters.values()):
            passed_on = signature(training.train).parameters.keys()  # the only function here that passes options on
            assert keywords.keys() <= signature(what).parameters.keys() | passed_on


def test_what_was_asked_for_stands_in_the_script() -> None:
    texts = [as_python(request) for request in MADE]
    for words in (
        "size=123456", "samples=3", "target='vllm'", "steps=5", "metric='own.py:mine'", "tolerance=0.1",
        "'predicted_kl_inputs', samples=5", "'evaluation', 20", repr(LAYER), "(1, 7), repeats=3",
    ):  # fmt: skip
        assert any(words in text for text in texts), words
    bare = requests.Calibrate(session=SESSION, data="text.txt")
    assert as_python(bare).endswith("wb.calibrate(model, data='text.txt')\n")

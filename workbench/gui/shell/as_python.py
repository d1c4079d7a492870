"""A job as the Python that would do the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from workbench.steps.step import Request

HEAD = "import workbench as wb\n\n"

Writer = Callable[[Any], str]
"""Writes the lines of a request."""


def as_python(request: Any) -> str:
    """Return a script for a request; a comment for one that no script needs."""
    if isinstance(request, Request):
        return request.python()
    writer = _WRITERS.get(type(request).__name__)
    if writer is None:
        return f"# {request.title}: the window's own work, nothing to repeat in a script\n"
    return HEAD + str(writer(request)) + "\n"


def _given(request: Any, *names: str, **renamed: str) -> str:
    """Return the options that differ from the request's defaults as keyword arguments, with a comma before each."""
    parts = []
    for item in fields(request):
        name = renamed.get(item.name, item.name)
        value = getattr(request, item.name)
        if (item.name in names or item.name in renamed) and value != item.default:
            parts.append(f", {name}={value!r}")
    return "".join(parts)


def _session(request: Any) -> str:
    return 'session = wb.Session.load("session.qwb")  # the session of the window, saved\n'


def _source(request: Any) -> str:
    return repr(str(request.session.model.source.path))


def _on_session(module: str, name: str, *given: str, first: str = "", of_layer: bool = False) -> Writer:
    """Return what writes a call of a function of ``workbench.steps`` on the saved session.

    ``first`` names the request's field that is the second positional argument; ``of_layer``: that is its layer, and the
    function wants the opened model.
    """

    def write(request: Any) -> str:
        field = "layer" if of_layer else first
        arguments = f"session, {getattr(request, field)!r}" if field else "session"
        model = ", model=tasks.reopen(session.model)" if of_layer else ""
        tasks = "from workbench.steps import tasks\n" if of_layer else ""
        return (
            f"{tasks}from workbench.steps.{module} import {name}\n\n{_session(request)}"
            f"result = {name}({arguments}{model}{_given(request, *given)})"
        )

    return write


def _page(request: Any) -> str:
    return (
        "from workbench.steps import tasks\nfrom workbench.steps.calibration_data import sample_page\n\n"
        f"{_session(request)}page = sample_page(session, {request.split!r}, {request.start!r}, {request.count!r}, "
        "model=tasks.reopen(session.model))"
    )


def _comparison(request: Any) -> str:
    first, second = ((run.plan_hash, run.data_hash) for run in (request.first, request.second))
    return (
        f"from workbench.steps.paired_differences import paired_differences\n\n{_session(request)}"
        "runs = {(run.plan_hash, run.data_hash): run for run in session.evaluations}\n"
        f"differences = paired_differences(runs[{first!r}], runs[{second!r}])"
    )


_WRITERS: dict[str, Writer] = {
    "AuditPlan": _on_session("audits", "audit_plan", "data", "samples", "batch_size"),
    "RefineTable": _on_session(
        "audits", "refine_table", "samples", "batch_size", "tolerance", first="bits_per_weight"
    ),
    "JudgeCalibration": _on_session("audits", "calibration_quality", "samples", "batch_size"),
    "MeasureErrorBudget": _on_session("error_budgets", "error_budget", "samples"),
    "ShowAfter": _on_session("before_after", "before_after", of_layer=True),
    "WeighInput": _on_session("before_after", "weigh_input", of_layer=True),
    "FindChannelErrors": _on_session("channel_errors", "channel_errors", of_layer=True),
    "TimeCandidates": _on_session("timings", "candidate_timings", "batch", "repeats", first="schemes"),
    "SweepBatches": _on_session("rooflines", "sweep_batches", "repeats", first="batches"),
    "BrowseSamples": _page,
    "ComparePlans": _comparison,
    "ListDevices": lambda r: "from workbench.steps.devices import devices\n\nprint(*devices(), sep='\\n')",
    "OpenModel": lambda r: f"model = wb.open({r.path!r}{_given(r, 'factory', 'weights', 'trust')})",
    "OpenSession": lambda r: f"session = wb.Session.load({r.path!r})",
    "SaveSession": lambda r: f"session.save({r.path!r})",
    "Calibrate": lambda r: (
        f"model = wb.open({_source(r)})\n"
        f"session = wb.calibrate(model, {r.data!r}{_given(r, 'samples', 'batch_size', 'seed')})"
    ),
    "Score": lambda r: (
        f"{_session(r)}session = wb.score(session, {r.metric!r}"
        f"{_given(r, 'schemes', 'samples', 'batch_size', 'seed', 'algorithm')})"
    ),
    "SearchPlan": lambda r: (
        f"{_session(r)}plan = wb.search(session, metric={r.metric!r}"
        f"{_given(r, 'bits_per_weight', nbytes='size')})"
        if r.target is None else
        f"from workbench.planning.budgets import Budgets\nfrom workbench.steps import planner\n\n{_session(r)}"
        f"budgets = Budgets(bits_per_weight={r.bits_per_weight!r}, nbytes={r.nbytes!r})\n"
        f"plan = planner.find_plan(session, budgets, metric={r.metric!r}, target={r.target!r})"
    ),
    "TrainModel": lambda r: (
        f"from workbench.steps.training import train_and_export\n\n{_session(r)}"
        f"train_and_export(session, {r.kind!r}, {r.out!r}, checkpoint={r.checkpoint!r}"
        f"{_given(r, 'steps', 'learning_rate', 'batch_size', 'loss', 'samples', 'seed')}"
        + (f", data={r.data!r})" if r.data else ")")
    ),
    "Evaluate": lambda r: (
        f"{_session(r)}evaluation = wb.evaluate(session{_given(r, 'data', 'samples', 'batch_size', 'seed', 'metric')})"
    ),
    "TimeKernels": lambda r: (
        f"{_session(r)}timings = wb.time_kernels(session{_given(r, 'batch', 'repeats')})"
    ),
    "Export": lambda r: f"{_session(r)}wb.export(session, {r.kind!r}, {r.out!r})",
}

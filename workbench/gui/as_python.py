"""A job as the Python that would do the same."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

HEAD = "import workbench as wb\n\n"


def as_python(request: Any) -> str:
    """Return a script for a request; a comment for one that no script needs."""
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


_WRITERS = {
    "OpenModel": lambda r: f"model = wb.open({r.path!r}{_given(r, 'factory', 'weights', 'trust')})",
    "OpenSession": lambda r: f"session = wb.Session.load({r.path!r})",
    "SaveSession": lambda r: f"session.save({r.path!r})",
    "Calibrate": lambda r: (
        f"model = wb.open({_source(r)})\n"
        f"session = wb.calibrate(model, {r.data!r}{_given(r, 'samples', 'batch_size', 'seed')})"
    ),
    "Score": lambda r: (
        f"{_session(r)}session = wb.sensitivity(session, {r.metric!r}"
        f"{_given(r, 'schemes', 'samples', 'batch_size', 'seed', 'algorithm')})"
    ),
    "SearchPlan": lambda r: (
        f"{_session(r)}plan = wb.search(session, metric={r.metric!r}"
        f"{_given(r, 'bits_per_weight', nbytes='size')})"
        if r.target is None else
        f"from workbench.planning.budgets import Budgets\nfrom workbench.runtime import planner\n\n{_session(r)}"
        f"budgets = Budgets(bits_per_weight={r.bits_per_weight!r}, nbytes={r.nbytes!r})\n"
        f"plan = planner.find_plan(session, budgets, metric={r.metric!r}, target={r.target!r})"
    ),
    "TrainModel": lambda r: (
        f"from workbench.runtime.training import train_and_export\n\n{_session(r)}"
        f"train_and_export(session, {r.kind!r}, {r.out!r}, checkpoint={r.checkpoint!r}"
        f"{_given(r, 'steps', 'learning_rate', 'batch_size', 'loss', 'samples', 'seed')}"
        + (f", data={r.data!r})" if r.data else ")")
    ),
    "Evaluate": lambda r: (
        f"{_session(r)}evaluation = wb.evaluate(session{_given(r, 'data', 'samples', 'batch_size', 'seed')})"
    ),
    "TimeKernels": lambda r: (
        f"{_session(r)}timings = wb.time_kernels(session{_given(r, 'batch', 'repeats')})"
    ),
    "Export": lambda r: f"{_session(r)}wb.export(session, {r.kind!r}, {r.out!r})",
}

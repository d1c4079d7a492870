"""Quantization Workbench: see, plan, check and export mixed-precision quantization of neural networks.

The scripted interface is what ``__all__`` lists; each name is loaded when it is first used, so that importing the
package costs nothing.
"""

from __future__ import annotations

import os

from workbench.version import VERSION as __version__

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
"""For torch, which reads it when it is loaded.  Threads that spin while they wait take the processor from the one that
they wait for on a busy machine: passes over a sentence encoder took 6 to 40 s beside other work, and 1 s since."""

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
"""For ONNX Runtime, which from 1.29 on tells Microsoft the names and hashes of the models that it runs (Linux)."""

TYPE_CHECKING = False  # typing is not loaded: until the program's first line, a signal ends it without a word

_WHERE = {
    "Assignment": "workbench.planning.plan",
    "Model": "workbench.models.model",
    "Plan": "workbench.planning.plan",
    "Rule": "workbench.planning.plan",
    "Session": "workbench.session.session",
    "WorkbenchError": "workbench.errors",
    "apply": "workbench.steps.files.export",
    "best_targets": "workbench.steps.targets",
    "calibrate": "workbench.steps.calibrate",
    "cluster": "workbench.engine.executors",
    "estimate": "workbench.steps.preflight.estimate",
    "evaluate": "workbench.steps.evaluate",
    "export": "workbench.steps.files.export",
    "memory_limit": "workbench.memory",
    "open": "workbench.steps.files.open_model",
    "parse_scheme": "workbench.numerics.formats",
    "quantize": "workbench.steps.quantize",
    "score": "workbench.steps.score",
    "search": "workbench.steps.search",
    "start": "workbench.steps.files.first_session",
    "time_kernels": "workbench.steps.timing.kernels",
    "train": "workbench.steps.train",
}

__all__ = [*sorted(_WHERE), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


if TYPE_CHECKING:
    from typing import Any

    from workbench.engine.executors import cluster as cluster
    from workbench.errors import WorkbenchError as WorkbenchError
    from workbench.memory import memory_limit as memory_limit
    from workbench.models.model import Model as Model
    from workbench.numerics.formats import parse_scheme as parse_scheme
    from workbench.planning.plan import Assignment as Assignment
    from workbench.planning.plan import Plan as Plan
    from workbench.planning.plan import Rule as Rule
    from workbench.session.session import Session as Session
    from workbench.steps.calibrate import calibrate as calibrate
    from workbench.steps.evaluate import evaluate as evaluate
    from workbench.steps.files.export import apply as apply
    from workbench.steps.files.export import export as export
    from workbench.steps.files.first_session import start as start
    from workbench.steps.files.open_model import open as open
    from workbench.steps.preflight.estimate import estimate as estimate
    from workbench.steps.quantize import quantize as quantize
    from workbench.steps.score import score as score
    from workbench.steps.search import search as search
    from workbench.steps.targets import best_targets as best_targets
    from workbench.steps.timing.kernels import time_kernels as time_kernels
    from workbench.steps.train import train as train

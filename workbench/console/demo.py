"""The bundled demo without a display: the whole job on the bundled language model, every file written, one summary."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from workbench.atomic import require_writable
from workbench.console import launch
from workbench.console.command import Command
from workbench.console.flags import flag
from workbench.console.models import facts_table
from workbench.console.report import Report
from workbench.console.reports.evaluations import figures_of, metrics_table
from workbench.content_kind import PLAN, SESSION
from workbench.errors import BackendUnavailableError, SessionError
from workbench.measurement.evaluation import Evaluation
from workbench.memory import size_text
from workbench.progress import Progress, part_of
from workbench.steps.calibrate import calibrate
from workbench.steps.evaluate import evaluate
from workbench.steps.files.export import export
from workbench.steps.files.open_model import open as open_model
from workbench.steps.score import score
from workbench.steps.search import search
from workbench.steps.timing.kernels import time_kernels

MODEL = "demo:language-model"
"""The bundled language model, and its data."""

BITS_PER_WEIGHT = 4.5
"""The budget of the demo's mixed plan."""

EVALUATION_SAMPLES = 64
"""Windows of text that the demo evaluates on; enough for tight intervals, quick on two cores."""


FILES = {
    "session": ("session.qwb", SESSION), "plan": ("plan.json", PLAN), "script": ("replay.py", "a Python file"),
    "exported": ("model.safetensors", "a safetensors file"), "window": ("window.png", "a picture"),
}  # fmt: skip
"""What the demo writes, and of which kind each file is."""

ROOM = 16 << 20
"""Bytes that they take together, at most."""


def run(out: Path, progress: Progress) -> Report:
    """Open, calibrate, score, plan, evaluate, time, save, export, picture; returns the summary."""
    out.mkdir(parents=True, exist_ok=True)
    _require_room(out)
    model = open_model(MODEL)
    session = calibrate(model, MODEL, progress=part_of(progress, 0.0, 0.2))
    session = score(session, "predicted_kl", model=model, progress=part_of(progress, 0.2, 0.35))
    plan = search(session, bits_per_weight=BITS_PER_WEIGHT)
    session = replace(session, plan=plan)
    evaluation = evaluate(session, model=model, samples=EVALUATION_SAMPLES, progress=part_of(progress, 0.35, 0.6))
    timings = time_kernels(session, progress=part_of(progress, 0.6, 0.75))
    session = replace(session, evaluations=(evaluation,), timings=timings)
    files = {what: str(out / name) for what, (name, _) in FILES.items()}
    plan.save(files["plan"])
    export(session, "script", files["script"], model=model)
    export(session, "safetensors", files["exported"], model=model, progress=part_of(progress, 0.75, 0.9))
    session.save(files["session"])
    progress(0.9, "Drawing the window")
    draw(Path(files["session"]), Path(files["window"]))
    progress(1.0, "Done")
    return _summary(files, evaluation, session.model.nbytes)


def _require_room(out: Path) -> None:
    """Raise SessionError where the files cannot be written: before the work of minutes that gives them."""
    for what, (name, kind) in FILES.items():
        require_writable(out / name, SessionError, f"the {what} file", kind)
    if (free := shutil.disk_usage(out).free) < ROOM:
        raise SessionError(f"the demo writes up to {size_text(ROOM)} to {out}, where {size_text(free)} are free")


def draw(session: Path, picture: Path) -> None:
    """Draw the window of ``session`` into ``picture`` in a process of its own, offscreen.

    Raises BackendUnavailableError with Qt's own words where Qt cannot start.
    """
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    command = [sys.executable, "-P", "-m", "workbench.gui.screenshot", str(session), str(picture)]
    completed = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    if completed.returncode or not picture.exists():
        words = (completed.stderr.strip().splitlines() or ["no message"])[-1]
        raise BackendUnavailableError(f"the window could not be drawn ({words}); everything else was written")


def _summary(files: dict[str, str], evaluation: Evaluation, before: int) -> Report:
    """Return where the files are and the figures; ``before``: the bytes of the floating-point model."""
    predicted = evaluation.predicted_kl
    return Report(
        facts={**files, "floating_point_bytes": before, **figures_of(evaluation)},
        parts=[
            facts_table({"replay script" if name == "script" else name: path for name, path in files.items()}),
            facts_table({
                "bits per weight": f"{evaluation.bits_per_weight:.3f}",
                "bytes": f"{size_text(evaluation.nbytes)} (floating point {size_text(before)})",
                "predicted KL": "none" if predicted is None else f"{predicted:.4g} nats",
                "measured KL": f"{evaluation.metrics['kl'].value:.4g} nats",
            }),
            metrics_table(evaluation),
        ],
    )  # fmt: skip


def _run(arguments: argparse.Namespace, progress: Progress) -> Report | int:
    return run(Path(arguments.out), progress) if arguments.headless else launch.open_window(MODEL)


DEMO = Command(
    name="demo", help="Shows the bundled model, in the window or headless.",
    example="demo --headless --out demo-output", run=_run,
    flags=(
        flag("--headless", action="store_true", help="run all steps without a display"),
        flag("--out", metavar="DIR", default="demo-output", help="where --headless writes (default demo-output)"),
    ),
)  # fmt: skip

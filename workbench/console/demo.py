"""The bundled demo without a display: the whole job on the bundled language model, every file written, one summary."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.console import reports
from workbench.console.terminal import readable_bytes, table
from workbench.errors import BackendUnavailableError
from workbench.progress import Progress

MODEL = "demo:language-model"
"""The bundled language model, and its data."""

BITS_PER_WEIGHT = 4.5
"""The budget of the demo's mixed plan."""

EVALUATION_SAMPLES = 64
"""Windows of text that the demo evaluates on; enough for tight intervals, quick on two cores."""


def run(out: Path, progress: Progress) -> dict[str, Any]:
    """Open, calibrate, score, plan, evaluate, time, save, export, picture; returns the summary object."""
    from workbench.steps import tasks
    from workbench.steps.timings import time_kernels

    out.mkdir(parents=True, exist_ok=True)
    model = tasks.open(MODEL)
    session = tasks.calibrate(model, MODEL, progress=_part(progress, 0.0, 0.2))
    session = tasks.score(session, "predicted_kl", model=model, progress=_part(progress, 0.2, 0.35))
    plan = tasks.search(session, bits_per_weight=BITS_PER_WEIGHT)
    session = replace(session, plan=plan)
    evaluation = tasks.evaluate(
        session, model=model, samples=EVALUATION_SAMPLES, progress=_part(progress, 0.35, 0.6)
    )
    timings = time_kernels(session, progress=_part(progress, 0.6, 0.75))
    session = replace(session, evaluations=(evaluation,), timings=timings)
    plan.save(out / "plan.json")
    tasks.export(session, "script", str(out / "replay.py"), model=model)
    packed = str(out / "model.safetensors")
    tasks.export(session, "safetensors", packed, model=model, progress=_part(progress, 0.75, 0.9))
    session.save(out / "session.qwb")
    progress(0.9, "Drawing the window")
    picture = draw(out / "session.qwb", out / "window.png")
    progress(1.0, "Done")
    return {
        "session": str(out / "session.qwb"), "plan": str(out / "plan.json"), "script": str(out / "replay.py"),
        "exported": packed, "window": picture,
        "floating_point_bytes": session.model.nbytes, **reports.evaluate(evaluation),
    }  # fmt: skip


def _part(progress: Progress, start: float, stop: float) -> Progress:
    """Return a progress that fills the share from ``start`` to ``stop``."""

    def report(fraction: float, text: str, partial: Any = None) -> None:
        progress(start + (stop - start) * fraction, text)

    return report


def draw(session: Path, picture: Path) -> str:
    """Draw the window of ``session`` into ``picture`` in a process of its own, offscreen; return where it is.

    Raises BackendUnavailableError with Qt's own words where Qt cannot start.
    """
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    command = [sys.executable, "-m", "workbench.gui.screenshot", str(session), str(picture)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode or not picture.exists():
        words = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise BackendUnavailableError(f"the window could not be drawn ({words}); everything else was written")
    return str(picture)


def demo_text(result: dict[str, Any]) -> str:
    """Return where the files are and the table of figures."""
    metrics = result["metrics"]
    rows = [
        (name.replace("_", " "), f"{entry['baseline']:.4g}", f"{entry['value']:.4g}",
         f"{entry['low']:.4g} .. {entry['high']:.4g}", entry["unit"])
        for name, entry in metrics.items()
    ]  # fmt: skip
    predicted = result["predicted_kl"]
    before, after = readable_bytes(result["floating_point_bytes"]), readable_bytes(result["bytes"])
    lines = [
        f"session        {result['session']}",
        f"plan           {result['plan']}",
        f"replay script  {result['script']}",
        f"exported file  {result['exported']}",
        f"window         {result['window']}",
        "",
        f"bits per weight  {result['bits_per_weight']:.3f}",
        f"bytes            {after} (floating point {before})",
        f"predicted KL     {predicted:.4g} nats" if predicted is not None else "predicted KL     none",
        f"measured KL      {metrics['kl']['value']:.4g} nats",
        "",
        table(rows, ("metric", "floating point", "quantized", "95 % interval", "unit")),
    ]
    return "\n".join(lines)

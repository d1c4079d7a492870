"""The window's side of the runtime loads nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "module",
    ["engine.jobs", "engine.engine", "steps", "session.workspace", "engine.model_cache", "engine.transport"],
)
def test_the_windows_side_imports_nothing_heavy(module: str) -> None:
    code = (
        f"import sys, workbench.{module}; "
        "heavy = {'torch', 'h5py', 'transformers', 'PySide6', 'scipy', 'cupy'} & set(sys.modules); "
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert completed.returncode == 0, f"workbench.{module} imports {completed.stderr}"


WINDOW = """
import asyncio, sys
from workbench.steps.calibrate import CALIBRATE, CalibrateOptions
from workbench.steps.evaluate import EVALUATE, EvaluateOptions
from workbench.steps.files.open_model import OPEN, OpenModelOptions
from workbench.steps.score import SCORE, ScoreOptions
from workbench.steps.search import SEARCH, SearchOptions
from workbench.steps.timing.kernels import TIME_KERNELS, TimeKernelsOptions
from workbench.engine.engine import Engine
from workbench.engine.jobs import Jobs

async def main(model, data):
    engine = Engine()
    await engine.start()
    jobs = Jobs(engine)
    now = await jobs.submit(OPEN.request(None, OpenModelOptions(path=model))).result()
    for make in (
        lambda s: CALIBRATE.request(s, CalibrateOptions(data=data, samples=4)),
        lambda s: SCORE.request(s, ScoreOptions(schemes=("int4-g32-asym", "int8-channel"))),
        lambda s: SEARCH.request(s, SearchOptions(bits_per_weight=6.0)),
        lambda s: EVALUATE.request(s, EvaluateOptions(samples=4)),
        lambda s: TIME_KERNELS.request(s, TimeKernelsOptions(repeats=3)),
    ):
        request = make(now)
        now = request.joined(now, await jobs.submit(request.reduced()).result())
    assert now.curvature and now.sensitivities and now.evaluations and now.timings and now.plan.rules
    await jobs.close()
    heavy = {"torch", "h5py", "transformers", "scipy", "cupy"} & set(sys.modules)
    sys.exit(", ".join(sorted(heavy)) or 0)

if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
"""


def test_taking_up_every_result_loads_nothing_heavy_into_the_window(llama: Path, tokens: Path, tmp_path: Path) -> None:
    script = tmp_path / "window.py"
    script.write_text(WINDOW)
    completed = subprocess.run(
        [sys.executable, str(script), str(llama), str(tokens)], capture_output=True, text=True, check=False, timeout=200
    )
    assert completed.returncode == 0, completed.stderr
    assert "leaked" not in completed.stderr

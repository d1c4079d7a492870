"""What a fresh process loads, and where Qt and h5py may be imported; ``test_layout.py`` holds who imports whom."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = ("PySide6", "torch", "cupy", "transformers", "onnx", "h5py")

FREE_OF_TORCH = (
    "workbench", "workbench.numerics.formats", "workbench.numerics.statistics.layer_statistics",
    "workbench.numerics.ranges", "workbench.planning.plan", "workbench.planning.search.search",
    "workbench.planning.totals", "workbench.session.session", "workbench.session.workspace", "workbench.engine.jobs",
    "workbench.engine.engine", "workbench.steps", "workbench.deployment.exporters", "workbench.cli",
)  # fmt: skip


def loaded_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(' '.join(name for name in sys.modules if '.' not in name))"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(completed.stdout.split())


@pytest.mark.parametrize("module", FREE_OF_TORCH)
def test_a_fresh_process_loads_nothing_heavy(module: str) -> None:
    assert not loaded_after(f"import {module}") & set(HEAVY)


@pytest.mark.parametrize("chosen", ["", "active"])
def test_threads_do_not_spin_in_scripts_either(chosen: str) -> None:
    """Unless the user says so."""
    own = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    own |= {"OMP_WAIT_POLICY": chosen} if chosen else {}
    code = "import workbench, os; print(os.environ['OMP_WAIT_POLICY'])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=own).stdout
    assert printed.strip() == (chosen or "passive")


def test_the_window_loads_neither_torch_nor_h5py() -> None:
    loaded = loaded_after("import workbench.gui.app")
    assert "PySide6" in loaded
    assert not loaded & {"torch", "cupy", "transformers", "onnx", "h5py"}


def imports(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def test_qt_is_imported_in_the_window_only_and_h5py_in_one_file() -> None:
    wrong = []
    for path in sources("workbench") + sources("kernels"):
        place = path.relative_to(ROOT).as_posix()
        roots = {name.split(".")[0] for name in imports(path)}
        if not place.startswith("workbench/gui/") and roots & {"PySide6", "pyqtgraph", "qasync", "shiboken6"}:
            wrong.append(place)
        if not place.startswith("workbench/session/file/") and "h5py" in roots:
            wrong.append(place)
    assert not wrong


def test_onnx_runtime_does_not_report_what_it_runs(tmp_path: Path) -> None:
    """From 1.29 on it keeps a file for that among the temporary ones."""
    pytest.importorskip("onnxruntime")
    own = {name: value for name, value in os.environ.items() if name not in ("ORT_DISABLE_TELEMETRY", "CI")}
    code = "import workbench, onnxruntime; print(len(onnxruntime.get_available_providers()))"
    subprocess.run([sys.executable, "-c", code], check=True, env=own | {"TMPDIR": str(tmp_path)})
    assert os.listdir(tmp_path) == []


REMARKS = """
import importlib.util
import workbench.cli
from workbench import log, program

def run():
    log.start("command")
    from transformers.utils import logging
    logging.get_logger("transformers.masking_utils").warning("past_key_values are deprecated")
    if importlib.util.find_spec("torchao"):
        import torchao.quantization
    return 0

workbench.cli.main = run
program.start()
"""


def test_libraries_make_no_remarks_to_users(tmp_path: Path) -> None:
    own = os.environ | {"WORKBENCH_LOG_FOLDER": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", REMARKS], env=own, capture_output=True, text=True, check=True)
    assert ended.stderr == ""

"""The import rules: what a fresh process loads, and which folder may import which."""

from __future__ import annotations

import ast
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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", FREE_OF_TORCH)
def test_a_fresh_process_loads_nothing_heavy(module: str) -> None:
    assert not loaded_after(f"import {module}") & set(HEAVY)


def test_the_window_loads_neither_torch_nor_h5py() -> None:
    loaded = loaded_after("import workbench.gui.app")
    assert "PySide6" in loaded
    assert not loaded & {"torch", "cupy", "transformers", "onnx", "h5py"}


LAYERS = (
    ("gui",), ("console",), ("steps",), ("engine",), ("insight",), ("session",), ("deployment",), ("quantization",),
    ("planning",), ("sensitivity",), ("measurement",), ("models",), ("numerics",),
)  # fmt: skip
RANK = {folder: rank for rank, folders in enumerate(LAYERS) for folder in folders}


def imports(path: Path, *, at_top: bool = False) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if at_top else list(ast.walk(tree))
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def test_imports_point_down() -> None:
    wrong = []
    for path in sources("workbench"):
        parts = path.relative_to(ROOT / "workbench").parts
        if len(parts) == 1:
            continue
        for name in imports(path):
            words = name.split(".")
            if words[0] == "workbench" and len(words) > 1 and words[1] in RANK and RANK[words[1]] < RANK[parts[0]]:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not wrong


def test_every_folder_of_the_package_has_a_rank() -> None:
    folders = {path.parent.name for path in (ROOT / "workbench").glob("*/__init__.py")}
    assert folders == set(RANK)


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


def test_kernels_import_nothing_of_the_application() -> None:
    wrong = [path for path in sources("kernels") if any(name.split(".")[0] == "workbench" for name in imports(path))]
    assert not wrong


def test_no_file_is_named_after_nothing() -> None:
    names = {"utils", "helpers", "common", "misc", "manager", "core"}
    assert not [path for path in sources("workbench") + sources("kernels") if path.stem in names]

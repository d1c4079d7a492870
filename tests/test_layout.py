"""The layout holds: rooms, sizes, one direction of imports, packages that are installed."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

from tests import layout

ROOT = layout.ROOT
FILE_LINES = 440
"""The most lines of a file; nearly all have fewer than 400."""

LINES = 96_085
"""The goal is in ``layout.GOALS``; until it is reached, the application must not grow beyond this."""


@pytest.fixture(scope="module")
def tree() -> dict[str, layout.Module]:
    """Return every module."""
    return layout.modules()


def test_no_import_circles(tree: dict[str, layout.Module]) -> None:
    assert layout.circles(tree) == []


def test_imports_point_down(tree: dict[str, layout.Module]) -> None:
    assert layout.upward(tree) == []


def test_every_room_is_in_the_list() -> None:
    folders = {path.parent.name for path in (ROOT / "workbench").glob("*/__init__.py")}
    assert folders == set(layout.ROOMS)
    inside = {path.parent.name for path in (ROOT / "workbench" / "gui").glob("*/__init__.py")}
    assert inside == set(layout.GUI_ROOMS) - {""}


def test_folders_stay_small() -> None:
    most = layout.GOALS["files in the fullest folder"]
    assert {folder: count for folder, count in layout.files_by_folder().items() if count > most} == {}


def test_files_stay_small() -> None:
    files = [path for folder in layout.PACKAGES for path in (ROOT / folder).rglob("*.py")]
    lines = {path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    assert {file: count for file, count in lines.items() if count > FILE_LINES} == {}


def test_functions_stay_short() -> None:
    assert len(layout.long_functions()) <= layout.GOALS["functions over 40 lines"]


@pytest.mark.parametrize("room", ("steps", "engine", "session"))
def test_no_signature_of_the_core_says_any(room: str) -> None:
    loose = []
    for path in (ROOT / "workbench" / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                hints = (each.annotation for each in ast.walk(node.args) if isinstance(each, ast.arg))
                names = (each for hint in (*hints, node.returns) if hint is not None for each in ast.walk(hint))
                if any(isinstance(name, ast.Name) and name.id == "Any" for name in names):
                    loose.append(f"{path.relative_to(ROOT).as_posix()}:{node.lineno} {node.name}")
    assert loose == []


def test_the_application_does_not_grow() -> None:
    assert layout.figures()["lines of workbench"] < LINES


@pytest.mark.parametrize("package", ("workbench", "kernels"))
def test_every_folder_says_in_one_line_what_belongs_there(package: str) -> None:
    silent = []
    for path in (ROOT / package).rglob("__init__.py"):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        if not text or "\n" in text.split("\n\n")[0]:
            silent.append(path.relative_to(ROOT).as_posix())
    assert silent == []


def test_no_folder_with_code_lacks_its_init_file() -> None:
    folders = {path.parent for package in ("workbench", "kernels") for path in (ROOT / package).rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_every_package_is_installed() -> None:
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    packages = {
        ".".join((name, *path.parent.relative_to(ROOT / folder).parts))
        for folder, name in layout.PACKAGES.items()
        for path in (ROOT / folder).rglob("__init__.py")
    }
    assert sorted(setuptools["packages"]) == sorted(packages | {"workbench_resources"})


def test_no_file_is_named_after_nothing() -> None:
    names = {"utils", "helpers", "common", "misc", "manager", "core"}
    files = [path for package in ("workbench", "kernels") for path in (ROOT / package).rglob("*.py")]
    assert [path for path in files if path.stem in names] == []


def test_a_circle_and_an_upward_import_are_noticed(tmp_path: Path) -> None:
    for name, text in {
        "workbench/numerics/a.py": "def f():\n    from workbench.models import b\n    return b\n",
        "workbench/models/b.py": "from workbench.numerics.a import f\n",
        "kernels/op.py": "from . import launch\n",
        "kernels/launch.py": "import typing\n\nif typing.TYPE_CHECKING:\n    from .op import Op\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    tree = layout.modules(tmp_path)
    assert sorted(layout.circles(tree)) == [
        ("workbench.models.b", "workbench.numerics.a"), ("workbench_kernels.launch", "workbench_kernels.op"),
    ]  # fmt: skip
    assert layout.upward(tree) == ["workbench.numerics.a imports workbench.models.b"]

"""A dry run of the table in CONTRIBUTING.md: a made-up member of every kind, added through the documented places only.

A copy of the code gets the new files and one line (with its import) in the tuple that the table names.  Nothing else is
touched, and the members show up wherever members of their kind do.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ADDITIONS = Path(__file__).parent / "additions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """A made-up member: its row in the table, its file, and the entry in the tuple of the folder.

    ``check`` is the program that must run in the copy; ``source`` is where the file's text comes from.
    """

    what: str
    file: str
    registry: str
    table: str
    entry: str
    check: str
    source: Path | None = None

    @property
    def text(self) -> Path:
        """The made-up file."""
        return self.source or ADDITIONS / Path(self.file).name


MODEL = """
import numpy as np, workbench as wb
np.savez("made.weights.npz", layer=np.random.default_rng(0).standard_normal((32, 64)).astype(np.float32))
model = wb.open("made.weights.npz")
session = wb.start(model)
"""

ADDED = (
    Addition(
        what="number format", file="workbench/numerics/formats/three_six.py",
        source=ROOT / "resources/guide/tutorials/three_six.py", registry="workbench/numerics/formats/__init__.py",
        table="FAMILIES", entry="three_six.FAMILY",
        check="""
from workbench.insight.schemes import families
from workbench.numerics.formats import parse_scheme
assert parse_scheme("three-six").bits((32, 64)) > 0
assert any("three-six" in names for _, names in families())
""",
    ),
    Addition(
        what="range method", file="workbench/numerics/ranges/half_range.py",
        registry="workbench/numerics/ranges/__init__.py", table="METHODS", entry="half_range.HalfRange()",
        check=MODEL + """
session = wb.calibrate(model, session=session)
assert session.ranges["layer", "weight", "half-range"].high > 0
""",
    ),
    Addition(
        what="rounding algorithm", file="workbench/numerics/rounding/shrink.py",
        registry="workbench/numerics/rounding/__init__.py", table="ALGORITHMS", entry="shrink.Shrink()",
        check=MODEL + """
plan = session.plan.assign(["layer"], weights="int8-channel", algorithm="shrink")
assert wb.quantize(model, plan).tensors["layer"] is not None
""",
    ),
    Addition(
        what="model source", file="workbench/models/sources/numpy_archive.py",
        registry="workbench/models/sources/catalog.py", table="SOURCES", entry="numpy_archive.NumpyArchive()",
        check=MODEL + """
assert [layer.name for layer in model.summary.layers] == ["layer"]
try:
    wb.open("nothing.here")
except wb.WorkbenchError as error:
    assert "a .weights.npz archive" in str(error)
""",
    ),
    Addition(
        what="exporter", file="workbench/deployment/exporters/layer_list.py",
        registry="workbench/deployment/exporters/__init__.py", table="EXPORTERS", entry="layer_list.LayerList()",
        check=MODEL + """
session.save("s.qwb")
from workbench.cli import main
assert main(["export", "s.qwb", "--to", "layer-list", "--out", "l.txt"]) == 0
assert open("l.txt").read() == "layer keep\\n"
""",
    ),
    Addition(
        what="sensitivity metric", file="workbench/sensitivity/metrics/largest_error.py",
        registry="workbench/sensitivity/metrics/__init__.py", table="METRICS", entry="largest_error.LARGEST_ERROR",
        check=MODEL + """
session.save("s.qwb")
from workbench.cli import main
assert main(["sensitivity", "s.qwb", "--metric", "largest-error", "--schemes", "int4-channel"]) == 0
table = wb.Session.load("s.qwb").sensitivities["largest_error"]
assert 0 < table.score[0, 0] < 0.5
""",
    ),
    Addition(
        what="evaluation metric", file="workbench/measurement/metrics/largest_change.py",
        registry="workbench/measurement/metrics/__init__.py", table="METRICS", entry="largest_change.LARGEST_CHANGE",
        check="""
import workbench as wb
model = wb.open("demo:digits-classifier")
session = wb.calibrate(model, samples=16)
plan = session.plan.assign([model.summary.layers[0].name], weights="int4-channel")
evaluation = wb.evaluate(session, plan, model=model, samples=16)
assert evaluation.metrics["largest_change"].value > 0
""",
    ),
    Addition(
        what="step", file="workbench/steps/count_weights.py", registry="workbench/steps/__init__.py", table="STEPS",
        entry="count_weights.COUNT_WEIGHTS",
        check=MODEL + """
session.save("s.qwb")
from workbench.cli import main
assert main(["count-weights", "s.qwb"]) == 0
result = wb.Session.load("s.qwb").results["count-weights"]
assert result.columns["scheme"] == ("keep",) and result.columns["weights"].tolist() == [2048]
""",
    ),
    Addition(
        what="panel", file="workbench/gui/panels/weight_counts.py", registry="workbench/gui/panels/__init__.py",
        table="PANELS",
        entry='PanelSpec("weight_counts", "Weights", "right top", "Alt+W", weight_counts.WeightCountsPanel)',
        check=MODEL + """
from workbench.gui.app import application
from workbench.gui.context.context import Context
from workbench.gui.shell import theme
from workbench.gui.window import Window
from workbench.session.workspace import Workspace
app = application()
context = Context(Workspace())
window = Window(context, theme.LIGHT, keep_layout=False)
window.show()
context.workspace.open(session, None)
window.reveal("weight_counts")
for _ in range(20):
    app.processEvents()
assert window.panels["weight_counts"].label.text() == "not counted"
window.dispose()
app.processEvents()
""",
    ),
    Addition(
        what="kernel", file="kernels/cpu/einsum.py", registry="kernels/catalog.py", table="OPS", entry="einsum.FP64",
        check="""
from workbench_kernels.bench.measure import check, measure
from workbench_kernels.catalog import OPS
by_name = {op.name: op for op in OPS}
made = by_name["einsum fp64 linear"]
check(made, made.prepare(16, 32, 2, 0))
assert measure(16, 32, 2, made, by_name["torch fp32 linear"], repeats=2).kernel.shape == (2,)
""",
    ),
)  # fmt: skip


def table_rows() -> dict[str, tuple[list[str], str]]:
    """Return, for each row of CONTRIBUTING's table, the folders of the new file and the file of the one line."""
    rows = {}
    for line in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        paths = [re.findall(r"`([\w/.]+)`", cell) for cell in cells[1:]]
        if line.startswith("|") and len(cells) == 3 and all(paths):
            rows[cells[0]] = paths[0], paths[1][0]
    return rows


def register(file: Path, addition: Addition) -> None:
    """Add the entry at the end of the tuple, and the import of its module."""
    module = addition.file.removesuffix(".py").replace("kernels/", "workbench_kernels/").replace("/", ".")
    package, _, name = module.rpartition(".")
    text = file.read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        target = node.target if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [None])[0]
        if isinstance(target, ast.Name) and target.id == addition.table:
            assert isinstance(node, ast.AnnAssign | ast.Assign) and isinstance(node.value, ast.Tuple)
            last = node.value.elts[-1]
            lines = text.split("\n")
            assert last.end_lineno is not None
            row = lines[last.end_lineno - 1]
            lines[last.end_lineno - 1] = f"{row[: last.end_col_offset]}, {addition.entry}{row[last.end_col_offset :]}"
            lines.insert(node.lineno - 1, f"from {package} import {name}  # noqa: E402")
            file.write_text("\n".join(lines), encoding="utf-8")
            return
    raise AssertionError(f"{file} has no tuple {addition.table}")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the code with every addition in it."""
    root = tmp_path_factory.mktemp("tree")
    for folder in ("workbench", "kernels"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "workbench_kernels").symlink_to(root / "kernels")
    (root / "workbench_resources").symlink_to(ROOT / "resources")
    for addition in ADDED:
        assert not (root / addition.file).exists()
        shutil.copy(addition.text, root / addition.file)
        register(root / addition.registry, addition)
    return root


@pytest.mark.parametrize("addition", ADDED, ids=lambda addition: addition.what)
def test_the_table_names_the_places(addition: Addition) -> None:
    folders, line = table_rows()[addition.what]
    assert f"{Path(addition.file).parent}/" in folders
    assert addition.registry == line


def test_every_row_of_the_table_is_tried() -> None:
    assert {addition.what for addition in ADDED} == set(table_rows())


RUNNER = """
import json, os, sys, traceback
failures = {}
for number, (what, check) in enumerate(json.load(sys.stdin)):
    os.makedirs(f"check-{number}")
    os.chdir(f"check-{number}")
    try:
        exec(check, {})
        failures[what] = ""
    except BaseException:
        failures[what] = traceback.format_exc()
    os.chdir("..")
print(json.dumps(failures))
"""


@pytest.fixture(scope="module")
def failures(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run every check in one process that imports the copy; return what went wrong by kind, empty where nothing did."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONWARNINGS": "error"}
    completed = subprocess.run(
        [sys.executable, "-c", RUNNER], input=json.dumps([(addition.what, addition.check) for addition in ADDED]),
        cwd=tmp_path_factory.mktemp("checks"), env=environment, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert completed.returncode == 0, completed.stderr
    result: dict[str, str] = json.loads(completed.stdout.splitlines()[-1])
    return result


@pytest.mark.parametrize("what", [addition.what for addition in ADDED])
def test_a_new_member_shows_up(what: str, failures: dict[str, str]) -> None:
    assert not failures[what]

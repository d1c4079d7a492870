"""What the window's process may import: names, bits, tables, ranges, errors, all without torch."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import workbench.numerics


def test_no_module_imports_torch_and_the_windows_questions_need_none() -> None:
    modules = [m.name for m in pkgutil.walk_packages(workbench.numerics.__path__, "workbench.numerics.")]
    assert "workbench.numerics.formats.scaled" in modules
    program = f"""
import importlib, sys
for name in {modules!r}:
    importlib.import_module(name)
from dataclasses import replace
import numpy as np
from workbench.numerics.formats import activation_schemes, parse_scheme, standard_schemes
from workbench.numerics.range_error import histogram_error
from workbench.numerics.ranges import METHODS
from workbench.numerics.statistics.layer_statistics import LayerStatistics
counts = np.zeros(2048, np.int64)
counts[1000:1100] = 7
seen = replace(LayerStatistics.empty(3), counts=counts, count=700, exponent=3, minimum=-0.2, maximum=0.6,
               total=20.0, total_squares=50.0, costs=counts / 4)
for scheme in standard_schemes() + activation_schemes():
    assert scheme.bits((64, 64)) > 0 and scheme.name and scheme.values() is not None
    for method in METHODS:
        found = method.range(seen, scheme)
        histogram_error(seen, scheme, found.low, found.high)
seen.merge(seen).display(64)
assert "torch" not in sys.modules, "torch was imported"
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

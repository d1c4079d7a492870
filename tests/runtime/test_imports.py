"""The window's side of the runtime loads nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["jobs", "engine", "requests", "workspace", "model_cache", "transport"])
def test_the_windows_side_imports_nothing_heavy(module: str) -> None:
    code = (
        f"import sys, workbench.runtime.{module}; "
        "heavy = {'torch', 'h5py', 'transformers', 'PySide6', 'scipy', 'cupy'} & set(sys.modules); "
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"workbench.runtime.{module} imports {done.stderr}"

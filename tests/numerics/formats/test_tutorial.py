"""The tutorial's format as an entry point of an installed package, and every line of Python in the tutorial."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

TUTORIALS = Path(__file__).parents[3] / "resources" / "guide" / "tutorials"

CHECKS = """
assert figures["three-six", False][0] > 13.5
assert figures["three-six", True][0] > figures["three-six", False][0] + 0.2
assert 20.9 < figures["q4_0", False][0] < 22.0
assert all(speed > 0 for _, speed in figures.values())
from workbench.numerics.formats import all_schemes
assert any(found.name == "three-six" for found in all_schemes())
import math
from workbench.errors import NonFiniteError, RangeError
for bad in (math.nan, math.inf):
    try:
        scheme.fit(torch.full((2, 40), bad))
        raise SystemExit("not refused")
    except NonFiniteError:
        pass
held = scheme.fit_range(-1.0, 3.0)
probe = torch.linspace(-5, 5, 100)[None]
assert set(scheme.round(probe, held).unique().tolist()) == set(scheme.grid(-1.0, 3.0).astype("float32").tolist())
assert torch.equal(scheme.decode(scheme.encode(probe, held)), scheme.round(probe, held))
for value in (0.0, 1e-45, 3e38):
    assert bool(scheme.quantize(torch.full((3, 70), value)).isfinite().all())
print("checked")
"""


def test_the_tutorial_runs_as_written_with_its_format_installed(tmp_path: Path) -> None:
    (tmp_path / "three_six.py").write_text((TUTORIALS / "three_six.py").read_text())
    information = tmp_path / "three_six-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: three-six\nVersion: 1.0\n")
    text = (TUTORIALS / "custom-scheme.md").read_text()
    toml = re.search(r'\[project\.entry-points\."([^"]+)"\]\n(.+)\n', text)
    assert toml is not None
    entry = toml[2].replace('"', "")
    (information / "entry_points.txt").write_text(f"[{toml[1]}]\n{entry}\n")
    program = "\n".join(re.findall(r"```python\n(.*?)```", text, re.S)) + CHECKS
    completed = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    assert "the contract holds" in completed.stdout
    assert "checked" in completed.stdout
    print(completed.stdout)

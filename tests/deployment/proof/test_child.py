"""The process that runs a file in its runtime: it may crash, be killed, say nothing, and ends with ours."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from workbench.deployment.proof.child import carry_out
from workbench.errors import ExportError
from workbench.progress import silent

OURS = """
import sys
from pathlib import Path
from workbench.deployment.proof.child import carry_out
from workbench.progress import silent
folder = Path(sys.argv[1])
carry_out(folder / "script.py", {"out": str(folder / "out")}, folder / "log", "R", 100.0, silent, ())
"""


@pytest.mark.parametrize("script, words", [
    ("import os; os.abort()", "it was ended by the signal SIGABRT"),
    ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL; the system does so where memory is short"),
    ("import os; os._exit(0)", "it ended without an answer"),
    ("import os; print('Error: no such tensor', flush=True); os.abort()", "Error: no such tensor"),
])  # fmt: skip
def test_how_it_ended_is_told(script: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(script)
    with pytest.raises(ExportError, match=f"R does not run the file: .*{words}"):
        carry_out(
            tmp_path / "script.py", {"out": str(tmp_path / "out")}, tmp_path / "log", "R", 100.0, silent, ("Error",)
        )


@pytest.mark.skipif(sys.platform != "linux", reason="prctl")
def test_it_ends_with_ours(tmp_path: Path) -> None:
    """It outlived a SIGKILL of the workbench, for up to half an hour."""
    (tmp_path / "script.py").write_text(
        f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()) + '.'); time.sleep(100)"
    )
    ours = subprocess.Popen([sys.executable, "-c", OURS, str(tmp_path)])
    child = None
    while child is None and ours.poll() is None:
        text = (tmp_path / "pid").read_text() if (tmp_path / "pid").exists() else ""
        child = psutil.Process(int(text[:-1])) if text.endswith(".") else None
        time.sleep(0.01)
    ours.kill()
    ours.wait()
    assert child is not None
    child.wait(timeout=60)
    assert not os.path.exists(f"/proc/{child.pid}/exe")

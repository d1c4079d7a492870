"""The report of a session file, as the command line writes it without a screen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from workbench.gui.report.step import WRITE_REPORT, ReportOptions
from workbench.session.session import Session
from workbench.session.workspace import State

ARCHIVED = Path(__file__).parent.parent / "archive" / "session-v1.qwb"


def report(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "workbench.cli", "report", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_session_becomes_a_page_also_with_names_that_are_no_unicode(tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = report(str(ARCHIVED), str(out))
    assert done.returncode == 0, done.stderr
    page = out.read_text(encoding="utf-8")
    assert "модель/слой.0" in page and "\\udcff broken" in page
    assert str(out) in done.stdout


def test_a_file_that_is_no_session_is_one_line(tmp_path: Path) -> None:
    done = report(str(tmp_path / "none.qwb"), str(tmp_path / "report.html"))
    assert done.returncode == 1 and len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "report.html").exists()


def test_the_job_copied_as_python_writes_the_same_page(tmp_path: Path) -> None:
    session, out = Session.load(ARCHIVED), tmp_path / "report.html"
    request = WRITE_REPORT.request(session, ReportOptions(path=str(out), view=State()))
    done = subprocess.run([sys.executable, "-c", request.python(ARCHIVED)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "модель/слой.0" in out.read_text(encoding="utf-8")

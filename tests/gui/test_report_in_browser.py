"""The report in a real browser (Chromium, as Qt WebEngine) and in a PDF reader: needs the package PySide6_Addons.

``WORKBENCH_SCREENSHOTS=FOLDER python -m pytest -m slow tests/gui/test_report_in_browser.py`` keeps the pictures.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from tests.gui import sessions
from workbench.gui.report import report
from workbench.session.workspace import Workspace

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

BROWSE = """
import json, sys
from PySide6.QtCore import QTimer, QUrl
from PySide6.QtWebEngineCore import QWebEnginePage
from PySide6.QtWebEngineWidgets import QWebEngineView
from PySide6.QtWidgets import QApplication

app, said = QApplication(["browser", "--no-sandbox"]), []
class Page(QWebEnginePage):
    def javaScriptConsoleMessage(self, level, text, line, source):
        said.append(text)
view = QWebEngineView()
view.setPage(Page(view))
view.resize(1200, 1600)
LOOK = '''(() => {
  const table = [...document.querySelectorAll("table")].sort((a, b) => b.rows.length - a.rows.length)[0];
  const texts = () => [...table.tBodies[0].rows].map(row => row.cells[0].innerText);
  const before = texts();
  const head = table.tHead.rows[0].cells[0];
  (head.querySelector("button") || head).click();
  const once = texts();
  (head.querySelector("button") || head).click();
  return JSON.stringify({before, once, twice: texts(),
    empty_headings: [...document.querySelectorAll("th[tabindex]")].filter(each => !each.textContent).length,
    svgs: document.querySelectorAll("svg").length,
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    empty: [...document.querySelectorAll("svg")].filter(each => each.getBoundingClientRect().height < 40).length,
    broken: [...document.images].filter(each => !each.naturalWidth).length, images: document.images.length,
    loaded: performance.getEntriesByType("resource").map(each => each.name)});
})()'''
def look():
    view.page().runJavaScript(LOOK, done)
def done(result):
    view.grab().save(sys.argv[2])
    print(json.dumps({"page": json.loads(result), "said": said}))
    view.setPage(None)
    app.quit()
view.loadFinished.connect(lambda ok: QTimer.singleShot(1500, look) if ok else app.exit(3))
view.load(QUrl.fromLocalFile(sys.argv[1]))
view.show()
QTimer.singleShot(120000, lambda: app.exit(4))
sys.exit(app.exec())
"""


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    folder = Path(os.environ.get("WORKBENCH_SCREENSHOTS", tmp_path)) / "report"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _written(folder: Path, name: str) -> Path:
    workspace = Workspace()
    workspace.open(sessions.full(12), None)
    report.write(workspace.state, folder / name)
    return folder / name


def _in_order(name: str) -> list[int | str]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def test_the_page_is_whole_in_chromium(qapp: QApplication, tmp_path: Path, shots: Path) -> None:
    import json

    pytest.importorskip("PySide6.QtWebEngineWidgets", reason="the browser is in the package PySide6_Addons")
    page = _written(tmp_path, "report.html")
    environment = {**os.environ, "QTWEBENGINE_DISABLE_SANDBOX": "1", "QTWEBENGINE_CHROMIUM_FLAGS": "--disable-gpu"}
    run = subprocess.run(
        [sys.executable, "-c", BROWSE, str(page), str(shots / "chromium.png")], capture_output=True, text=True,
        timeout=200, env=environment,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    observed = json.loads(run.stdout.strip().splitlines()[-1])
    page_seen = observed["page"]
    assert not observed["said"], "the page's script complains"
    assert not page_seen["loaded"], "the page is one file"
    assert page_seen["images"] >= 1 and not page_seen["broken"], page_seen
    assert page_seen["svgs"] >= 3 and not page_seen["empty"] and page_seen["wide"] <= 0, page_seen
    assert sorted(page_seen["once"]) == sorted(page_seen["before"]) and page_seen["once"] != page_seen["twice"]
    assert page_seen["once"] == sorted(page_seen["once"], key=_in_order), "layer 9 comes before layer 10"
    assert page_seen["empty_headings"] == 0, "a column without a title is no button"
    assert page_seen["once"] == page_seen["twice"][::-1], "a click on a heading sorts, another one the other way round"


def test_the_pdf_is_read_page_by_page(qapp: QApplication, tmp_path: Path, shots: Path) -> None:
    pdf = pytest.importorskip("PySide6.QtPdf", reason="the reader is in the package PySide6_Addons")
    from PySide6.QtCore import QSize

    document = pdf.QPdfDocument()
    document.load(str(_written(tmp_path, "report.pdf")))
    assert document.pageCount() >= 2
    text = "".join(document.getAllText(page).text() for page in range(document.pageCount()))
    assert "tiny-llama" in text
    for page in range(document.pageCount()):
        picture = document.render(page, QSize(900, 1270))
        picture.save(str(shots / f"page-{page + 1}.png"))
        colours = {picture.pixel(x, y) for x in range(0, 900, 9) for y in range(0, 1270, 9)}
        assert len(colours) > 2, f"page {page + 1} is empty"
    document.close()

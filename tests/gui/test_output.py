"""Any plot as PNG and SVG, any table as CSV, the whole session as one page that needs nothing else."""

from __future__ import annotations

import base64
import csv
import itertools
import re
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PySide6.QtCore import QSizeF, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QImage, QPageSize, QPdfWriter, QTextDocument
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QAbstractItemView, QApplication, QComboBox, QLineEdit, QTableView, QTreeView

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.engine.jobs import JobStatus, JobView
from workbench.errors import ExportError
from workbench.gui.report import report
from workbench.gui.report.pictures import save_picture
from workbench.gui.report.report import page
from workbench.gui.report.sections import Section, Table
from workbench.gui.tables.files import raw_rows
from workbench.insight.dashboard import Dashboard
from workbench.progress import silent
from workbench.sensitivity.audit import Audit, PlanAudit
from workbench.session.workspace import Workspace

PAPER = 642, 971
"""Pixels of A4 between Qt's margins of 2 cm."""


def marks_in_their_clips(drawing: ElementTree.Element) -> list[tuple[float, float]]:
    """Return the centres of all marks (stroked paths of 5 to 30 pixels) that their clip does not hide."""
    svg, clips = "{http://www.w3.org/2000/svg}", {}
    for clip in drawing.iter(f"{svg}clipPath"):
        numbers = [float(item) for item in re.findall(r"-?[\d.]+", clip.find(f"{svg}path").get("d", ""))]
        across, down = numbers[::2], numbers[1::2]
        clips[f"url(#{clip.get('id')})"] = min(across), max(across), min(down), max(down)
    received = []
    for outer in drawing.iter(f"{svg}g"):
        for path in outer.iterfind(f"{svg}g[@stroke]/{svg}path[@d]"):
            if outer.get("clip-path") is None:
                continue
            points = np.array(re.findall(r"(-?[\d.e-]+),(-?[\d.e-]+)", path.get("d", "")), float)
            (x, y), size = (points.max(axis=0) + points.min(axis=0)) / 2, np.ptp(points, axis=0)
            left, right, top, bottom = clips[outer.get("clip-path", "")]
            if ((size > 5) & (size < 30)).all() and left <= x <= right and top <= y <= bottom:
                received.append((x, y))
    return received


async def _save_as(person: Person, path: Path, exists: bool = True) -> None:
    await person.until(lambda: person.dialog("path"), 10)
    name = person.dialog("path").findChild(QLineEdit, "fileNameEdit")
    await person.type(name, str(path))
    await person.press(Qt.Key.Key_Return, name)
    await person.until(lambda: not exists or path.exists())


def test_a_plot_is_saved_as_picture_and_drawing(live: Callable[..., None], tmp_path: Path) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        await person.act(lambda: person.window.reveal("pareto"))
        plot = person.window.panels["pareto"].plot
        for name in ("front.png", "front.svg"):
            await person.act(plot.setFocus)
            await person.act(lambda: person.window.trigger("save_picture"))
            await _save_as(person, tmp_path / name)
        image = QImage(str(tmp_path / "front.png"))
        assert image.width() == 2 * plot.width() and image.height() == 2 * plot.height()
        drawing = ElementTree.fromstring((tmp_path / "front.svg").read_text(encoding="utf-8"))
        text = "".join("".join(element.itertext()) for element in drawing.iter("{http://www.w3.org/2000/svg}text"))
        assert "MB" in text and "current plan" in text.replace("\n", " ")
        assert QSvgRenderer(str(tmp_path / "front.svg")).isValid()
        assert len(marks_in_their_clips(drawing)) == 4, "the legend's marks are seen"
        with pytest.raises(ExportError, match="ends in .png or .svg"):
            save_picture(plot, tmp_path / "front.gif")
        with pytest.raises(ExportError, match="there is no folder"):
            save_picture(plot, tmp_path / "nowhere" / "front.png")

    live(story)


def test_the_kind_of_picture_is_chosen_in_the_dialog(live: Callable[..., None], tmp_path: Path) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: person.window.reveal("accuracy"))
        await person.act(lambda: person.window.trigger("save_picture"))
        await person.until(lambda: person.dialog("path"), 10)
        dialog = person.dialog("path")
        name, kinds = dialog.findChild(QLineEdit, "fileNameEdit"), dialog.findChild(QComboBox, "fileTypeCombo")
        await person.type(name, str(tmp_path / "kl.png"))
        await person.press(Qt.Key.Key_Down, kinds)
        assert name.text().endswith("kl.svg")
        await person.press(Qt.Key.Key_Return, name)
        await person.until((tmp_path / "kl.svg").exists, 10)
        assert QSvgRenderer(str(tmp_path / "kl.svg")).isValid()

    live(story)


def test_no_picture_of_the_pdf_ends_a_page_without_its_caption(qapp: QApplication, tmp_path: Path) -> None:
    image, parted = QImage(400, 300, QImage.Format.Format_RGB32), 0
    for lines in range(20, 34):
        document = QTextDocument()
        document.addResource(QTextDocument.ResourceType.ImageResource.value, QUrl("figure:1"), image)
        head = f"{'<p>text</p>' * lines}<h2>Heading</h2><p>Sentence</p>"
        document.setHtml(f'{head}<p><img src="figure:1"></p><p>Caption</p>')
        writer = QPdfWriter(str(tmp_path / "report.pdf"))
        writer.setPageSize(QPageSize(QPageSize.PageSizeId.A4))
        parted += _pages(document, writer)["Caption"] != _pages(document, writer)[report.PICTURE]
        report.keep_headings(document, writer)
        pages = _pages(document, writer)
        assert pages["Heading"] == pages["Sentence"] == pages[report.PICTURE] == pages["Caption"], (lines, pages)
    assert parted, "Qt alone parts them"


def _pages(document: QTextDocument, writer: QPdfWriter) -> dict[str, int]:
    """Return the page of each text as it is printed."""
    printed = document.clone()
    printed.documentLayout().setPaintDevice(writer)
    frame = printed.rootFrame().frameFormat()
    frame.setMargin(int(2 / 2.54 * QApplication.primaryScreen().logicalDotsPerInch()))
    printed.rootFrame().setFrameFormat(frame)
    printed.setPageSize(QSizeF(writer.width(), writer.height()))
    printed.pageCount()
    pages, block = dict[str, int](), printed.begin()
    while block.isValid():
        top = printed.documentLayout().blockBoundingRect(block).top() + block.layout().lineAt(0).y()
        pages[block.text()] = int(top // writer.height())
        block = block.next()
    return pages


@pytest.mark.parametrize(
    ("action", "typed", "written"),
    [("save_as", "model-4.5", "model-4.5.qwb"), ("save_table", "rows.xlsx", "rows.xlsx.csv"),
     ("save_table", "rows.CSV", "rows.CSV"), ("save_picture", "plot.jpg", "plot.jpg.png")],
)  # fmt: skip
def test_a_name_without_an_offered_ending_gets_that_of_what_is_written(
    live: Callable[..., None], tmp_path: Path, action: str, typed: str, written: str
) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: person.window.reveal("accuracy"))
        await person.act(lambda: person.window.trigger(action))
        await person.until(lambda: person.dialog("path"), 10)
        name = person.dialog("path").findChild(QLineEdit, "fileNameEdit")
        await person.type(name, str(tmp_path / typed))
        await person.press(Qt.Key.Key_Return, name)
        await person.until((tmp_path / written).exists, 10)
        assert person.dialog("path") is None and not (tmp_path / typed).exists() or typed == written

    live(story)


def test_a_table_is_saved_with_exact_numbers(live: Callable[..., None], tmp_path: Path) -> None:
    session = sessions.full(1)
    run = session.evaluations[-1]
    kl = replace(run.metrics["kl"], value=-1.0 / 3e5, baseline=12345.678901234567)
    session = replace(session, evaluations=(replace(run, metrics={**run.metrics, "kl": kl}),))

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.window.reveal("accuracy"))
        table = person.window.panels["accuracy"].table
        await person.act(lambda: person.window.trigger("save_table"))
        await _save_as(person, tmp_path / "accuracy.csv")
        with open(tmp_path / "accuracy.csv", encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == table.records.rowCount()
        (row,) = [row for row in rows if row["Metric"] == "KL to floating point"]
        assert float(row["Quantized"]) == -1.0 / 3e5 and float(row["FP"]) == 12345.678901234567
        assert row["Size (bytes)"] == str(run.nbytes) and float(row["Bits/weight"]) == run.bits_per_weight
        await person.act(lambda: person.window.reveal("layers"))
        await person.act(lambda: person.window.trigger("save_table"))
        await _save_as(person, tmp_path / "layers.csv")
        text = (tmp_path / "layers.csv").read_text(encoding="utf-8-sig")
        assert all(name in text for name in ("self_attn.q_proj", "int3-g32-asym", "model.layers.0"))
        assert not any(mark in text.partition("\n")[2] for mark in "−×–µ")
        layers = {row["Layer"]: row for row in csv.DictReader(text.splitlines())}
        layer = layers["model.layers.0.self_attn.q_proj"]
        scheme, table = person.state.assignments[layer["Layer"]].weights, session.table("predicted_kl")
        assert layer["Scheme"] == scheme and float(layer["Loss (nats)"]) == table.of(layer["Layer"], scheme)
        assert layer["Shape"] == "256x256" and layer["Count"] == str(256 * 256)

    live(story)


def test_every_table_exports_plain_numbers(live: Callable[..., None]) -> None:
    """No typographic minus, no separators of thousands, no unit beside a number, in any table of the window."""
    grouped = re.compile(r"\d,\d{3}\b")
    united = re.compile(r"-?\d[\d.]*(e[-+]?\d+)? ?(B|kB|MB|GB|%|µs|ms|s|×|dB|nats)")

    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        names = list(person.window.docks)
        for name in names:
            await person.act(lambda name=name: person.window.reveal(name))
        views = [view for name in names for view in person.window.panels[name].findChildren(QAbstractItemView)
                 if isinstance(view, QTableView | QTreeView)]  # fmt: skip
        assert len(views) > 10
        filled = 0
        for view in views:
            rows = [*raw_rows(view.model())][1:]
            filled += bool(rows)
            cells = [cell for row in rows for cell in row]
            assert all(isinstance(cell, str) for cell in cells)
            wrong = [cell for cell in cells if "−" in cell or grouped.search(cell) or united.fullmatch(cell)]
            assert not wrong, (view.accessibleName(), wrong[:5])
        assert filled > 6

    live(story)


class _Page(HTMLParser):
    """Checks that tags match, and collects what would be fetched from elsewhere."""

    VOID = ("meta", "img", "br", "link", "hr")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href") and value and not value.startswith(("data:", "#")):
                self.fetched.append(value)
            if name == "id" and value:
                self.ids.append(value)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_report_is_one_page_with_everything(
    live: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    result = Audit(
        layers=("model.layers.0.mlp.up_proj",), predicted=np.array([0.2]), alone=np.array([0.25]),
        joined=np.array([0.25]), whole=0.25, samples=16,
    )  # fmt: skip
    audited = PlanAudit(plan_name="everything", plan_hash="", rounded_inputs=0, cached=0, audit=result)
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))

    async def story(person: Person) -> None:
        await person.open(replace(sessions.full(2), audit=audited))
        await person.act(lambda: person.context.workspace.select(["model.layers.0.mlp.up_proj"]))
        await person.press(Qt.Key.Key_P, person.window, control=True)
        await _save_as(person, tmp_path / "report.html")
        await person.until(lambda: opened)
        assert opened == [str(tmp_path / "report.html")]

    live(story, dark=True)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    checked = _Page()
    checked.feed(text)
    assert not checked.open and not checked.fetched and len(set(checked.ids)) == len(checked.ids)
    headings = re.findall(r"<h2>(.*?)</h2>", text)
    expected = {"Summary", "Plan", "Sensitivity", "Pareto front", "Accuracy", "Distributions", "Channels", "Timing"}
    assert expected <= set(headings)
    assert result.sentence("nats") in unescape(text) and "Not checked yet" not in text
    assert text.count("<figure><svg") >= 9 and 'src="data:image/png;base64,' in text
    assert "model.layers.1.mlp.down_proj" in text and "#171a1f" not in text, "light whatever the window's colours"


def test_a_report_is_a_job_of_its_own_process_that_can_be_cancelled_and_tried_again(
    live: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: True)
    monkeypatch.setattr(report, "page", None)  # this process cannot write one
    out = tmp_path / "here" / "report.html"
    out.parent.mkdir()

    async def story(person: Person) -> None:
        def newest() -> JobView:
            return next(iter(person.context.jobs.views[::-1]), JobView(id=0, title=""))

        await person.open(sessions.full(2))
        edited = person.state.session.plan
        await person.press(Qt.Key.Key_P, person.window, control=True)
        await _save_as(person, out, exists=False)
        await person.until(lambda: newest().fraction > 0)
        await person.click(person.window.status.cancel_button)
        assert newest().status is JobStatus.CANCELLED and newest().title == "Save the report"
        lane = person.context.jobs._aside["drawing"]
        await person.until(lambda: lane.running is None)
        assert not list(out.parent.iterdir()), "nothing is left of a cancelled report"
        await person.act(lambda: person.context.jobs.retry(newest().id))
        await person.until(lambda: newest().status is JobStatus.DONE)
        assert person.state.session.plan == edited and not person.state.dirty
        assert out.read_text(encoding="utf-8").rstrip().endswith("</html>")

    live(story)


def test_the_page_says_what_was_cut_and_escapes() -> None:
    table = Table(caption="<Layers>", rows=[["a<b"], ["1 & 2"]], cut=1234)
    text = page("x < y", "", [Section(title="Täst & more", words=["<script>"], tables=[table])])
    assert "1,234 more rows are left out" in text and "1 &amp; 2" in text and "a&lt;b" in text
    assert "<script>" not in text and 'id="täst-more"' in text


def test_the_report_is_a_pdf_as_well(qapp: QApplication, tmp_path: Path) -> None:
    workspace = Workspace()
    workspace.open(sessions.full(1), None)
    report.write(workspace.state, tmp_path / "report.pdf")
    content = (tmp_path / "report.pdf").read_bytes()
    assert content.startswith(b"%PDF-") and content.rstrip().endswith(b"%%EOF")
    pages = re.search(rb"/Count (\d+)", content)
    assert pages and int(pages[1]) >= 3 and content.count(b"/Subtype /Image") >= 3


def test_tables_of_the_report_fit_the_paper_align_numbers_and_have_no_empty_columns(qapp: QApplication) -> None:
    workspace = Workspace()
    workspace.open(sessions.full(3), None)
    document, _pictures = report.laid_out(workspace.state)
    document.setTextWidth(PAPER[0])
    assert document.size().width() <= PAPER[0], "the last columns of a table are cut"
    tables = [each for section in report._content(workspace.state, silent)[2] for each in section.tables]
    kernels = next(each for each in tables if each.caption == "Kernel times")
    assert "Batch: 1" in kernels.alike and "Batch" not in kernels.rows[0], "what is alike in all rows is said once"
    for each in tables:
        columns = list(zip(*each.rows[1:], strict=True))
        assert not any({"", "–"}.issuperset(texts) for texts in columns), each.caption
    layers = next(each for each in tables if each.caption == "Layers")
    assert {layers.rows[0][place] for place in layers.numeric} == {"Bits", "Size", "Loss (nats)"}
    assert '<th class="num">Bits</th>' in report.html(workspace.state)


def test_figures_of_the_pdf_stand_alone_and_their_captions_below_them(qapp: QApplication) -> None:
    workspace = Workspace()
    workspace.open(sessions.full(3), None)
    document, pictures = report.laid_out(workspace.state)
    captions = [each.caption for section in report._content(workspace.state, silent)[2] for each in section.figures]
    texts, block = list[str](), document.begin()
    while block.isValid():
        texts.append(block.text())
        block = block.next()
    places = [place for place, text in enumerate(texts) if "\ufffc" in text]
    assert len(places) == len(pictures) == len(captions) >= 5
    assert [texts[place] for place in places] == ["\ufffc"] * len(places)
    assert [texts[place + 1] for place in places] == captions


def test_pictures_in_the_page_are_whole(qapp: QApplication) -> None:
    workspace = Workspace()
    workspace.open(sessions.full(3), None)
    pictures = re.findall(r'src="data:image/png;base64,([^"]*)"', report.html(workspace.state))
    assert pictures, "the heatmap is one"
    for each in pictures:
        assert QImage.fromData(base64.b64decode(each, validate=True)).width() > 300


def test_the_heatmap_of_a_report_has_a_row_for_every_layer_or_block(qapp: QApplication) -> None:
    """Of 211 layers there were 130, with a scroll bar, below "every layer"."""
    for blocks, rows, of in ((28, 197, "layer"), (60, 61, "block, the sum of its layers,")):
        workspace = Workspace()
        workspace.open(sessions.full(blocks), None)
        page = report.html(workspace.state)
        pictures = [
            QImage.fromData(base64.b64decode(each)) for each in re.findall(r'src="data:image/png;base64,([^"]*)"', page)
        ]
        captions = re.findall(r"<figcaption>([^<]*every scheme[^<]*)</figcaption>", page)
        assert len(pictures) == len(captions)
        assert all(f"of every {of} under" in each for each in captions)
        parts = [tuple(map(int, ends)) for each in captions for ends in re.findall(r"rows (\d+) to (\d+)$", each)]
        parts = parts or [(1, rows)]
        assert parts[0][0] == 1 and parts[-1][1] == rows
        assert all(before[1] + 1 == after[0] for before, after in itertools.pairwise(parts)), parts
        counts = [last - first + 1 for first, last in parts]
        assert max(counts) - min(counts) < len(counts), "no sheet for the last two rows"
        heads = [picture.height() / 2 - 20 * count for picture, count in zip(pictures, counts, strict=True)]
        assert len(set(heads)) == 1 and 40 < heads[0] < 200, heads
        high = [picture.height() * PAPER[0] / picture.width() for picture in pictures]
        assert max(high) <= PAPER[1] - 80, "with heading, lead and caption, they fit a page between its margins"


def test_tables_of_the_report_sort_and_the_page_loads_nothing(qapp: QApplication) -> None:
    workspace = Workspace()
    workspace.open(sessions.full(1), None)
    text = report.html(workspace.state)
    assert "aria-sort" in text and not re.search(r'(src|href)="(?!data:|#)', text)
    for figure in Dashboard().figures(workspace.state)[:4]:
        assert figure.title in text and figure.value in text, "the summary has the key figures"


def test_a_long_name_breaks_its_own_cell_only() -> None:
    table = Table(caption="Layers", rows=[["Layer", "Size"], ["x" * 200, "16.6 kB"]])
    text = page("x", "", [Section(title="Plan", tables=[table])])
    assert f'<td class="long">{"x" * 200}</td><td>16.6 kB</td>' in text


def test_the_text_of_the_pdf_is_as_large_as_that_of_the_page(qapp: QApplication) -> None:
    workspace = Workspace()
    workspace.open(sessions.full(2), None)
    document, _pictures = report.laid_out(workspace.state)
    sizes = Counter[float]()
    block = document.begin()
    while block.isValid():
        for span in block.begin():
            font = span.fragment().charFormat().font()
            assert font.pixelSize() <= 0, f"{span.fragment().text()!r} would be printed in {font.pixelSize()} dots"
            sizes[font.pointSizeF()] += len(span.fragment().text())
        block = block.next()
    assert min(sizes) >= 7 and max(sizes) <= 20, sizes
    assert sizes[7.2] > sizes.total() / 2, "most of it are tables"


def letters_from_headings(pdf: Path) -> list[int]:
    """Return how many letters each page with a heading has from its last heading on, the page's number included."""
    streams = re.findall(rb"stream\r?\n(.*?)endstream", pdf.read_bytes(), re.DOTALL)
    pages = [zlib.decompress(each) for each in streams if each.startswith(b"x")]
    after = [re.split(rb"/F\d+ 225 Tf", each)[1:] for each in pages if b" Tf" in each]
    return [len(re.findall(rb"T[jJ]", each[-1])) for each in after if each]


def test_no_heading_of_the_pdf_stands_alone_at_the_foot_of_a_page(
    qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.pdf"
    table = "<table>" + "<tr><td>one</td><td>two</td><td>three</td></tr>" * 8 + "</table>"

    def fewest(lines: int, lead: str = "") -> int:
        document = QTextDocument()
        document.setHtml(f"{'<p>text</p>' * lines}<h2>Heading</h2>{lead}{table}")
        monkeypatch.setattr(report, "laid_out", lambda state, progress: (document, []))
        report.write(Workspace().state, path)
        return min(letters_from_headings(path))

    lengths, alone = range(32, 38), len("Heading1")
    lead = "<p>Sentence</p>"
    assert min(map(fewest, lengths)) > alone
    assert min(fewest(lines, lead) for lines in lengths) > alone + len("Sentence")
    monkeypatch.setattr(report, "keep_headings", lambda document, paper: None)
    assert min(map(fewest, lengths)) == alone, "Qt alone leaves it there"
    assert min(fewest(lines, lead) for lines in lengths) <= alone + len("Sentence")

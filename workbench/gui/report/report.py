"""The printable report of a session: drawn in the light palette from the state alone, as one HTML file or PDF.

The page needs nothing else, reads well in a browser, prints well, and its tables sort.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from jinja2 import Environment
from markupsafe import Markup
from PySide6.QtCore import QSizeF, QUrl

from workbench.atomic import replacing
from workbench.errors import ExportError
from workbench.progress import Progress, silent
from workbench.readable import LONGEST, readable
from workbench.session.workspace import State

LONGEST_NAME = 56
"""Letters of layers' names up to which a line of their table fits the width of A4 without breaking words."""

LONGEST_TITLE = 120
"""Letters of a model's name in the title; the summary has all of it."""

PICTURE = "\ufffc"
"""What Qt has for the text of a block that is a picture."""

LEAD_LINES = 6
"""Fewer lines below a heading are a sentence or two that lead to what follows, and stay with it."""

POINTS = 0.6
"""Points on paper for each pixel on the screen: a table of ten columns fits the width of A4."""

if TYPE_CHECKING:
    from PySide6.QtGui import QImage, QPagedPaintDevice, QTextBlock, QTextDocument

    from workbench.gui.report.sections import Figure, Section


@contextmanager
def _for_others() -> Iterator[None]:
    """Write in English and with decimal points, whatever the window speaks: the report is sent to others."""
    from workbench.gui.shell.words import in_english
    from workbench.insight.quantities import with_points

    with in_english(), with_points():
        yield


def html(state: State, progress: Progress = silent) -> str:
    """Return the report of the open session as a page; raises ExportError without one, CancelledError."""
    with _for_others():
        return page(*_content(state, progress))


def _content(state: State, progress: Progress) -> tuple[str, str, Sequence[Section]]:
    """Return title, subtitle and sections."""
    from workbench.gui.report.sections import SECTIONS  # pyqtgraph is loaded when there is something to draw

    session = state.session
    if session is None:
        raise ExportError("there is nothing to report; open a model or a session first")
    sections = []
    for done, make in enumerate(SECTIONS):
        progress(done / (len(SECTIONS) + 1), "Drawing the report")
        if (section := make(session, state)) is not None:
            sections.append(section)
    progress(len(SECTIONS) / (len(SECTIONS) + 1), "Writing the report")
    subtitle = f"{session.plan.name}, {time.strftime('%Y-%m-%d %H:%M')}"
    return f"Quantization of {readable(session.model.name, LONGEST_TITLE)}", subtitle, sections


def write(state: State, path: Path, progress: Progress = silent) -> None:
    """Write the report, as a page or, by the suffix, as a PDF; raises ExportError, CancelledError."""
    if path.suffix.lower() == ".pdf":
        _write_pdf(state, path, progress)
        return
    text = html(state, progress)
    with replacing(path, ExportError, "the report") as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def _write_pdf(state: State, path: Path, progress: Progress) -> None:
    from PySide6.QtGui import QPageSize, QPdfWriter

    document, pictures = laid_out(state, progress)
    with replacing(path, ExportError, "the report") as temporary:
        writer = QPdfWriter(str(temporary))
        writer.setPageSize(QPageSize(QPageSize.PageSizeId.A4))
        name = readable(state.session.model.name, LONGEST_TITLE) if state.session else ""
        writer.setTitle(f"Quantization of {name}")
        keep_headings(document, writer)
        document.print_(writer)
        del writer, pictures  # it writes the end of the file


def keep_headings(document: QTextDocument, paper: QPagedPaintDevice) -> None:
    """Have headings begin a page that would end one, or end it with the sentence that leads to what follows, and
    pictures one that would end without their captions.

    Laid out as Qt prints: margins of 2 cm.
    """
    from PySide6.QtGui import QGuiApplication, QTextCursor, QTextFormat

    before = QTextFormat.PageBreakFlag.PageBreak_AlwaysBefore

    def page_of(block: QTextBlock) -> int:
        top, text = printed.documentLayout().blockBoundingRect(block).top(), block.layout()
        return int((top + (text.lineAt(0).y() if text.lineCount() else 0)) // paper.height())

    def following(block: QTextBlock) -> QTextBlock:
        after = block.next()
        while after.isValid() and not after.text():
            after = after.next()
        return after

    def headed(block: QTextBlock) -> QTextBlock:
        """Return the heading of a picture, with a sentence between them at most, else the block itself."""
        before, texts = block.previous(), 0
        while before.isValid() and texts < 2 and not before.blockFormat().headingLevel():
            before, texts = before.previous(), texts + bool(before.text())
        return before if before.blockFormat().headingLevel() else block

    def alone(block: QTextBlock) -> bool:
        layout, after = block.blockFormat(), following(block)
        if block.text() == PICTURE and after.isValid():
            return page_of(after) > page_of(block)  # its caption
        if not layout.headingLevel() or layout.pageBreakPolicy() == before or not after.isValid():
            return False
        then = following(after)
        leads = after.layout().lineCount() < LEAD_LINES and QTextCursor(after).currentTable() is None
        leads = leads and then.isValid() and not then.blockFormat().headingLevel()
        return page_of(then if leads else after) > page_of(block)

    printed = document.clone()
    printed.documentLayout().setPaintDevice(paper)
    frame = printed.rootFrame().frameFormat()
    frame.setMargin(int(2 / 2.54 * QGuiApplication.primaryScreen().logicalDotsPerInch()))
    printed.rootFrame().setFrameFormat(frame)
    printed.setPageSize(QSizeF(paper.width(), paper.height()))
    for number in range(document.blockCount()):
        printed.pageCount()  # lays out all of it: what is not laid out yet stands nowhere
        block = printed.findBlockByNumber(number)
        if alone(block):
            first = headed(block).blockNumber() if block.text() == PICTURE else number
            for each in (document, printed):
                cursor = QTextCursor(each.findBlockByNumber(first))
                moved = cursor.blockFormat()
                moved.setPageBreakPolicy(before)
                cursor.setBlockFormat(moved)


def laid_out(state: State, progress: Progress = silent) -> tuple[QTextDocument, list[QImage]]:
    """Return the same page as a document of Qt, and its pictures as pixels, which must live as long.

    A pixel of a style sheet is one of the printer's for Qt, a tenth of the screen's: sizes of text become points.
    """
    from PySide6.QtGui import QImage, QTextDocument, QTextOption

    from workbench.gui.report.pictures import as_pixels

    document, shown = QTextDocument(), list[QImage]()

    def picture(figure: Figure) -> str:
        shown.append(as_pixels(figure.svg) if figure.svg else QImage.fromData(figure.png))
        name = f"figure:{len(shown)}"
        document.addResource(QTextDocument.ResourceType.ImageResource.value, QUrl(name), shown[-1])
        return name

    with _for_others():
        text = page(*_content(state, progress), pictures=picture)
    head, style, body = text.partition("</style>")
    body = body.replace("<figcaption>", '<p class="muted">').replace("</figcaption>", "</p>")  # Qt knows no captions
    in_points = re.sub(r"(font(?:-size)?: *)([0-9.]+)px", lambda size: f"{size[1]}{float(size[2]) * POINTS:g}pt", head)
    document.setHtml(in_points + style + body)
    names = [layer.name for layer in state.session.model.layers] if state.session else []
    if max(map(len, names), default=0) <= LONGEST_NAME:
        wrapping = document.defaultTextOption()
        wrapping.setWrapMode(QTextOption.WrapMode.WordWrap)  # else columns of tables are narrower than their words
        document.setDefaultTextOption(wrapping)
    return document, shown


def page(
    title: str, subtitle: str, sections: Sequence[Section], *, pictures: Callable[[Figure], str] | None = None
) -> str:
    """Return the whole page; every text is escaped.  ``pictures`` names those of a page for Qt, which runs nothing."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_shown)
    environment.filters["base64"] = lambda data: Markup(base64.b64encode(data).decode())
    environment.filters["inlined"] = _inlined
    template = (files("workbench_resources") / "report" / "page.html.jinja").read_text(encoding="utf-8")
    return environment.from_string(template).render(
        title=title, subtitle=subtitle, sections=sections, **({} if pictures is None else {"pictures": pictures})
    )


def _shown(value: object) -> object:
    """Return a text without control characters; what is markup already was made here."""
    return readable(value, LONGEST, lines=True) if type(value) is str else value


def _inlined(svg: bytes, prefix: str) -> Markup:
    """Return an SVG file as an element of a page: with ids of its own, as wide as the page lets it."""
    root = ElementTree.fromstring(svg)
    for name in ("width", "height"):
        root.attrib.pop(name, None)
    for element in root.iter():
        for name, value in element.items():
            if name == "id":
                element.set(name, f"{prefix}-{value}")
            elif name.rpartition("}")[2] == "href" and value.startswith("#"):
                element.set(name, f"#{prefix}-{value[1:]}")
            elif value.startswith("url(#"):
                element.set(name, value.replace("url(#", f"url(#{prefix}-"))
    return Markup(ElementTree.tostring(root, encoding="unicode"))

"""The report's page: one HTML file that needs nothing else, reads well in a browser and prints well."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

STYLE = """
body { font: 14px/1.45 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; color: #1b2027; background: #fff;
       max-width: 1000px; margin: 24px auto; padding: 0 20px; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 28px 0 6px; border-bottom: 1px solid #c9ced6; }
h3 { font-size: 14px; margin: 16px 0 4px; } p { margin: 4px 0 8px; } .muted { color: #565f6b; }
figure { margin: 10px 0; break-inside: avoid; } figcaption { color: #565f6b; font-size: 12px; }
figure svg, figure img { max-width: 100%; height: auto; border: 1px solid #c9ced6; display: block; }
figure svg text { font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
section > figure svg { max-width: 680px; }
.row { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 0 14px; }
table { border-collapse: collapse; font-size: 12px; margin: 6px 0 12px; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #e4e7ec; padding: 2px 10px 2px 0; text-align: left; vertical-align: top;
         overflow-wrap: anywhere; }
th { color: #565f6b; font-weight: 600; } tr { break-inside: avoid; } thead { display: table-header-group; }
nav a { margin-right: 12px; } a { color: #1f5fbf; }
@media print { body { margin: 0; max-width: none; font-size: 11px; } nav { display: none; }
               h2 { break-after: avoid; } @page { margin: 14mm; } }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A picture: SVG text, or a PNG's bytes; ``caption`` says what it shows."""

    caption: str
    svg: str = ""
    png: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """``rows`` of text, the headings first; ``cut`` rows more were left out."""

    caption: str
    rows: Sequence[Sequence[str]]
    cut: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading, sentences, pictures and tables."""

    title: str
    words: Sequence[str] = ()
    figures: Sequence[Figure] = field(default=())
    tables: Sequence[Table] = field(default=())


def page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """Return the whole page."""
    links = " ".join(f'<a href="#{_anchor(one.title)}">{escape(one.title)}</a>' for one in sections)
    body = "\n".join(_section(one, number) for number, one in enumerate(sections))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style></head>\n<body>\n<h1>{escape(title)}</h1>\n"
        f'<p class="muted">{escape(subtitle)}</p>\n<nav>{links}</nav>\n{body}\n</body></html>\n'
    )


def _section(one: Section, number: int) -> str:
    words = "".join(f"<p>{escape(text)}</p>\n" for text in one.words)
    figures = "".join(_figure(each, f"s{number}f{place}") for place, each in enumerate(one.figures))
    tables = "".join(_table(each) for each in one.tables)
    grid = f'<div class="row">{figures}</div>\n' if len(one.figures) > 1 else figures
    return f'<section id="{_anchor(one.title)}"><h2>{escape(one.title)}</h2>\n{words}{grid}{tables}</section>'


def _figure(one: Figure, prefix: str) -> str:
    if one.svg:
        drawn = _inline(one.svg, prefix)
    else:
        data = base64.b64encode(one.png).decode()
        drawn = f'<img alt="{escape(one.caption, quote=True)}" src="data:image/png;base64,{data}">'
    return f"<figure>{drawn}<figcaption>{escape(one.caption)}</figcaption></figure>\n"


def _inline(text: str, prefix: str) -> str:
    """Return an SVG file as an element: without its XML heading, with names of its own, as wide as the page lets it."""
    start = text.index("<svg")
    drawn = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text[start:])
    drawn = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", drawn)
    drawn = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', drawn)
    return re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"', r"\1", drawn, count=1)


def _table(one: Table) -> str:
    if len(one.rows) < 2:
        return ""
    head = "".join(f"<th>{escape(text)}</th>" for text in one.rows[0])
    body = "\n".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in one.rows[1:])
    more = f'<p class="muted">{one.cut:,} more rows are left out here.</p>\n' if one.cut else ""
    return (
        f"<h3>{escape(one.caption)}</h3>\n<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>\n{more}"
    )


def _anchor(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower()).strip("-")

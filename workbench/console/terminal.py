"""Prints reports and progress, on a terminal or into a file; names of layers and files are never taken for markup."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from workbench.console.report import Report, Table, shown
from workbench.preflight import Estimate
from workbench.readable import LONGEST, readable

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

LONGEST_LINE = 20 * LONGEST


def print_report(report: Report, *, as_json: bool, stream: TextIO | None = None) -> None:
    """Print the report's text, or its JSON object in one line, on ``stream`` (default: standard output).

    Headings are bold on a terminal unless the environment variable NO_COLOR is set; elsewhere the text is plain.
    """
    stream = stream or sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    if as_json:
        print(json.dumps(report.as_json(), allow_nan=False), file=stream, flush=True)
    elif stream.isatty() and not os.environ.get("NO_COLOR"):
        _print_styled(report, stream)
    else:
        print(text_of(report), file=stream, flush=True)


def text_of(report: Report) -> str:
    """Return the report's text without styles."""
    return "\n".join(line for line, _ in _lines(report))


def _print_styled(report: Report, stream: TextIO) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    styled = (Text(line, style="bold" if heading else "") for line, heading in _lines(report))
    console.print(Text("\n").join(styled), soft_wrap=True)


def _lines(report: Report) -> list[tuple[str, bool]]:
    """Return the report's lines and whether each is the heading of a table; tables stand between empty lines.

    Lines are never wrapped, and cut only where a name is absurd.  The columns are aligned here because rich's table
    takes 0.7 ms a cell: seconds for a table of 500 layers.
    """
    parts = [*_filled(report.parts), *(f"note: {note}" for note in report.notes or ())]
    lines: list[tuple[str, bool]] = []
    for before, part in zip([None, *parts], parts, strict=False):
        tables = isinstance(part, Table) or isinstance(before, Table)
        if tables and part != "" and before not in (None, ""):
            lines.append(("", False))
        lines += _aligned(part) if isinstance(part, Table) else [(readable(part, LONGEST_LINE), False)]
    return lines


def _filled(parts: Iterable[str | Table]) -> Iterator[str | Table]:
    """Yield the parts, a table that has a line above it after that line, and only where it has rows."""
    for part in parts:
        if isinstance(part, str) or not part.above:
            yield part
        elif part.rows:
            yield from ("", part.above)
            yield part


def _aligned(table: Table) -> list[tuple[str, bool]]:
    """Return the lines of a table: numbers to the right, words to the left."""
    columns = []
    for key, title in table.headings.items():
        values = [row[key] for row in table.rows]
        cells = [*([title] if table.titles else []), *(shown(key, value) for value in values)]
        columns.append(_padded([readable(cell, LONGEST) for cell in cells], to_the_right=_are_numbers(values)))
    lines = ["  ".join(cells) for cells in zip(*columns, strict=True)]
    if not table.titles:
        return [(line.rstrip(), False) for line in lines]
    rule = "-" * len(lines[0])
    return [(lines[0].rstrip(), True), (rule, False), *((line.rstrip(), False) for line in lines[1:])]


def _padded(cells: Sequence[str], *, to_the_right: bool) -> list[str]:
    """Return the cells with spaces to one width on a terminal, where a character may be two columns wide."""
    from rich.cells import cell_len

    lengths = [len(cell) if cell.isascii() else cell_len(cell) for cell in cells]
    width = max(lengths)
    spaces = [" " * (width - length) for length in lengths]
    return [space + cell if to_the_right else cell + space for cell, space in zip(cells, spaces, strict=True)]


def _are_numbers(values: Sequence[object]) -> bool:
    known = [value for value in values if value not in (None, "")]
    return bool(known) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)


class Bar:
    """A Progress that draws one line on standard error, if it is ``enabled``.

    What a step of some seconds is estimated to take, and what it took, is a line of its own if it ``says`` so.
    """

    def __init__(self, enabled: bool, says: bool = False) -> None:
        self._bar = _progress_bar() if enabled else None
        self._says = says

    def __enter__(self) -> Bar:
        if self._bar is not None:
            self._bar.start()
            self._bar.add_task("", total=1.0)
        return self

    def __call__(self, fraction: float, text: str, partial: Any = None) -> None:
        """Show how far the work is; drawn at most ten times a second."""
        if self._says and isinstance(partial, Estimate) and not partial.is_short:
            print(readable(text), file=sys.stderr, flush=True)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=min(fraction, 1.0), description=readable(text))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def _progress_bar() -> RichProgress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    plain = bool(os.environ.get("NO_COLOR"))
    console: Console = Console(stderr=True, color_system=None if plain else "auto", markup=False, emoji=False)
    return Progress(
        BarColumn(28), TaskProgressColumn(), TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
        console=console, transient=True, redirect_stdout=False, redirect_stderr=False,
    )  # fmt: skip

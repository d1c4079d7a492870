"""Sizes as people type and read them, tables, and the progress bar."""

from __future__ import annotations

import io
import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from workbench.console.report import Report, Table
from workbench.console.terminal import Bar, print_report, text_of
from workbench.memory import parse_size, size_text
from workbench.preflight import Estimate


@pytest.mark.parametrize(
    ("text", "size"),
    [("120MB", 120_000_000), ("1.5GiB", 3 << 29), ("4096", 4096), ("2 kB", 2000), ("1KiB", 1024), (" 7 b ", 7)],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "12 parsecs", "-3MB", "0", "nan", "1e400", "1.2.3GB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (5_250_000, "5.25 MB"), (123_400_000, "123 MB")]
)
def test_bytes_are_readable(count: int, text: str) -> None:
    assert size_text(count) == text


def drawn(*rows: dict[str, object], **titles: str) -> str:
    columns = [f"{key}={title}" for key, title in titles.items()]
    return text_of(Report(facts={}, parts=[Table(rows=rows, columns=" | ".join(columns))]))


def test_a_table_puts_figures_right_and_words_left() -> None:
    rows = ({"layer": "a", "us": 1.5, "note": "what ran"}, {"layer": "long", "us": 12, "note": "x"})
    lines = drawn(*rows, layer="layer", us="us", note="note").splitlines()
    assert lines[0] == "layer   us  note"
    assert lines[2] == "a      1.5  what ran"
    assert lines[3] == "long    12  x"


def test_a_table_of_many_rows_takes_time_in_proportion() -> None:
    start = time.process_time()
    assert len(drawn(*({"layer": f"l{row}"} for row in range(30_000)), layer="layer").splitlines()) == 30_002
    assert time.process_time() - start < 5


def test_a_table_without_rows_is_its_header() -> None:
    assert drawn(layer="layer", us="us").splitlines()[0] == "layer  us"


def test_a_line_above_a_table_stands_only_where_there_are_rows() -> None:
    def text(*rows: dict[str, object]) -> str:
        table = Table(rows=rows, columns="layer", key="layers", above="the worst")
        report = Report(facts={}, parts=["first", table, "last"])
        assert report.as_json() == {"layers": list(rows)}
        return text_of(report)

    assert text() == "first\nlast"
    assert text({"layer": "a"}) == "first\n\nthe worst\n\nlayer\n-----\na\n\nlast"


def test_names_are_no_markup_and_their_control_characters_are_escaped() -> None:
    rows = ({"layer": "[red]a[/red] :smile:", "n": 1}, {"layer": "b\x1b[31m\n\u202e\udcff", "n": 2})
    text = drawn(*rows, layer="layer", n="n")
    assert "[red]a[/red] :smile:" in text and "b\\x1b[31m\\n\\u202e\\udcff  2" in text


def test_wide_characters_keep_the_columns_straight() -> None:
    lines = drawn({"layer": "模型", "n": 1}, {"layer": "abcd", "n": 2}, layer="layer", n="n").splitlines()
    assert lines[2:] == ["模型   1", "abcd   2"]


def report(name: str) -> Report:
    table = Table(key="layers", rows=[{"layer": name, "loss": float("nan")}], columns="layer | loss")
    return Report(facts={"sum": float("inf"), "path": Path("a")}, parts=["head", table], notes=("one",))


def test_a_report_is_one_json_object_without_what_json_cannot_say() -> None:
    stream = io.StringIO()
    print_report(report("x"), as_json=True, stream=stream)
    assert json.loads(stream.getvalue()) == {
        "sum": None, "path": "a", "layers": [{"layer": "x", "loss": None}], "notes": ["one"],
    }  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("terminal", [False, True])
def test_a_file_and_no_color_get_plain_lines_that_are_not_cut(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    stream, name = Terminal() if terminal else io.StringIO(), "model.layers." + "x" * 200
    print_report(report(name), as_json=False, stream=stream)
    lines = stream.getvalue().splitlines()
    assert "\x1b" not in stream.getvalue() and f"{name}     -" in lines and lines[-1] == "note: one"


def test_headings_are_bold_on_a_terminal_and_names_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    stream, name = Terminal(), "[bold]" + "x" * 200
    print_report(report(name), as_json=False, stream=stream)
    assert "\x1b[1mlayer" in stream.getvalue() and f"{name}     -" in stream.getvalue().splitlines()


def test_the_bar_draws_on_a_terminal_only(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with Bar(enabled=False) as quiet:
        quiet(0.5, "half")
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with Bar(enabled=True) as bar:
        bar(1.0, "[red]done[/red]")
    err = capsys.readouterr().err
    assert "100%" in err and "[red]done[/red]" in err and err.endswith("\x1b[2K"), "the line is erased at the end"


def test_estimates_of_short_steps_are_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    short, long = (Estimate(seconds=seconds, memory=10**9) for seconds in (0.1, 20.0))
    with Bar(False, says=True) as bar:
        for estimate in (short, long, replace(short, took=0.2, peak=1), replace(short, took=4.0, peak=1)):
            bar(0.0, estimate.outcome or estimate.text, estimate)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and lines[0].startswith("about 20 s") and lines[1].startswith("took 4 s")

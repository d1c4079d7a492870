"""Sizes as people type and read them, tables, and the progress bar."""

from __future__ import annotations

import pytest

from workbench.console.terminal import Bar, parse_size, readable_bytes, table


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
    assert readable_bytes(count) == text


def test_a_table_puts_figures_right_and_words_left() -> None:
    lines = table([("a", "1.5", "what ran"), ("long", "12", "x")], ("layer", "us", "note")).splitlines()
    assert lines[0] == "layer   us  note"
    assert lines[2] == "a      1.5  what ran"
    assert lines[3] == "long    12  x"


def test_a_table_without_rows_is_its_header() -> None:
    assert table([], ("layer", "us")).splitlines()[0] == "layer  us"


def test_the_bar_draws_on_a_terminal_only(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar(enabled=False) as quiet:
        quiet(0.5, "half")
    assert capsys.readouterr().err == ""
    with Bar(enabled=True) as bar:
        bar(1.0, "done")
    drawn = capsys.readouterr().err
    assert "100%" in drawn and "done" in drawn and drawn.endswith("\r")

"""A German window says every error in German, whatever names are in it, and is not held up by any text."""

from __future__ import annotations

import pytest

from tests.gui.said_errors import of_errors, unspoken
from tests.gui.test_words import german
from workbench.gui.shell import words

__all__ = ["german"]

NAMES = (
    "{w} {n} {}.csv", "100% sure %s.csv", r"C:\Neu\d+(x).csv", "[a-z]+$ ^.*?.csv", "data with a list; yours.csv",
    "ümläut – „x“.csv", "a, b and c.csv", "\u202egnp.csv",
)  # fmt: skip


def test_every_error_of_the_workbench_is_said_in_german(german: None) -> None:
    lacking = {part: where for text, where in of_errors().items() for part in unspoken(text)}
    assert len(of_errors()) > 800
    assert not lacking, "without an entry in de.ts: " + "\n".join(f"{where}: {part}" for part, where in lacking.items())


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_an_error_stays_as_it_is(german: None, name: str) -> None:
    said = words.tr(f"/data/{name} is not a whole safetensors file: header too large")
    assert said == f"/data/{name} ist keine vollständige safetensors-Datei: header too large"
    for text in (f"the metric {name} failed: no", f"the label {name} is not a class; give the number of a class"):
        assert name in words.tr(text) and (words.tr(text) != text or "; " in name)
    assert words.tr(f"/data/{name}: token ids holds fractions; give whole numbers").startswith(f"/data/{name}: token")


def test_no_text_is_too_long_or_too_deep_for_the_catalogue(german: None) -> None:
    listed = "there is no layer q in m; the closest are " + ", ".join(f"model.layers.{each}" for each in range(400))
    assert words.tr(listed).startswith("es gibt keine Schicht q in m; am nächsten kommen model.layers.0, model")
    for text in (", " * 2000, ". " * 2000, ": " * 2000, "a; " * 1300, "a and 2 more, " * 280, "Ended: " * 500):
        assert words.tr(text).count(" ") >= text.count(" ")


def test_names_that_repeat_what_a_pattern_has_cost_no_more_than_their_length(german: None) -> None:
    """Six places that take anything, and a text that has what stands between them a hundred times, but not the end."""
    text = "a computes something other than what was evaluated: its outputs are "
    text += "a a from the evaluation, of which " * 60 + "its rounding of inputs explains " * 60 + " (a)" * 60
    assert words.tr(text + "\x01")
    assert not words.FLAG.search("(--" + "a" * 400_000)

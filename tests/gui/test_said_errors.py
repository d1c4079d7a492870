"""A German window says every error in German, whatever names are in it, and is not held up by any text."""

from __future__ import annotations

import errno
import json
import os
import re

import pytest
from PySide6.QtWidgets import QApplication

from tests.gui.said_errors import of_errors, unspoken
from tests.gui.test_words import german
from workbench.engine.failure import portable
from workbench.gui.shell import words
from workbench.steps import STEPS
from workbench.steps.options import option_fields

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
    for text in (", " * 2000, ". " * 2000, ": " * 2000, "a; " * 1300, "a and 2 more, " * 280, "Done: " * 500):
        assert words.tr(text).count(" ") >= text.count(" ")


def test_names_that_repeat_what_a_pattern_has_cost_no_more_than_their_length(german: None) -> None:
    """Six places that take anything, and a text that has what stands between them a hundred times, but not the end."""
    text = "a computes something other than what was evaluated: its outputs are "
    text += "a a from the evaluation, of which " * 60 + "its rounding of inputs explains " * 60 + " (a)" * 60
    assert words.tr(text + "\x01")
    assert not words.FLAG.search("(--" + "a" * 400_000)


SAYS = (
    (FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "a.csv"), "Datei oder Ordner nicht gefunden"),
    (PermissionError(errno.EACCES, os.strerror(errno.EACCES), "a.csv"), "keine Erlaubnis"),
    (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "kein Platz mehr auf der Platte"),
    (IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), "a folder"), "ist ein Ordner"),
)  # fmt: skip


@pytest.mark.parametrize(("error", "said"), SAYS)
def test_what_the_system_refuses_is_said_in_german(german: None, error: OSError, said: str) -> None:
    assert said in words.tr(f"the journal /a/b c.edits cannot be read: {error.strerror}")
    text = words.tr(portable(error, "Export").args[0])
    assert said in text and error.strerror not in text and (not error.filename or error.filename in text)


def test_what_json_refuses_is_said_in_german(german: None) -> None:
    for text in ('{"a": }', "[1 2]", '["a', "{a: 1}"):
        with pytest.raises(ValueError) as caught:
            json.loads(text)
        said = words.tr(f"a.json: no JSON: {caught.value}")
        assert "Zeile 1, Spalte" in said and not re.search(r"Expect|Untermin|column", said), said


FOREIGN = (
    "RuntimeError: size mismatch for the layer, the shape of b is another, got 3 of them",
    "Error: unable to open the thing, from a to b: done, and more",
    "failed to map the segment: Saved state of it, for reasons unknown",
)


@pytest.mark.parametrize("text", FOREIGN)
def test_what_another_program_says_is_not_half_translated(german: None, text: str) -> None:
    """Short patterns such as “the {} of {}” fitted pieces of it."""
    assert words.tr(text) == text
    assert words.tr(f"/data/x.csv is not a whole safetensors file: {text}").endswith(f"Datei: {text}")
    assert words.tr(f"Export failed with ValueError: {text}").endswith(text)


def test_hints_in_the_window_are_in_its_own_words(qapp: QApplication) -> None:
    """What the command line words (``--session S.qwb``) is said as a field of the window, or left out."""
    only_there = ("on the command line", "pip install")
    helps = [each.info.help for step in STEPS for each in option_fields(step.options) if each.info.form]
    for text in (*of_errors(), *helps):
        said = words.tr(text)
        if not any(each in said for each in only_there):
            assert not re.search(r"(?<![\w-])--[a-z]|\bS\.qwb|workbench [a-z]+ [A-Z-]", said), (text, said)
    assert words.tr("calibrate first (--session S.qwb gives the session), or wait") == "calibrate first, or wait"
    assert words.tr("allow more (--memory)") == "allow more (field “Memory”)"

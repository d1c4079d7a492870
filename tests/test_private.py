"""What the log and a report of a problem say of the user's files: nothing."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import traceback
import zipfile
from pathlib import Path

import pytest

from workbench import log
from workbench.cli import parser
from workbench.insight.problem_report import problem_report, write_report
from workbench.private import NAMES_VARIABLE, PrivateFormatter, hide, without_names


@pytest.mark.parametrize(("text", "expected"), [
    ("the session /home/ann/my project/s.qwb cannot be read", "the session <file> cannot be read"),
    ("[Errno 2] No such file: '/home/ann/a b/c d.qwb'", "[Errno 2] No such file: '<file>'"),
    (r"saved C:\Users\Ann\m.pt2; ok", "saved <file>; ok"),
    ("job 3: Open secret.safetensors", "job 3: Open <file>.safetensors"),
    ("~/models/llama/config.json: bad", "<file>: bad"), ("opening /mnt/a,b/c(1).pt failed", "opening <file> failed"),
    ("the session /home/ann/My Own Project/model v2.qwb is bad", "the session <file> is bad"),
    ("file:///home/ann/s.qwb and key:/a/x, ../a/weights; data/x.tsv.", "<file>, <file>; <file>."),
    ("12 GB/s, 4/8, 5 tokens/s, x = a / b", None), ("a.TXT", "<file>.TXT"), ("/" * 20_000 + "a" * 20_000, "<file>"),
    ("«/mnt/größe/x» C:\\Users\\Ann\\my model.gguf: bad", "«<file>» <file>: bad"), ("a/" * 9_000, "<file>"),
    ("model.layers.0.mlp.up_proj: 3/4 of n/a at https://example.org/a", None), ("8 layers, 1.5 MB, int4-g32", None),
])  # fmt: skip
def test_names_of_files_go_and_the_rest_stays(text: str, expected: str | None) -> None:
    assert without_names(text) == (text if expected is None else expected)


def test_tracebacks_keep_the_places_in_programs() -> None:
    try:
        json.loads("{")
    except ValueError:
        text = without_names(traceback.format_exc())
    assert 'File "json/decoder.py", line' in text and "/lib/python" not in text and __file__ not in text


def test_names_with_spaces_that_have_no_folder_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.private._hidden", set())
    hide("my secret plan.json", "a b", "--samples 12", "/home/ann/two words.qwb", None, 3, "4.5 bits")
    assert without_names("the plan my secret plan.json is bad") == "the plan <file> is bad"
    assert without_names("Open two words.qwb, a b, 4.5 bits") == "Open <file>, a b, 4.5 bits"


def test_names_without_an_ending_are_known_by_the_option_that_gives_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.private._hidden", set())
    hide("inspect", path=Path("acme"), data="ledger?window=8", out="a.qwb", plan="plan", metric="predicted-kl", seed=3)
    text = "the plan acme cannot be read: acme-2, 'ledger'; predicted-kl of acme.layers, acme. plan, inspect"
    expected = "the plan <file> cannot be read: acme-2, '<file>'; predicted-kl of acme.layers, <file>. plan, inspect"
    assert without_names(text) == expected
    assert without_names("a.qwb of demo:language-model") == "<file>.qwb of demo:language-model"


@pytest.mark.parametrize("words", [
    ("inspect", "acme"), ("info", "acme"), ("evaluate", "s", "--plan", "acme"), ("report", "s", "acme"),
    ("calibrate", "s", "--data", "acme", "--out", "o"), ("compare", "s", "acme"), ("repair", "s", "--out", "acme"),
    ("check", "acme", "--target", "vllm"), ("export", "s", "--to", "plan", "--out", "acme"),
])  # fmt: skip
def test_no_command_logs_a_bare_name(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.private._hidden", set())
    hide(**vars(parser().parse_args(words)))
    assert without_names("acme cannot be read") == "<file> cannot be read"


def test_a_command_hides_the_names_that_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_LOG_FOLDER", str(tmp_path / "state"))
    command = [sys.executable, "-m", "workbench", "info", "my secret session.qwb"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    assert "my secret session.qwb" in ended.stderr
    (file,) = (tmp_path / "state").rglob("*.log")
    assert "info failed" in file.read_text() and "secret" not in file.read_text()


def test_the_log_names_no_file_unless_the_user_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    record = logging.LogRecord("workbench", logging.INFO, __file__, 1, "open %s", ("/home/ann/x.qwb",), None)
    assert PrivateFormatter("%(message)s").format(record) == "open <file>"
    monkeypatch.setenv(NAMES_VARIABLE, "1")
    assert PrivateFormatter("%(message)s").format(record) == "open /home/ann/x.qwb"


def test_the_archive_holds_what_was_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(log.FOLDER_VARIABLE, str(tmp_path / "log"))
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "engine-1.log").write_text("Segmentation fault in /home/ann/llama.gguf of Ann's model")
    parts = problem_report(["job 1: Open llama.gguf: done"], ["Ann's model"])
    assert "Quantization Workbench" in parts["report.txt"] and "job 1: Open <file>.gguf: done" in parts["report.txt"]
    assert parts["log/engine-1.log"] == "Segmentation fault in <file> of <name>"
    write_report(parts, tmp_path / "problem.zip")
    with zipfile.ZipFile(tmp_path / "problem.zip") as archive:
        assert {name: archive.read(name).decode() for name in archive.namelist()} == parts
    assert "ann/llama.gguf" in problem_report([], [], with_names=True)["log/engine-1.log"]


def test_the_log_holds_no_control_characters() -> None:
    """Names in files are data: in a terminal that shows the log, too."""
    record = logging.LogRecord("x", logging.INFO, __file__, 1, "layer %s\nend", ("\x1b[31m\u202ea\r",), None)
    assert PrivateFormatter("%(message)s").format(record) == "layer \\x1b[31m\\u202ea\\r\nend"

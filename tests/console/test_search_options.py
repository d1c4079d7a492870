"""The options of ``workbench plan``: what goes together, what does not; compiled code never spoils the result."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

import pytest

from workbench.cli import main, parser
from workbench.console.flags import options_of
from workbench.console.plan import check
from workbench.steps.search import SearchOptions


def parsed(*words: str) -> argparse.Namespace:
    return parser().parse_args(["plan", "S.qwb", *words])


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--target", "vllm"],
        ["--uniform", "int8-channel", "--lock", "*.0.*"],
        ["--uniform", "int8-channel", "--loss", "0.1"],
        ["--uniform", "int8-channel", "--allow", "*=int8-channel"],
        ["--bits-per-weight", "4", "--allow", "*.mlp.*"],
        ["--bits-per-weight", "4", "--allow", "*.mlp.*=,"],
        ["--loss", "-1"],
        ["--microseconds", "soon"],
        ["--bits-per-weight", "4", "--minimise", "beauty"],
        ["--bits-per-weight", "4", "--strategy", "luck"],
    ],
)
def test_what_makes_no_sense_is_a_usage_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", "S.qwb", *words])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("workbench plan: ") and said.endswith("; see workbench plan --help\n")


@pytest.mark.parametrize(
    "words",
    [
        ["--bits-per-weight", "4"],
        ["--size", "1MB", "--microseconds", "10", "--loss", "0.1"],
        ["--loss", "0.1", "--minimise", "nbytes", "--lock", "a", "--lock", "b"],
        ["--strategy", "threshold"],
        ["--uniform", "int8-channel"],
        ["--uniform", "int8-channel", "--inputs", "static", "--target", "vllm", "--range-method", "mse"],
    ],
)
def test_what_goes_together_passes(words: list[str]) -> None:
    check(parsed(*words))


def test_locks_add_up() -> None:
    assert parsed("--lock", "a", "--lock", "b.*").lock == ["a", "b.*"]
    assert parsed().lock == []


def test_schemes_are_allowed_by_pattern() -> None:
    arguments = parsed("--allow", "*.mlp.*=int4-g32, keep", "--allow", "re:.*=o$=int8-channel")
    allowed = options_of(SearchOptions, arguments).allow
    assert dict(allowed) == {"*.mlp.*": ("int4-g32", "keep"), "re:.*=o$": ("int8-channel",)}


def test_compiled_code_prints_to_standard_error() -> None:
    code = (
        "import os\nfrom workbench.console.command import output_of_libraries_as_errors as quiet\n"
        "with quiet():\n    os.write(1, b'noise')\nos.write(1, b'result')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    assert (done.stdout, done.stderr) == ("result", "noise")

"""The contract of the command line: its commands and flags, spellings with hyphens, defaults that the help tells."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from workbench.cli import main, parser
from workbench.console import flags
from workbench.console.command import of_step
from workbench.console.flags import options_of
from workbench.console.report import Table, described
from workbench.session.results import StepResult
from workbench.steps.evaluate import EvaluateOptions
from workbench.steps.options import OptionInfo, option
from workbench.steps.score import ScoreOptions
from workbench.steps.search import SearchOptions
from workbench.steps.step import Step

FLAGS = {
    "apply": "--factory --out --plan --session --to --trust --weights",
    "audit": "--batch-size --data --most --no-save --plan --samples --trust",
    "bench": "--batch --ncu --no-save --repeats --schemes --shape --target",
    "calibrate": "--batch-size --data --factory --out --samples --seed --trust --weights",
    "compare": "--all",
    "demo": "--headless --out",
    "error-budget": "--batch-size --most --no-save --plan --samples --seed --trust",
    "evaluate": "--batch-size --data --metric-file --no-save --plan --samples --seed --tasks --trust --worst",
    "explain": "--layer --metric --plan --schemes --target",
    "export": "--out --plan --to --trust",
    "front": "--metric --points --schemes --target",
    "gui": "--factory --trust --weights",
    "info": "--trust",
    "inspect": "--factory --fingerprint --trust --weights",
    "outliers": "--layer --most --tokens",
    "plan": "--allow --batch --bits-per-weight --cache --corrected --inputs --lock --loss --metric --microseconds "
    "--minimise --no-save --out --range-method --schemes --size --strategy --target --transforms --trust --uniform",
    "quality": "--batch-size --most --samples --trust",
    "ranges": "--high --layer --low --tap",
    "refine": "--batch-size --bits-per-weight --out --samples --tolerance --trust",
    "report": "",
    "sensitivity": "--algorithm --batch-size --metric --out --samples --schemes --seed --trust",
    "train": "--batch-size --checkpoint --data --learning-rate --loss --out "
    "--plan --samples --seed --steps --to --trust",
    "check": "--model --out --repair --session --target --trust",
    "channels": "--factor --layer --most --tap",
}
"""Every command, with flags that scripts may use: none of them may go."""


def entries() -> dict[str, argparse.ArgumentParser]:
    (commands,) = (action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    return dict(commands.choices)


def flags_of(entry: argparse.ArgumentParser) -> dict[str, str]:
    return {name: action.help or "" for action in entry._actions for name in action.option_strings}


@pytest.mark.parametrize("name", FLAGS)
def test_commands_and_flags_stay(name: str) -> None:
    known = flags_of(entries()[name])
    assert set(FLAGS[name].split()) | {"--json", "--debug", "--quiet", "--help"} <= known.keys()


def test_every_out_says_its_default() -> None:
    outs = {name: flags_of(entry)["--out"] for name, entry in entries().items() if "--out" in flags_of(entry)}
    assert {"plan", "sensitivity", "refine", "calibrate", "export", "apply", "train", "demo", "check"} <= outs.keys()
    assert all("(default" in text or "(required)" in text for text in outs.values()), outs


def test_hyphens_are_as_good_as_underscores() -> None:
    def score(*words: str) -> ScoreOptions:
        return options_of(ScoreOptions, parser().parse_args(["sensitivity", "S.qwb", *words]))

    hyphens = score("--metric", "measured-kl-inputs", "--schemes", "int4-g32_asym,q4-k,mine", "--algorithm", "rtn_clip")
    assert hyphens.metric == "measured_kl_inputs" and hyphens.schemes == ("int4-g32-asym", "q4_k", "mine")
    assert hyphens.algorithm == "rtn-clip" and score("--metric", "measured_kl").metric == "measured_kl"
    assert score("--algorithm", "gptaq").algorithm == ScoreOptions(algorithm="GPTAQ").algorithm == "gptq-sequential"
    words = ["plan", "S.qwb", "--minimise", "bits-per-weight", "--metric", "predicted-kl", "--strategy", "top_k",
             "--range-method", "min_max", "--loss", "0.1"]  # fmt: skip
    result = options_of(SearchOptions, parser().parse_args(words))
    assert (result.minimise, result.metric) == ("bits_per_weight", "predicted_kl")
    assert (result.strategy, result.range_method) == ("top-k", "min-max")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--samples", "0"], "at least 1"),
        (["--samples", "many"], "whole number"),
        (["--seed", "1.5"], "whole number"),
        (["--metric", "beauty"], "predicted-kl"),
        (["--schemes", ","], "names nothing"),
    ],
)
def test_a_flag_is_read_as_its_option_says(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["sensitivity", "S.qwb", *words])
    assert ended.value.code == 2 and message in capsys.readouterr().err


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999"])
def test_a_number_that_is_not_finite_is_refused(text: str) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["plan", "S.qwb", f"--loss={text}"])


def test_a_list_of_none_is_empty() -> None:
    for command, flag in (("evaluate", "worst"), ("audit", "most"), ("quality", "most")):
        arguments = parser().parse_args([command, "S.qwb", f"--{flag}", "0"])
        assert getattr(arguments, flag) == 0
    options_of(EvaluateOptions, parser().parse_args(["evaluate", "S.qwb"]))


def test_a_new_step_has_a_command_with_a_report() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options:
        depth: int = option(3, OptionInfo(label="Depth", help="how deep, 100 % at most", minimum=1))
        quick: bool = option(False, OptionInfo(label="Quick", help="be quick"))

    entry = argparse.ArgumentParser()
    flags.flags_of(Options)(entry)
    assert options_of(Options, entry.parse_args(["--depth", "7", "--quick"])) == Options(depth=7, quick=True)
    assert "(default 3)" in entry.format_help() and "100 % at most" in entry.format_help()

    @dataclass(frozen=True)
    class Row:
        layer: str
        loss: float

    @dataclass(frozen=True)
    class Result:
        total: float
        rows: tuple[Row, ...]

    step = Step(
        name="made-up", title="Make up", summary="Makes up rows.", options=Options, heading=lambda options, session: "",
        run=lambda context, options: Result(total=0.5, rows=(Row("a", float("nan")),)),
    )  # fmt: skip
    command = of_step(step, "S.qwb")
    made = argparse.ArgumentParser()
    for add in command.flags:
        add(made)
    archived = Path(__file__).parent.parent / "archive" / "session-v1.qwb"
    report = command.run(made.parse_args([str(archived)]), lambda *_: None)
    assert not isinstance(report, int)
    assert report.as_json() == {"total": 0.5, "rows": [{"layer": "a", "loss": None}]}
    assert described("Make up", {"plain": 1}).as_json() == {"result": {"plain": 1}}


def test_a_stored_result_is_a_table() -> None:
    columns = {"layer": ("a", "b"), "sqnr": np.array([20.125, np.inf])}
    report = described("Made up", StepResult(facts={"plan": "sha256:12", "samples": 3}, columns=columns))
    rows = [{"layer": "a", "sqnr": 20.125}, {"layer": "b", "sqnr": None}]
    assert report.as_json() == {"plan": "sha256:12", "samples": 3, "rows": rows}
    assert report.parts[:2] == ["Made up", "samples: 3"] and isinstance(report.parts[2], Table)

"""The judging commands on the bundled classifier: what they print, and their errors in one line."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main
from workbench.console.command import Outcome
from workbench.console.reports.tables import scored
from workbench.console.terminal import Bar
from workbench.planning.totals import plan_totals
from workbench.preflight import Estimate
from workbench.session.session import Session
from workbench.steps.score import ScoreOptions

MODEL = "demo:digits-classifier"


def call(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    code = main([*words, "--json"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return json.loads(captured.out)


def output(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def fails(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and len(captured.err.strip().splitlines()) == 1
    return captured.err


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A calibrated and scored session of the bundled classifier with a plan of 4 bits."""
    path = tmp_path_factory.mktemp("checks") / "first.qwb"
    out = ["--out", str(path), "--quiet"]
    assert main(["calibrate", MODEL, "--data", MODEL, "--samples", "64", *out]) == 0
    schemes = ["--schemes", "int3-channel,int4-channel,int8-channel", "--quiet"]
    assert main(["sensitivity", str(path), *schemes]) == 0
    assert main(["sensitivity", str(path), "--metric", "weight_error", *schemes]) == 0
    assert main(["plan", str(path), "--uniform", "int4-channel", "--quiet"]) == 0
    return path


def test_a_prediction_says_by_which_form(first: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sensitivity", str(first), "--schemes", "int4-channel", "--quiet"]
    result = call(capsys, *words)
    assert result["forms"] == {"kronecker": [], "directional": result["layers"], "measured": []}
    assert not result["gauss_newton"]
    layers = len(result["layers"])
    assert f"predicted by the directional form, corrected by measured cells: {layers} layers" in output(capsys, *words)


def test_losses_that_were_measured_are_not_called_predicted(first: Path, tmp_path: Path) -> None:
    session = Session.load(first)
    table = session.sensitivities["predicted_kl"]
    replace(session, sensitivities={"predicted_kl": replace(table, measured=table.layers[:1])}).save(tmp_path / "s.qwb")
    session = Session.load(tmp_path / "s.qwb")
    table = session.sensitivities["predicted_kl"]
    report = scored(Outcome(
        before=session, session=session, options=ScoreOptions(), result=table, notes=(), flags=argparse.Namespace()
    ))  # fmt: skip
    assert report.facts["forms"]["measured"] == [table.layers[0]]
    assert table.layers[0] not in report.facts["forms"]["directional"]
    assert "measured, since no gradient tells what they decide: 1 layer" in report.parts


def test_an_audit_adds_up_by_itself(first: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(capsys, "audit", str(first), "--samples", "32", "--most", "100", "--no-save")
    assert Session.load(first).audit is None
    assert result["samples"] == 32 and result["alone"] == pytest.approx(sum(x["alone"] for x in result["layers"]))
    session = Session.load(first)
    sums = plan_totals(session.model, session.plan, session.sensitivities["predicted_kl"])
    assert result["predicted_whole"] == pytest.approx(sums.predicted)
    assert result["predicted"] == pytest.approx(sums.predicted - sums.interaction)
    assert result["correction"] == pytest.approx(result["whole"] / result["predicted_whole"])
    sizes = [abs(x["interaction"]) for x in result["layers"]]
    assert sizes == sorted(sizes, reverse=True)
    text = output(capsys, "audit", str(first), "--samples", "32")
    assert all(words in text for words in ("predicted, together", "add up", "calibrated correction", "interaction"))
    stored = Session.load(first).audit
    assert stored is not None and stored.audit.whole == result["whole"]
    assert stored.plan_hash == Session.load(first).plan.hash
    assert result["left_out"] == 0 and "of weights alone" not in text


def test_an_audit_says_that_it_leaves_inputs_alone(
    first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session, plan = Session.load(first), tmp_path / "plan.json"
    names = [layer.name for layer in session.model.layers[:2]]
    session.plan.assign(names, inputs="int8-token").save(plan)
    text = output(capsys, "audit", str(first), "--plan", str(plan), "--samples", "8")
    assert "of weights alone: the inputs of 2 layers" in text


def test_the_data_get_a_verdict(first: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(capsys, "quality", str(first))
    assert result["samples"] == 64 and result["enough"] is (not result["unsettled"] or result["enough"])
    steps = [x["samples"] for x in result["saturation"]]
    assert steps == sorted(steps) and steps[-1] == 64
    far = [x["standard_deviations"] for x in result["distances"]]
    assert far == sorted(far, reverse=True)
    assert ("verdict: enough" if result["enough"] else "verdict: not enough") in output(capsys, "quality", str(first))


def test_refining_measures_and_a_plan_may_use_it(
    first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "refined.qwb"
    words = ["refine", str(first), "--bits-per-weight", "4.5", "--tolerance", "5", "--samples", "32", "--out", str(out)]
    result = call(capsys, *words)
    assert result["cells"] and result["measured"] == len(result["cells"])
    assert all(x["measured"] >= 0 and x["predicted"] >= 0 for x in result["cells"])
    refined = call(capsys, "plan", str(out), "--bits-per-weight", "4.5", "--metric", "refined")
    assert refined["predicted"] is not None and refined["bits_per_weight"] <= 4.5
    assert "decide closely at 4.5 bits" in output(capsys, *words)
    assert "measured_kl" in fails(capsys, "plan", str(first), "--bits-per-weight", "4.5", "--metric", "refined")


REFINE = ("refine", "--bits-per-weight", "4.5", "--tolerance", "5", "--samples", "16", "--quiet")
MEASURE = ("sensitivity", "--metric", "measured_kl", "--schemes", "int4-channel,int8-channel", "--samples", "16",
           "--quiet")  # fmt: skip


@pytest.mark.parametrize("command", [REFINE, MEASURE], ids=["refine", "sensitivity"])
def test_an_interrupted_table_keeps_what_was_measured_and_goes_on_to_the_same_bits(
    command: tuple[str, ...], first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    words = [command[0], str(first), *command[1:]]
    whole, part, rest = (tmp_path / f"{name}.qwb" for name in ("whole", "part", "rest"))
    assert main([*words, "--out", str(whole)]) == 0

    def interrupted(self: Bar, fraction: float, text: str, partial: Any = None) -> None:
        if partial is not None and not isinstance(partial, Estimate):
            raise KeyboardInterrupt

    monkeypatch.setattr(Bar, "__call__", interrupted)
    assert main([*words, "--out", str(part)]) == 130
    monkeypatch.undo()
    loaded = Session.load(part).sensitivities["measured_kl"].score
    assert 0 < np.isfinite(loaded).sum() < np.isfinite(Session.load(whole).sensitivities["measured_kl"].score).sum()
    words[1] = str(part)
    assert main([*words, "--out", str(rest)]) == 0
    tables = [Session.load(path).sensitivities["measured_kl"].score for path in (whole, rest)]
    np.testing.assert_array_equal(*tables)
    capsys.readouterr()


def test_the_error_budget_stays_in_the_session(first: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(capsys, "error-budget", str(first), "--samples", "16")
    assert result["blocks"][-1]["block"] == "output" and result["blocks"][-1]["measured"] > 0
    assert result["worst"] and sum(x["share"] for x in result["worst"]) == pytest.approx(1.0, abs=0.2)
    stored = Session.load(first).error_budget
    assert stored is not None and float(stored.measured.decibels[-1]) == result["blocks"][-1]["measured"]
    assert "in dB" in output(capsys, "error-budget", str(first), "--samples", "16", "--no-save")


def test_evaluations_say_whether_differences_are_resolved(
    first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = tmp_path / "task.py"
    task.write_text("def margin(outputs, batch):\n    top = outputs.topk(2).values\n    return top[:, 0] - top[:, 1]\n")
    words = ["evaluate", str(first), "--samples", "64", "--metric-file", f"{task}:margin"]
    assert "--trust" in fails(capsys, *words)
    result = call(capsys, *words, "--trust")
    assert set(result["metrics"]) == {"kl", "top1_agreement", "accuracy", "top5_accuracy", "margin"}
    assert {each["metric"] for each in result["differences"]} == {"accuracy", "top5_accuracy", "margin"}
    for each in result["differences"]:
        metric = result["metrics"][each["metric"]]
        assert each["value"] == pytest.approx(metric["value"] - metric["baseline"]) and each["to"] == "floating point"
        assert ("is resolved with 64" in each["sentence"]) == each["resolved"]
    kls = [each["kl"] for each in result["changed"]]
    assert kls == sorted(kls, reverse=True) and all(each["position"] == -1 for each in result["changed"])
    output(capsys, "plan", str(first), "--uniform", "int8-channel")
    text = output(capsys, "evaluate", str(first), "--samples", "64")
    assert "against floating point: accuracy" in text and "samples" in text and "most changed" in text
    assert text.count("against ") >= 4, "the earlier plan's evaluation on the same samples is compared as well"
    assert len(Session.load(first).evaluations) == 2
    output(capsys, "plan", str(first), "--uniform", "int4-channel")


def test_two_sessions_are_compared(first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    second = tmp_path / "second.qwb"
    second.write_bytes(first.read_bytes())
    same = call(capsys, "compare", str(first), str(second))
    assert same["same_model"] and same["layers"] == [] and not any(x["differs"] for x in same["facts"])
    output(capsys, "plan", str(second), "--uniform", "int8-channel")
    result = call(capsys, "compare", str(first), str(second))
    assert len(result["layers"]) == result["layers_in_all"]
    assert result["layers"][0]["first"]["weights"] == "int4-channel" and result["layers"][0]["second"]["bits"] > 8
    text = output(capsys, "compare", str(first), str(second), "--all")
    assert "int4-channel" in text and "* " in text


def test_timings_of_several_batch_sizes_stay_in_the_session(first: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(capsys, "bench", str(first), "--batch", "1,4", "--repeats", "3")
    assert {row["batch"] for row in result["rows"]} == {1, 4}
    assert {timing.batch for timing in Session.load(first).timings} == {1, 4}
    result = call(capsys, "bench", str(first), "--repeats", "3", "--target", "nvidia-8.0", "--no-save")
    assert all(row["estimate"]["speedup"] > 1 and row["estimate"]["how"] for row in result["rows"])
    assert result["estimates"]["plan"][0]["microseconds"] > 0
    text = output(capsys, "bench", str(first), "--repeats", "3", "--target", "nvidia-8.0", "--no-save")
    assert "estimate for A100 SXM 80 GB, from its data sheet (roofline), not measured" in text
    assert "whole plan at batch 1, estimate: " in text
    result = call(capsys, "bench", "--shape", "64x64", "--schemes", "int8-channel", "--repeats", "3", "--ncu")
    if result["cuda"] != "available":
        assert result["ncu"] == [] and result["rows"][0]["occupancy_reason"] == "a CPU kernel has none"
        text = output(capsys, "bench", "--shape", "64x64", "--schemes", "int8-channel", "--repeats", "3", "--ncu")
        assert "occupancy -: a CPU kernel has none" in text
        assert f"nothing to profile with ncu, no timed kernel ran on a CUDA device (CUDA: {result['cuda']})" in text
    assert "names no hardware" in fails(capsys, "bench", str(first), "--target", "gguf")
    with pytest.raises(SystemExit) as ended:
        main(["bench", "--batch", "1,x"])
    assert ended.value.code == 2 and "batch sizes" in capsys.readouterr().err


def test_what_is_missing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = tmp_path / "bare.qwb"
    wb.start(wb.open(MODEL)).save(bare)
    assert "calibrate" in fails(capsys, "quality", str(bare))
    assert "sensitivity" in fails(capsys, "refine", str(bare), "--bits-per-weight", "4")
    assert "quantizes nothing" in fails(capsys, "audit", str(bare))
    assert "calibrate first" in fails(capsys, "error-budget", str(bare))
    assert "no-such.qwb" in fails(capsys, "compare", str(bare), str(tmp_path / "no-such.qwb"))
    assert math.isfinite(Session.load(bare).model.nbytes)


@pytest.mark.parametrize(
    ("words", "heading"),
    [
        (("quality",), "farthest from the evaluation data"),
        (("audit", "--samples", "4", "--no-save"), "losses in nats, the largest interaction first"),
    ],
    ids=lambda value: value[0],
)
def test_a_list_of_none_has_no_heading(
    words: tuple[str, ...], heading: str, first: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *flags = words
    few, none = (output(capsys, command, str(first), *flags, "--most", n, "--quiet") for n in ("1", "0"))
    assert heading in few.splitlines() and heading not in none.splitlines()

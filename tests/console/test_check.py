"""``workbench check``: what a target refuses, the repaired plan, exit codes; ``workbench channels``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.deployment.exporters.llamas import folder_of
from workbench.cli import main
from workbench.insight.legality import refusals
from workbench.planning.plan import Plan
from workbench.session.session import Session

MODEL = "demo:language-model"


def call(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> Any:
    assert main([*words, "--json"]) == code, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("check") / "S.qwb"
    assert main(["calibrate", MODEL, "--samples", "2", "--out", str(path), "--quiet"]) == 0
    session = Session.load(path)
    names = [layer.name for layer in session.model.layers if "mlp" in layer.name]
    plan = session.plan.assign(names, weights="int4-g64-asym").assign(names[:1], weights="nf4-b64")
    Session(**{**{f: getattr(session, f) for f in session.__dataclass_fields__}, "plan": plan}).save(path)
    return path


@pytest.fixture
def session(scored: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "S.qwb"
    copy.write_bytes(scored.read_bytes())
    return copy


def test_a_target_names_what_it_refuses(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = Session.load(session)
    expected = {name for refusal in refusals(loaded.plan, loaded.model.layers, "vllm") for name in refusal.layers}
    answer = call(capsys, 1, "check", str(session), "--target", "vllm")
    assert {row["layer"] for row in answer["refused"]} == expected and expected
    assert all(row["reason"] and row["scheme"] in ("int4-g64-asym", "nf4-b64", "keep") for row in answer["refused"])
    assert main(["check", str(session), "--target", "vllm"]) == 1
    text = capsys.readouterr().out
    assert "nf4-b64" in text and "refuses" in text and "why" in text.splitlines()[2]


def test_a_target_without_the_network_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.json"
    Plan().save(plan)
    folder = folder_of("gpt2", tmp_path / "gpt2")
    for more in ([], ["--repair"]):
        answer = call(capsys, 1, "check", str(plan), "--model", str(folder), "--target", "mlx", *more)
        assert "no network of the architecture gpt2 yet, only of llama," in answer["network"]
    assert "network" not in call(capsys, 0, "check", str(plan), "--model", str(folder), "--target", "gguf")


def test_a_plan_file_is_repaired_in_place_or_elsewhere(
    session: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded, plan, out = Session.load(session), tmp_path / "plan.json", tmp_path / "repaired.json"
    loaded.plan.save(plan)
    before = plan.read_bytes()
    words = ["check", str(plan), "--session", str(session), "--target", "vllm"]
    answer = call(capsys, 0, *words, "--repair", "--out", str(out))
    assert plan.read_bytes() == before and answer["left"] == [] and answer["changes"]
    assert refusals(Plan.load(out), loaded.model.layers, "vllm") == ()
    assert main([*words, "--repair"]) == 0
    text = capsys.readouterr().out
    assert "changed" in text and str(plan) in text and "nf4-b64" in text
    assert Plan.load(plan).rules == Plan.load(out).rules
    assert call(capsys, 0, *words)["refused"] == []
    assert call(capsys, 0, "check", str(plan), "--model", MODEL, "--target", "vllm")["refused"] == []


def test_a_sessions_plan_is_repaired_in_the_session(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(session), "--target", "vllm", "--repair"]) == 0
    capsys.readouterr()
    loaded = Session.load(session)
    assert refusals(loaded.plan, loaded.model.layers, "vllm") == ()
    assert any(rule.assignment.weights != "keep" for rule in loaded.plan.rules)


def test_what_is_wrong_is_one_line(session: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.json"
    Session.load(session).plan.save(plan)
    with pytest.raises(SystemExit) as ended:
        main(["check", str(plan), "--target", "vllm"])
    assert ended.value.code == 2 and "--session" in capsys.readouterr().err
    for words in (["check", str(session), "--target", "vlm"], ["check", str(tmp_path / "none"), "--target", "vllm"],
                  ["check", str(plan), "--target", "vllm", "--model", "demo:digits-classifier"]):  # fmt: skip
        assert main(words) == 1
        captured = capsys.readouterr()
        assert captured.out == "" and len(captured.err.strip().splitlines()) == 1


def test_channels_are_listed_by_how_far_they_stick_out(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = call(capsys, 0, "channels", str(session), "--layer", "*.down_proj", "--most", "5", "--factor", "2")
    times = [row["times"] for row in answer["channels"]]
    assert times == sorted(times, reverse=True) and len(times) == 5 and min(times) >= 2
    statistics = Session.load(session).statistics
    for row in answer["channels"]:
        held = statistics[row["layer"], "input"]
        assert max(-row["low"], row["high"]) == pytest.approx(held.channel_absmax[row["number"]])
    assert main(["channels", str(session), "--layer", "none*"]) == 1
    assert "none*" in capsys.readouterr().err


def test_info_says_what_the_plan_turns_into_what(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = call(capsys, 0, "info", str(session))["transitions"]
    assert {row["after"] for row in rows} == {"nf4-b64", "int4-g64-asym", "float16"}
    assert sum(row["layers"] for row in rows) == len(Session.load(session).model.layers)
    assert main(["info", str(session)]) == 0
    assert "becomes" in capsys.readouterr().out

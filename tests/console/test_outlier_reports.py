"""``workbench outliers``: what it lists is what the session holds; its errors in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.cli import main
from workbench.session.session import Session


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("outliers") / "text.qwb"
    words = ["calibrate", "demo:language-model", "--samples", "8", "--out", str(path), "--quiet"]
    assert main(words) == 0
    return path


def test_the_largest_tokens_are_listed(calibrated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["outliers", str(calibrated), "--most", "500", "--tokens", "3", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["tensors"]
    session = Session.load(calibrated)
    assert {(item["layer"], item["tap"]) for item in listed} == set(session.outliers)
    assert [item["sigmas"] for item in listed] == sorted((item["sigmas"] for item in listed), reverse=True)
    for item in listed:
        result = session.outliers[item["layer"], item["tap"]]
        spread = session.statistics[item["layer"], item["tap"]].variance ** 0.5
        assert item["largest"] == abs(item["top"][0]["value"]) == session.statistics[item["layer"], item["tap"]].absmax
        assert item["sigmas"] == pytest.approx(item["largest"] / spread) and len(item["top"]) == 3
        assert item["share"] == pytest.approx(result.above(6 * spread) / result.count)
        assert item["top"][1]["text"] == result.text[1] and item["top"][2]["sample"] == result.sample[2]


def test_text_patterns_and_errors(calibrated: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["outliers", str(calibrated), "--layer", "*.0.mlp.down_proj"]) == 0
    text = capsys.readouterr().out
    assert text.count("model.layers.0.mlp.down_proj") == 2 and "position" in text
    assert main(["outliers", str(calibrated), "--layer", "nothing*"]) == 1
    assert "matches no layer" in capsys.readouterr().err
    bare = tmp_path / "bare.qwb"
    session = Session.load(calibrated)
    Session(model=session.model, environment=session.environment, plan=session.plan).save(bare)
    assert main(["outliers", str(bare)]) == 1
    assert "calibrate" in capsys.readouterr().err


def test_calibrating_names_the_most_extreme(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "digits.qwb"
    assert main(["calibrate", "demo:digits-classifier", "--samples", "32", "--out", str(out)]) == 0
    assert capsys.readouterr().out.count("outlier: ") == 3
    assert main(["outliers", str(out), "--most", "2"]) == 0
    assert "row " in capsys.readouterr().out


@pytest.mark.parametrize("command", ["ranges", "outliers", "channels"])
def test_layers_are_named_by_every_kind_of_pattern(
    command: str, calibrated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def listed(pattern: str) -> str:
        assert (
            main([command, str(calibrated), "--layer", pattern, *(["--most", "99"] if command != "ranges" else [])])
            == 0
        )
        return capsys.readouterr().out

    assert listed(r"re:.*\.down_proj") == listed("*.down_proj") != listed("*")
    assert main([command, str(calibrated), "--layer", "re:("]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "not a valid regular expression" in error

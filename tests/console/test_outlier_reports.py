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
    assert {(one["layer"], one["tap"]) for one in listed} == set(session.outliers)
    assert [one["sigmas"] for one in listed] == sorted((one["sigmas"] for one in listed), reverse=True)
    for one in listed:
        found = session.outliers[one["layer"], one["tap"]]
        spread = session.statistics[one["layer"], one["tap"]].variance ** 0.5
        assert one["largest"] == abs(one["top"][0]["value"]) == session.statistics[one["layer"], one["tap"]].absmax
        assert one["sigmas"] == pytest.approx(one["largest"] / spread) and len(one["top"]) == 3
        assert one["share"] == pytest.approx(found.above(6 * spread) / found.count)
        assert one["top"][1]["text"] == found.text[1] and one["top"][2]["sample"] == found.sample[2]


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

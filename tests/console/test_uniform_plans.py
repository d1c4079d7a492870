"""``workbench plan --uniform``: schemes of inputs and a target's rules apply; ``static`` is what it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.cli import main
from workbench.models.summary import quantizable
from workbench.planning.plan import Plan, resolve
from workbench.session.session import Session
from workbench.steps.search_rules import input_names

MODEL = "demo:digits-classifier"


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("uniform") / "s.qwb"
    assert main(["calibrate", MODEL, "--data", MODEL, "--samples", "8", "--out", str(path), "--quiet"]) == 0
    return path


def schemes(path: Path) -> set[tuple[str, str | None, str]]:
    session = Session.load(path)
    assignments = resolve(session.plan, session.model.layers)
    layers = [assignments[layer.name] for layer in quantizable(session.model.layers)]
    return {(each.weights, each.inputs, each.range_method) for each in layers}


@pytest.mark.parametrize(
    ("target", "inputs"), [("onnxruntime", "int8-tensor-asym"), ("tensorrt", "int8-tensor"), ("", "int8-tensor-asym")]
)
def test_static_inputs_are_what_the_target_runs(calibrated: Path, target: str, inputs: str) -> None:
    words = ["--uniform", "int8-channel", "--inputs", "static", "--range-method", "mse", "--quiet"]
    assert main(["plan", str(calibrated), *words, *(["--target", target] if target else [])]) == 0
    assert schemes(calibrated) == {("int8-channel", inputs, "mse")}
    if target:
        assert Session.load(calibrated).target == target, "the window goes on with it"


def test_a_search_takes_the_same_word(calibrated: Path) -> None:
    session = Session.load(calibrated)
    assert input_names(session, ("static", "int8-token"), "onnxruntime") == ("int8-tensor-asym", "int8-token")
    assert input_names(session, ("static",), "tensorrt") == ("int8-tensor",)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--inputs", "static", "--target", "gguf"], "runs no static inputs of 8 bits beside weights in int8-channel"),
        (["--inputs", "int8-token,static"], "--uniform chooses no schemes of inputs"),
        (["--range-method", "mse"], "the plan rounds none"),
        (["--target", "onnxrntime"], "the closest are onnxruntime"),
    ],
)
def test_what_cannot_be_is_one_line(
    calibrated: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = calibrated.read_bytes()
    assert main(["plan", str(calibrated), "--uniform", "int8-channel", *words]) == 1
    error = capsys.readouterr().err
    assert message in error and len(error.strip().splitlines()) == 1
    assert calibrated.read_bytes() == before


def test_layers_that_the_target_refuses_get_the_nearest_scheme(calibrated: Path) -> None:
    assert main(["plan", str(calibrated), "--uniform", "int5-channel", "--target", "onnxruntime", "--quiet"]) == 0
    assert all(weights != "int5-channel" for weights, _, _ in schemes(calibrated))


def test_a_session_that_cannot_be_written_still_gives_a_plan(
    calibrated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session, out = tmp_path / "s.qwb", tmp_path / "plan.json"
    session.write_bytes(calibrated.read_bytes())
    session.chmod(0o444)
    words = ["plan", str(session), "--uniform", "int4-g32", "--out", str(out)]
    assert main(words) == 1 and not out.exists()
    assert "is read-only; choose another name or allow it, or give --no-save" in capsys.readouterr().err
    assert main([*words, "--no-save"]) == 0
    assert session.read_bytes() == calibrated.read_bytes()
    assert Plan.load(out).rules


def test_an_unknown_runtime_is_a_usage_error(calibrated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["runtime", str(calibrated), "--runtime", "ONNX Runtime"])
    assert "choose from auto, llama.cpp, transformers, torchao, mlx, onnxruntime, openvino" in capsys.readouterr().err

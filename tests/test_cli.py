"""The command line as another program calls it: exit codes, one JSON object, clear one-line errors."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.deployment.exporters.llamas import folder_of
from workbench import cli
from workbench.cli import main, parser
from workbench.console import launch
from workbench.console.commands import COMMANDS
from workbench.errors import DataError, SessionError, first_line
from workbench.gui import app
from workbench.numerics.formats import parse_scheme
from workbench.planning.plan import Plan

DEMO = Path(str(files("workbench_resources"))) / "demo"
MODEL = str(DEMO / "language-model")
TEXT = str(DEMO / "text" / "calibration.txt")


def call(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    code = main([*words, "--json"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return json.loads(captured.out)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--memory", "-5GB"), "'-5GB' is not a size; write a number and a unit, such as 120MB, 2GB or 1.5GiB"),
        (("--memory", "-.5"), "'-.5' is not a size; write a number and a unit"),
        (("--memory", "0"), "'0' is not a size"),
        (("--samples", "-3"), "Samples must be at least 1, not -3"),
        (("--seed", "-1x"), "'-1x' is not a whole number"),
        (("--seed", "9" * 400), f"'{'9' * 40}' is not a whole number"),
        (("--window", "9" * 5000), f"'{'9' * 40}' is not a whole number"),
        (("--window", "2097152"), "Window must be at most 1048576, not 2097152"),
    ],
)
def test_a_value_that_is_none_is_refused_in_a_line(
    words: tuple[str, str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["calibrate", MODEL, "--out", "s.qwb", *words])
    assert stopped.value.code == 2 and says in capsys.readouterr().err


def fails(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.strip().splitlines()) == 1
    assert "Traceback" not in captured.err
    return captured.err


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session of the bundled language model, calibrated on a few windows and scored."""
    path = tmp_path_factory.mktemp("cli") / "S.qwb"
    assert main(["calibrate", MODEL, "--data", TEXT, "--samples", "16", "--out", str(path), "--quiet"]) == 0
    assert main(["sensitivity", str(path), "--metric", "predicted_kl", "--quiet"]) == 0
    return path


def test_every_command_has_help_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        with pytest.raises(SystemExit) as ended:
            parser().parse_args([command.name, "--help"])
        assert ended.value.code == 0
        assert f"example: workbench {command.name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "S.qwb"],
        ["plan", "S.qwb", "--size", "12 parsecs"],
        ["plan", "S.qwb", "--bits-per-weight", "-1"],
        ["plan", "S.qwb", "--bits-per-weight", "4", "--uniform", "int8-channel"],
        ["sensitivity", "S.qwb", "--metric", "beauty"],
        ["calibrate", MODEL],
    ],
)
def test_bad_usage_exits_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and re.search(r"^workbench.*: .*; see workbench.* --help$", said), said


def test_inspect_lists_layers_and_counts_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    result = call(capsys, "inspect", MODEL)
    assert set(result) == {"model", "fingerprint", "parameters", "bytes", "stored_bytes", "output", "layers", "notes"}
    facts = {"name", "kind", "shape", "dtype", "parameters", "bytes", "tied_to", "keep", "stored_as", "stored_bytes"}
    assert all(set(layer) == facts for layer in result["layers"]) and result["output"] == "token_logits"
    import safetensors

    with safetensors.safe_open(f"{MODEL}/model.safetensors", framework="np") as stored:
        tensors = [stored.get_slice(name) for name in stored.keys()]  # noqa: SIM118 (not a dictionary)
        assert result["parameters"] == sum(_count(tensor.get_shape()) for tensor in tensors)
        assert result["bytes"] == 2 * result["parameters"]


@pytest.mark.parametrize("kind, scheme", [("gptq", "int4-g64-sfp16"), ("mlx", "mxfp4"), ("gguf", "q4_k")])
def test_inspect_says_what_a_quantized_file_holds(
    kind: str, scheme: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = folder_of("qwen3", tmp_path / "source", hidden_size=256, intermediate_size=512, num_attention_heads=8)
    plan = Plan().assign(["model.layers.0.mlp.up_proj"], weights=scheme, algorithm="rtn")
    plan.save(tmp_path / "plan.json")
    out = str(tmp_path / ("out.gguf" if kind == "gguf" else "out"))
    assert main(["apply", str(model), "--plan", str(tmp_path / "plan.json"), "--to", kind, "--out", out]) == 0
    capsys.readouterr()
    result = call(capsys, "inspect", out)
    coded = {layer["name"]: layer for layer in result["layers"] if layer["stored_as"]}
    assert {name: layer["stored_as"] for name, layer in coded.items()} == {
        "model.layers.0.mlp.up_proj": parse_scheme(scheme).name
    }
    size, bits = 512 * 256, {"gptq": 4 + 16 / 64, "mlx": 4.25, "gguf": 4.5}[kind]
    (layer,) = coded.values()
    assert (layer["stored_bytes"], layer["bytes"]) == (size * bits / 8, 4 * size)
    assert result["bytes"] - result["stored_bytes"] == layer["bytes"] - layer["stored_bytes"]
    assert main(["inspect", out]) == 0
    assert "as the file stores them" in capsys.readouterr().out


def test_inspect_reads_large_files_for_the_fingerprint_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = call(capsys, "inspect", MODEL)
    monkeypatch.setattr("workbench.models.contents.LARGE", 1)
    assert call(capsys, "inspect", MODEL) == whole | {"fingerprint": ""}
    assert call(capsys, "inspect", MODEL, "--fingerprint") == whole
    assert main(["inspect", MODEL]) == 0
    assert "fingerprint: not computed, as all bytes must be read for it (--fingerprint)" in capsys.readouterr().out


def test_a_file_without_layers_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from safetensors.numpy import save_file

    file, session = str(tmp_path / "distance.safetensors"), str(tmp_path / "S.qwb")
    save_file({f"lin{n}.weight": np.ones((1, 4, 1, 1), np.float32) for n in range(5)}, file)
    sentence = "distance has no layer to quantize: of its 5 tensors none is the weight of a product"
    assert main(["inspect", file]) == 0
    assert sentence in capsys.readouterr().out
    assert main(["calibrate", file, "--out", session]) == 0
    assert sentence in "".join(capsys.readouterr())
    assert sentence in fails(capsys, "sensitivity", session, "--metric", "weight_error", "--quiet")


def _count(shape: list[int]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def test_the_whole_job(scored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan_path = tmp_path / "plan.json"
    result = call(capsys, "plan", str(scored), "--bits-per-weight", "4.5", "--out", str(plan_path))
    assert set(result) == {
        "bits_per_weight", "bytes", "predicted", "predicted_interval", "predicted_counts", "schemes", "inputs", "cache",
        "cache_bytes_per_token", "corrected", "second_order",
    }  # fmt: skip
    assert 4.2 < result["bits_per_weight"] <= 4.5
    assert len(set(result["schemes"].values())) > 2

    evaluated = call(capsys, "evaluate", str(scored), "--plan", str(plan_path), "--samples", "8")
    assert set(evaluated) == {
        "bits_per_weight", "bytes", "predicted_kl", "predicted_interval", "metrics", "notes", "differences", "changed",
    }  # fmt: skip
    assert set(evaluated["metrics"]["kl"]) == {"unit", "value", "baseline", "low", "high", "samples"}
    assert evaluated["bits_per_weight"] == result["bits_per_weight"]
    divergence = evaluated["metrics"]["kl"]
    assert divergence["low"] <= divergence["value"] <= divergence["high"]

    packed = tmp_path / "quantized.safetensors"
    call(capsys, "export", str(scored), "--to", "safetensors", "--out", str(packed))
    applied = tmp_path / "applied.safetensors"
    call(capsys, "apply", MODEL, "--plan", str(plan_path), "--to", "safetensors", "--out", str(applied))
    assert packed.read_bytes() == applied.read_bytes()
    header = int.from_bytes(packed.read_bytes()[:8], "little")
    assert packed.stat().st_size - 8 - header == result["bytes"]

    known = call(capsys, "info", str(scored))
    assert known["sensitivities"].keys() == {"predicted_kl"}
    assert len(known["evaluations"]) == 1


def test_a_size_budget_is_kept(scored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    full = call(capsys, "inspect", MODEL)["bytes"]
    result = call(capsys, "plan", str(scored), "--size", str(full // 2))
    assert full * 0.4 < result["bytes"] <= full // 2


def test_a_uniform_plan_of_any_scheme_has_a_prediction(scored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(capsys, "plan", str(scored), "--uniform", "int4-g48-asym")
    assert set(result["schemes"].values()) <= {"int4-g48-asym", "keep"}
    assert result["predicted"] > 0


def test_several_budgets_hold_together(scored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alone = call(capsys, "plan", str(scored), "--bits-per-weight", "5")
    size = alone["bytes"] - 50_000
    both = call(capsys, "plan", str(scored), "--bits-per-weight", "5", "--size", str(size), "--loss", "0.05")
    assert both["bytes"] <= size < alone["bytes"] and alone["predicted"] < both["predicted"] <= 0.05


def test_json_is_all_there_is_on_standard_output(scored: Path) -> None:
    words = ["sensitivity", str(scored), "--metric", "weight_error", "--json"]
    command = [sys.executable, "-W", "error", "-m", "workbench", *words]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(completed.stdout)
    assert set(result) == {"metric", "unit", "layers", "schemes", "score", "forms", "gauss_newton", "notes"}
    assert len(result["score"]) == len(result["layers"]) and result["forms"] == {}
    assert "\r" not in completed.stderr and "Traceback" not in completed.stderr


def test_errors_are_one_clear_line(scored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no-such-place" in fails(capsys, "inspect", "no-such-place")
    foreign = tmp_path / "foreign.qwb"
    foreign.write_bytes(b"not a session at all")
    assert "foreign.qwb" in fails(capsys, "info", str(foreign))
    assert "int4" in fails(capsys, "plan", str(scored), "--uniform", "int4-q32")
    assert "smallest" in fails(capsys, "plan", str(scored), "--bits-per-weight", "0.5")
    assert "gguff" in fails(capsys, "export", str(scored), "--to", "gguff", "--out", str(tmp_path / "x"))
    broken = tmp_path / "plan.json"
    broken.write_text('{"rules": [')
    assert "plan.json" in fails(capsys, "evaluate", str(scored), "--plan", str(broken))


def test_an_error_says_what_to_type(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "bare.qwb"
    session = wb.start(wb.open(MODEL))
    session.save(plan)
    text = fails(capsys, "sensitivity", str(plan), "--metric", "predicted_kl")
    assert text.strip().endswith("calibrate first (workbench calibrate MODEL --data DATA --out S.qwb)")


def test_an_empty_data_set_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    out = tmp_path / "S.qwb"
    assert "empty.txt" in fails(capsys, "calibrate", MODEL, "--data", str(empty), "--out", str(out))
    assert not out.exists()


def test_bench_says_what_ran_where(capsys: pytest.CaptureFixture[str]) -> None:
    result = call(capsys, "bench", "--shape", "64x64", "--repeats", "3", "--schemes", "int8-channel")
    assert result["rows"][0]["note"]
    assert result["device"]
    assert result["cuda"]


@pytest.mark.parametrize(("error", "words"), [
    (FileNotFoundError(2, "No usable temporary directory found in ['/tmp']"), "TMPDIR"),
    (DataError(first_line(UnicodeEncodeError("utf-8", "\udcff", 0, 1, "surrogates not allowed"))), "rename it"),
])  # fmt: skip
def test_what_libraries_say_of_the_system_is_in_our_words(error: Exception, words: str) -> None:
    assert words in cli._line(error) and "[" not in cli._line(error)


def test_without_a_display_the_window_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    if sys.platform.startswith("linux"):
        assert "headless" in fails(capsys, "demo")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["plan", "s.qwb", "--bit-per-weight=4"], "workbench plan: there is no argument '--bit-per-weight=4'; the"),
        (["inspect", "a", "b"], "workbench inspect: there is no argument 'b'; see workbench inspect --help"),
        (["--colour"], "workbench: there is no argument '--colour'; see workbench --help"),
    ],
)  # fmt: skip
def test_an_unknown_argument_is_named_in_one_line(
    words: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole usage of the program stood before it, without the command's name."""
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith(line) and error.count("\n") == 1


@pytest.mark.parametrize(("word", "closest"), [
    ("inspekt", "inspect"), ("sensitvity", "sensitivity"), ("S.qwb", ""),
    ("some/model-1B", "hf download some/model-1B"),
])  # fmt: skip
def test_an_unknown_command_is_named_with_the_closest_ones(
    word: str, closest: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(launch, "open_window", lambda path, **how: pytest.fail(f"the window opens {path}"))
    assert main([word]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and word in captured.err and closest in captured.err
    assert len(captured.err.strip().splitlines()) == 1


def test_a_folder_that_was_removed_is_one_line(tmp_path: Path) -> None:
    """MKL would end the process in its own words."""
    (tmp_path / "gone").mkdir()
    place, command = tmp_path / "gone", f"exec {sys.executable} -P -m workbench inspect {MODEL}"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, map(os.path.abspath, sys.path)))}
    code = f"cd {place} && rmdir {place} && {command}"
    ended = subprocess.run(["sh", "-c", code], capture_output=True, text=True, env=environment)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        "workbench: the current folder has been removed; change to another and try again"
    )


def test_a_session_is_not_a_model_and_the_message_says_what_it_is(
    scored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "S.qwb is an HDF5 file, such as a session; expected " in fails(capsys, "inspect", str(scored))


@pytest.mark.parametrize("words", [[], ["gui"], ["S.qwb"], ["a-model"], ["demo:language-model"], ["demo"]])
def test_the_exit_code_of_the_window_is_returned(
    words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "S.qwb").touch()
    (tmp_path / "a-model").mkdir()
    monkeypatch.chdir(tmp_path)
    opened: list[str | None] = []
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setattr(app, "run", lambda path, **how: opened.append(path) or 3)
    assert main(words) == 3
    path = {"gui": None, "demo": "demo:language-model"}.get(words[0], words[0]) if words else None
    assert opened == [path]


@pytest.mark.parametrize("name", ["a" * 300, "~nobody-at-all/x", "loop", "b/" * 3000, "\udcff"], ids=ascii)
@pytest.mark.parametrize("words", [
    ("info", "NAME"), ("repair", "NAME", "--out", "r.qwb"), ("calibrate", "NAME", "--out", "s.qwb"),
    ("calibrate", MODEL, "--data", "NAME", "--out", "s.qwb"), ("calibrate", MODEL, "--data", TEXT, "--out", "NAME/s"),
], ids=" ".join)  # fmt: skip
def test_a_path_that_can_be_none_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Sequence[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    line = fails(capsys, *(name if word == "NAME" else word.replace("NAME", name) for word in words))
    assert "Errno" not in line and os.listdir() == ["loop"]


@pytest.fixture
def refused(scored: Path, tmp_path: Path) -> dict[str, str]:
    """Return paths to which no file can be written, by why."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "read-only.qwb").write_bytes(scored.read_bytes())
    (tmp_path / "read-only.qwb").chmod(0o444)
    os.mkfifo(tmp_path / "pipe")
    return {
        "there is no folder": str(tmp_path / "missing" / "s.qwb"), "it is a folder": str(tmp_path / "folder"),
        "the file is read-only": str(tmp_path / "read-only.qwb"), "it is a pipe": str(tmp_path / "pipe"),
        "File name too long": str(tmp_path / ("a" * 300)),
    }  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ("calibrate", "missing-model", "--data", "missing-data", "--out", "OUT"),
        ("sensitivity", "S", "--metric", "measured-kl", "--out", "OUT"),
        ("plan", "S", "--uniform", "int4", "--out", "OUT"),
    ],
    ids=lambda words: words[0],
)  # fmt: skip
def test_where_a_result_cannot_go_is_told_before_the_work(
    capsys: pytest.CaptureFixture[str], scored: Path, refused: dict[str, str], words: Sequence[str]
) -> None:
    """It would be lost after hours."""
    before = scored.read_bytes()
    for reason, out in refused.items():
        assert reason in fails(capsys, *({"S": str(scored), "OUT": out}.get(word, word) for word in words))
    assert scored.read_bytes() == before


def test_a_session_that_cannot_be_replaced_is_told_before_the_work(
    capsys: pytest.CaptureFixture[str], refused: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = refused["the file is read-only"]
    for words in (("evaluate", session), ("sensitivity", session), ("refine", session), ("bench", session)):
        assert "the file is read-only" in fails(capsys, *words)
    Path(session).chmod(0o644)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "the folder is read-only" in fails(capsys, "evaluate", session)


@pytest.mark.parametrize("command", ["calibrate", "sensitivity"])
def test_a_result_that_could_not_be_saved_is_not_computed_again(
    scored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """The disk may have become full meanwhile."""
    from workbench.measurement import partial_results

    monkeypatch.setenv("WORKBENCH_CACHE_FOLDER", str(tmp_path / "cache"))
    monkeypatch.setattr(partial_results, "FIRST", 0.0)
    monkeypatch.setattr(partial_results, "EVERY", 0.0)
    monkeypatch.setattr(partial_results, "SHARE", 0)
    out = tmp_path / "o.qwb"
    words = {
        "calibrate": ["calibrate", MODEL, "--data", TEXT, "--samples", "8", "--batch-size", "2", "--out", str(out)],
        "sensitivity": ["sensitivity", str(scored), "--metric", "measured-kl", "--schemes", "int4", "--samples", "2",
                        "--out", str(out)],
    }[command]  # fmt: skip
    with monkeypatch.context() as full:
        full.setattr(wb.Session, "save", lambda *_: (_ for _ in ()).throw(SessionError("the disk is full")))
        assert main([*words, "--quiet"]) == 1
        assert "the disk is full" in capsys.readouterr().err
    assert main([*words, "--quiet"]) == 0
    assert any("an interrupted run was found" in note for note in wb.Session.load(out).notes)

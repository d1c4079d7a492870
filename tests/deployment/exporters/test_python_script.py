"""The replay script: readable, without surprises in its strings, and it runs."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.deployment.exporters.models import plan_of, quantized, tensor_model
from workbench.deployment.exporters import exporter
from workbench.deployment.exporters.python_script import script
from workbench.models.sources import open_model
from workbench.planning.plan import Assignment, Plan, Rule
from workbench.progress import silent
from workbench.quantization.quantize import quantize

REPOSITORY = Path(__file__).parents[3]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONWARNINGS": "error"}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    tensors = {"a.weight": torch.randn(32, 64), "b.weight": torch.randn(32, 64), "a.bias": torch.randn(32)}
    save_file(tensors, tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def test_the_script_writes_the_same_file(weights: Path, tmp_path: Path) -> None:
    model = open_model(weights)
    named = Plan(name="a 'plan' \"\\ 100 % $x", model="it's", fingerprint=model.summary.fingerprint)
    plan = named.assign([model.summary.layers[0].name, "*"], weights="int4-g32-asym")
    result = quantize(model, plan)
    exporter("script").export(result, None, tmp_path / "replay.py", silent)
    exporter("safetensors").export(result, model, tmp_path / "direct.safetensors", silent)
    completed = run(str(tmp_path / "replay.py"), "--out", str(tmp_path / "replayed.safetensors"))
    assert completed.returncode == 0, completed.stderr
    assert "quantized 2 tensors" in completed.stdout
    direct, replayed = load_file(tmp_path / "direct.safetensors"), load_file(tmp_path / "replayed.safetensors")
    assert direct.keys() == replayed.keys()
    assert all(torch.equal(direct[name], replayed[name]) for name in direct)
    assert (tmp_path / "direct.safetensors").read_bytes() == (tmp_path / "replayed.safetensors").read_bytes()
    assert "--calibrate" in run(str(tmp_path / "replay.py"), "--help").stdout


@pytest.mark.parametrize("arguments", [(), ("-P",)])
def test_a_script_with_the_name_of_a_library_is_not_taken_for_it(
    arguments: tuple[str, ...], weights: Path, tmp_path: Path
) -> None:
    result = quantize(open_model(weights), Plan().assign(["a"], weights="q8_0", algorithm="rtn"))
    for name in ("gguf.py", "torch.py", "argparse.py"):
        exporter("script").export(result, None, tmp_path / name, silent)
    for name in ("gguf.py", "torch.py"):
        out = tmp_path / f"{name}.safetensors"
        completed = run(*arguments, str(tmp_path / name), "--out", str(out))
        assert completed.returncode == 0, completed.stderr
        assert "quantized 1 tensor" in completed.stdout and out.is_file()


def test_the_script_evaluates(tmp_path: Path) -> None:
    model = open_model("demo:digits-classifier")
    exporter("script").export(
        quantize(model, Plan.uniform(model.summary.layers, "int4-g32-asym")), None, tmp_path / "replay.py", silent
    )
    data = "demo:digits-classifier"
    completed = run(str(tmp_path / "replay.py"), "--data", data, "--calibrate", data, "--samples", "32")
    assert completed.returncode == 0, completed.stderr
    assert "bits per weight" in completed.stdout and "kl: " in completed.stdout


def test_another_model_is_refused(weights: Path, tmp_path: Path) -> None:
    model = open_model(weights)
    exporter("script").export(quantize(model, Plan()), None, tmp_path / "replay.py", silent)
    save_file({"a.weight": torch.ones(32, 64)}, weights)
    completed = run(str(tmp_path / "replay.py"))
    assert completed.returncode == 2 and "the plan is for sha256:" in completed.stderr


@pytest.mark.parametrize(("given", "message"), [
    (("--out", "m.gguf", "--to", "zzz"), "no exporter is called 'zzz'"), (("--model", "nowhere"), "does not exist"),
    (("--data", "demo:digits-classifier"), "cannot be run"),
])  # fmt: skip
def test_what_it_cannot_do_is_one_sentence(given: tuple[str, ...], message: str, weights: Path, tmp_path: Path) -> None:
    model = open_model(weights)
    exporter("script").export(quantize(model, Plan()), None, tmp_path / "replay.py", silent)
    completed = run(str(tmp_path / "replay.py"), *given)
    assert completed.returncode == 1 and message in completed.stderr
    assert completed.stderr.startswith("replay: ") and completed.stderr.count("\n") == 1


def test_hostile_names_stay_strings(tmp_path: Path) -> None:
    model = tensor_model()
    rules = (
        Rule(pattern='re:.*"""\'; import os #\n', assignment=Assignment(weights="int8-channel", inputs="int8-tensor")),
        Rule(pattern="\ud800 %s {x} $y", assignment=Assignment()),
    )
    text = script(Plan(rules=rules, name='"""\nraise SystemExit(1)\n"""'), model.summary, '""".py')
    tree = ast.parse(text)
    assert not [node for node in tree.body if isinstance(node, ast.Raise)]
    rows = next(
        ast.literal_eval(n.value) for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "RULES"
    )
    assert [row[0] for row in rows] == [rule.pattern for rule in rules]
    assert "which the plan's static input schemes need" in text


def test_uses_the_public_interface_only(tmp_path: Path) -> None:
    model = tensor_model()
    exporter("script").export(quantized(model, plan_of(odd="int4-g32")), None, tmp_path / "r.py", silent)
    tree = ast.parse((tmp_path / "r.py").read_text(encoding="utf-8"))
    modules = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert modules == {"argparse", "sys", "workbench"}
    import workbench

    used = {
        node.attr for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "wb"
    }  # fmt: skip
    assert used <= set(workbench.__all__)

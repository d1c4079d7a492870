"""Learning as a step of the job: what was evaluated is what is exported, and trained weights leave as a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import workbench as wb
from workbench.cli import main
from workbench.errors import DataError, ExportError, MissingResultError
from workbench.measurement.evaluate import evaluate
from workbench.models.model import Model
from workbench.planning.plan import LEARNED, Plan
from workbench.quantization.learning.loop import LearnOptions
from workbench.session.session import Session
from workbench.steps import session_data
from workbench.steps.train import TRAIN, TrainOptions

Q, DOWN = "model.layers.0.self_attn.q_proj", "model.layers.0.mlp.down_proj"


@pytest.fixture(scope="module")
def model(llama: Path) -> Model:
    return wb.open(llama)


@pytest.fixture(scope="module")
def session(model: Model, tokens: Path) -> Session:
    calibrated = wb.calibrate(model, tokens, batch_size=4)
    plan = calibrated.plan.assign([Q, DOWN], weights="int2-g16-asym", algorithm=LEARNED)
    return replace(calibrated, plan=plan)


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = {**LearnOptions.__init__.__kwdefaults__, "steps": 12, "rate": 0.1}
    monkeypatch.setattr(LearnOptions.__init__, "__kwdefaults__", defaults)


def test_what_was_evaluated_is_what_is_exported(model: Model, session: Session, tmp_path: Path) -> None:
    evaluation = wb.evaluate(session, model=model)
    out = tmp_path / "out.safetensors"
    wb.export(session, "state-dict", out, model=model)
    written = load_file(out)
    quantized = wb.quantize(model, session.plan, session=session)
    for name in (Q, DOWN):
        assert torch.equal(written[f"{name}.weight"], quantized.bind(model).weight(name))
    view = model.with_weights({name: written[f"{name}.weight"] for name in (Q, DOWN)})
    data = session_data.for_evaluation(model, session, None, samples=None, seed=0)
    again = evaluate(model, view, data)["kl"]
    assert again.value == evaluation.metrics["kl"].value > 0


def test_learning_needs_the_calibration(model: Model, session: Session, tokens: Path, tmp_path: Path) -> None:
    bare = replace(wb.start(model), plan=session.plan)
    with pytest.raises(MissingResultError, match="calibrate"):
        wb.quantize(model, bare.plan, session=bare)
    assert session.calibration is not None
    changed = replace(session, calibration=replace(session.calibration, content_hash="sha256:other"))
    with pytest.raises(DataError, match="has changed"):
        wb.quantize(model, session.plan, session=changed)


def test_trained_weights_are_written_and_the_plan_is_used(model: Model, session: Session, tmp_path: Path) -> None:
    out = tmp_path / "trained.safetensors"
    paths = TRAIN(session, TrainOptions(kind="state-dict", out=str(out), steps=6), model=model)
    assert paths == (str(out),) and [file.name for file in tmp_path.iterdir()] == [out.name], "no checkpoint is left"
    expected = wb.train(session, model=model, steps=6).bind(model)
    written = load_file(out)
    assert torch.equal(written[f"{Q}.weight"], expected.weight(Q))
    assert not torch.equal(written[f"{Q}.weight"], model.weight(Q))
    with pytest.raises(ExportError, match="holds no weights"):
        TRAIN(session, TrainOptions(kind="plan", out=str(tmp_path / "plan.json"), steps=6), model=model)


def test_the_command_trains_and_goes_on_from_its_checkpoint(session: Session, tmp_path: Path) -> None:
    saved, out, file = tmp_path / "s.qwb", tmp_path / "t.safetensors", tmp_path / "run.npz"
    session.save(saved)
    plan = Plan.uniform([layer for layer in session.model.layers if layer.name == Q], "int3-g16-asym")
    plan.save(tmp_path / "plan.json")
    command = ["train", str(saved), "--plan", str(tmp_path / "plan.json"), "--steps", "3", "--to", "state-dict"]
    assert main([*command, "--out", str(out), "--checkpoint", str(file)]) == 0
    first = out.read_bytes()
    out.unlink()
    assert main([*command, "--out", str(out), "--checkpoint", str(file)]) == 0
    assert out.read_bytes() == first

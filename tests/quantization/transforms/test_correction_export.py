"""What is evaluated is what is written, on the bundled classifier: norms folded, layers equalized, means corrected."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import workbench as wb
from workbench.deployment.exporters import exporter
from workbench.deployment.exporters.packed_safetensors import read_packed
from workbench.models.data.datasets import open_dataset
from workbench.planning.plan import Plan
from workbench.planning.totals import plan_totals
from workbench.progress import silent

DIGITS = "demo:digits-classifier"


@pytest.fixture(scope="module")
def calibrated():
    model = wb.open(DIGITS)
    return model, wb.calibrate(model, DIGITS, samples=64)


def plan_for(model, *transforms, scheme="int3-channel"):
    stored = [layer for layer in model.summary.stored if layer.name != "deep.0"]  # one stays as it is, rewritten
    return replace(Plan.uniform(stored, scheme), transforms=transforms, fingerprint=model.summary.fingerprint)


@pytest.mark.parametrize(
    "names",
    [
        ("fold-norms", "equalize", "bias-correction"), ("equalize", "bias-correction", "norm-reestimation"),
        ("norm-reestimation",),
    ],
)  # fmt: skip
@torch.no_grad()
def test_the_files_compute_what_was_evaluated(calibrated, names, tmp_path):
    model, session = calibrated
    with torch.enable_grad():
        result = wb.quantize(model, plan_for(model, *names), session=session)
    batch = next(open_dataset(DIGITS, model, split="evaluation", samples=32).batches(32))
    evaluated = result.bind(model).run(batch)
    assert not result.notes and not torch.allclose(model.run(batch), evaluated, rtol=1e-2)

    from safetensors.torch import load_file

    exporter("state-dict").export(result, model, tmp_path / "state.safetensors", silent)
    written = load_file(tmp_path / "state.safetensors")
    network = model.body.network
    inputs = model.inputs.preprocess(batch["inputs"]) if batch["inputs"].dtype == torch.uint8 else batch["inputs"]
    names_of = {name for name, _ in (*network.named_parameters(), *network.named_buffers())}
    assert set(written) == names_of
    torch.testing.assert_close(torch.func.functional_call(network, written, (inputs,)), evaluated, rtol=0, atol=0)

    exporter("safetensors").export(result, model, tmp_path / "packed.safetensors", silent)
    packed = read_packed(tmp_path / "packed.safetensors")
    view = model.with_others({t.name: torch.tensor(packed[t.name]) for t in model.summary.others}).with_weights(
        {layer.name: torch.tensor(packed[layer.parameter]).reshape(layer.matrix) for layer in model.summary.stored}
    )
    assert torch.equal(view.run(batch), evaluated)
    total = sum(t.nbytes for t in model.summary.others) + sum(each.nbytes for each in result.tensors.values())
    total += model.summary.by_name["deep.0"].nbytes
    assert total == plan_totals(model.summary, result.plan).nbytes


def test_the_replay_script_carries_the_names(calibrated, tmp_path):
    model, session = calibrated
    plan = plan_for(model, "fold-norms", "bias-correction")
    wb.export(session, "script", tmp_path / "replay.py", plan=plan, model=model)
    text = (tmp_path / "replay.py").read_text()
    assert "TRANSFORMS = ('fold-norms', 'bias-correction')" in text and "which the plan's corrections need" in text


def test_corrections_win_on_the_classifier(calibrated):
    model, session = calibrated
    kl = {
        names: wb.evaluate(
            session, plan_for(model, *names, scheme="int4-tensor"), model=model, samples=200
        ).metrics["kl"].value
        for names in ((), ("equalize",), ("bias-correction",), ("norm-reestimation",))
    }  # fmt: skip
    plain = kl[()]
    assert kl["equalize",] < 0.7 * plain and kl["bias-correction",] < 0.6 * plain
    assert kl["norm-reestimation",] < 0.3 * plain

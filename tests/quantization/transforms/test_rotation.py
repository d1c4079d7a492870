"""What rotation is for, on a trained Llama that has outlier channels as large language models do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.quantization.transforms.networks import Gated, language_model, llama_with_outliers, sentences, with_outliers
from workbench.measurement.calibrate import calibrate
from workbench.measurement.evaluate import evaluate
from workbench.measurement.paired import between
from workbench.models.data.datasets import Dataset, open_dataset
from workbench.models.execution.network import NetworkModel
from workbench.models.sources import open_model
from workbench.models.summary import quantizable
from workbench.planning.plan import Plan
from workbench.quantization.quantize import quantize
from workbench.quantization.transforms.apply import Transformed, transform
from workbench.session.calibrated_ranges import all_ranges, ranges_in_force

DEMO = Path(__file__).parents[3] / "resources" / "demo"

Case = tuple[NetworkModel, Dataset, Dataset]


@pytest.fixture(scope="module")
def case() -> Case:
    """Return the bundled language model, two of 256 channels 64 times as large behind each norm, and both texts."""
    plain = open_model(DEMO / "language-model")
    assert isinstance(plain, NetworkModel)
    model = llama_with_outliers(plain)
    data, held_out = (
        open_dataset(DEMO / "text" / f"{split}.txt", model, samples=8, sequence_length=64)
        for split in ("calibration", "evaluation")
    )
    batch = next(held_out.batches(4))
    with torch.no_grad():
        exact, result = plain.run(batch), model.run(batch)
    assert float((result - exact).abs().max()) < 1e-4 * float(exact.abs().max())
    return model, data, held_out


def four_bits(model: NetworkModel, inputs: str, algorithm: str = "rtn") -> Plan:
    names: Sequence[str] = [layer.name for layer in quantizable(model.summary.layers)]
    return Plan().assign(names, weights="int4-channel", inputs=inputs, algorithm=algorithm)


@pytest.mark.parametrize("inputs, algorithm, factor", [("int8-token", "rtn", 4), ("int8-tensor", "rtn-clip", 15)])
def test_rotation_wins_at_four_bits_where_channels_are_outliers(
    case: Case, inputs: str, algorithm: str, factor: float
) -> None:
    model, data, held_out = case
    plain = four_bits(model, inputs, algorithm)
    result = calibrate(model, data, curvature=False)
    ranges = ranges_in_force(model.summary, plain, all_ranges(result.statistics), {})
    before, after = (
        evaluate(model, quantize(model, plan, data=data, ranges=ranges).bind(model), held_out)["kl"]
        for plan in (plain, replace(plain, transforms=("rotation",)))
    )
    assert after.value < before.value / factor and between(after, before).resolved


def test_rotation_flattens_the_inputs_and_leaves_the_outputs(case: Case) -> None:
    model, data, _ = case
    transformed = transform(model, replace(four_bits(model, "int8-tensor"), transforms=("rotation",)), data=data)
    assert transformed.deviation < 1e-5
    before, after = (calibrate(each, data, curvature=False).statistics for each in (model, transformed.model))
    for layer in ("model.layers.0.self_attn.q_proj", "model.layers.3.mlp.up_proj"):
        assert after[layer, "input"].absmax < before[layer, "input"].absmax / 30


def held_down(factor: float) -> NetworkModel:
    """Return a model with large channels in its stream, which every norm makes ordinary."""
    model = language_model(Gated)
    channels = [1, 6]
    ids, inputs = model.weight("ids").clone(), {}
    ids[:, channels] *= factor
    for name in ("body.0.one.gain", "body.0.two.gain", "body.1.one.gain", "body.1.two.gain", "last.gain"):
        inputs[name] = model.other(name).clone()
        inputs[name][channels] /= factor**2 if name == "last.gain" else factor
    return model.with_others(inputs).with_weights({"ids": ids})


def rotated(model: NetworkModel, name: str) -> Transformed:
    plan = replace(four_bits(model, "int8-token"), transforms=(name,))
    return transform(model, plan, curvature=calibrate(model, sentences()).curvature, data=sentences())


def test_the_stream_is_rotated_where_that_is_predicted_to_gain() -> None:
    done = rotated(with_outliers(language_model(Gated), factor=60.0), "rotation")
    stream = done.report[0]
    assert stream.before is not None and stream.after is not None and stream.after < stream.before / 2
    assert not done.notes and "body.0.one.gain" in done.changes.others


def test_a_stream_that_would_lose_is_left_alone_unless_a_seed_asks_for_it() -> None:
    model = held_down(60.0)
    left, forced = rotated(model, "rotation"), rotated(model, "rotation-0")
    (note,) = left.notes
    assert note.startswith("rotation left the residual stream as it is: its rotation raises the predicted loss")
    assert "(rotation-0 rotates it" in note and "body.0.one.gain" not in left.changes.others
    assert ("keeps tied weights tied" in note) == bool(left.changes.untied)
    stream = forced.report[0]
    assert stream.before is not None and stream.after is not None and stream.after > 1.5 * stream.before
    assert "body.0.one.gain" in forced.changes.others and forced.notes[0].startswith("rotation-0: its rotation raises")
    assert left.changes.untied == forced.changes.untied

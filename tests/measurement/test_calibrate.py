"""Statistics and curvature against plain autograd; order, padding, NaN and layers out of reach."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

from tests.models.networks import (
    Decoder,
    Rows,
    convolutions,
    decoder,
    images,
    model_of,
    recurrent,
    sample_gradients,
    sequences,
    tokens,
)
from tests.numerics.statistics.same import same
from tests.zoo.architectures import save as save_tiny
from workbench.errors import CancelledError, DataError
from workbench.measurement import calibrate as calibrate_module
from workbench.measurement.calibrate import calibrate, weight_statistics
from workbench.measurement.second_moments import SecondMoments
from workbench.models.layer import LayerKind
from workbench.models.sources import open_model
from workbench.models.summary import OutputKind
from workbench.numerics.statistics.observe import observe_tokens
from workbench.sensitivity.score import score


def tapped(model, data, layer):
    """Return all inputs and outputs of a layer in one batch."""
    result = []
    with torch.no_grad():
        for batch in data.batches(len(data)):
            model.run(batch, tap=lambda name, x, y: result.append((x, y)), layers=(layer,))
    return result[0]


def test_statistics_are_those_of_all_inputs_and_outputs():
    model, data = decoder(), tokens()
    result = calibrate(model, data, batch_size=3)
    x, y = tapped(model, data, "up")
    for tap, tensor in (("input", x), ("output", y)):
        observed = result.statistics["up", tap]
        assert observed.count == tensor.numel()
        assert observed.minimum == pytest.approx(float(tensor.min()), rel=1e-6)
        assert observed.maximum == pytest.approx(float(tensor.max()), rel=1e-6)
        assert observed.mean == pytest.approx(float(tensor.mean()), abs=1e-6)
        absmax = tensor.abs().amax(dim=(0, 1)).numpy()
        np.testing.assert_allclose(observed.channel_absmax, absmax, rtol=1e-5)
    assert ("embed", "output") in result.statistics and ("embed", "input") not in result.statistics
    assert result.samples == 10 and result.notes == ()


def test_convolutions_have_their_channels_on_axis_one():
    result = calibrate(convolutions(), images(), batch_size=4, curvature=False)
    assert result.statistics["first", "input"].channels == 2
    assert result.statistics["grouped", "output"].channels == 6
    assert result.curvature == {}


@pytest.mark.parametrize("name", ["value", "up", "down"])
def test_rows_are_the_mean_squared_gradient_of_whole_samples(name):
    model, data = decoder(), tokens()
    curvature = calibrate(model, data, batch_size=4, seed=5).curvature[name]
    squares = sample_gradients(model, data, name, 4, 5).double().square().sum(dim=0) / 70
    predicted = curvature.rows[:, None] * curvature.columns[None]
    np.testing.assert_allclose(predicted.sum(axis=1), squares.sum(dim=1).numpy(), rtol=1e-4)
    x, _ = tapped(model, data, name)
    moment = torch.einsum("nti,ntj->ij", x.double(), x.double()) / 70
    np.testing.assert_allclose(curvature.columns, moment.diagonal().numpy(), rtol=1e-4)
    assert curvature.count == 70
    assert curvature.by_loss is not None and curvature.by_loss.sum() == pytest.approx(curvature.columns.sum())
    np.testing.assert_array_equal(curvature.weighing, curvature.by_loss[None])


@pytest.mark.parametrize("name", ["first", "grouped", "back", "line", "out"])
def test_convolutions_have_the_row_and_column_sums_of_the_squared_gradient(name):
    model, data = convolutions(), images()
    curvature = calibrate(model, data, batch_size=4, seed=5).curvature[name]
    squares = sample_gradients(model, data, name, 4, 5).double().square().sum(dim=0) / 10
    predicted = curvature.rows[:, None] * curvature.columns[None]
    np.testing.assert_allclose(predicted.sum(axis=1), squares.sum(dim=1).numpy(), rtol=1e-3)
    if name != "out":
        np.testing.assert_allclose(predicted.sum(axis=0), squares.sum(dim=0).numpy(), rtol=1e-3)


def test_a_tied_weight_has_the_curvature_of_both_its_uses():
    model, data = decoder(), tokens()
    result = calibrate(model, data, batch_size=4, seed=5).curvature
    assert result["embed"].rows.shape == result["head"].rows.shape == (13,)
    untied = Decoder()
    untied.load_state_dict(model.body.network.state_dict())
    untied.head.weight = torch.nn.Parameter(untied.embed.weight.detach().clone())
    apart = model_of(untied, OutputKind.TOKEN_LOGITS)
    for name in ("embed", "head"):
        squares = sample_gradients(apart, data, name, 4, 5).double().square().sum(dim=0) / 70
        predicted = result[name].rows[:, None] * result[name].columns[None]
        np.testing.assert_allclose(predicted.sum(axis=1), squares.sum(dim=1).numpy(), rtol=1e-4, atol=1e-12)


def test_the_same_seed_gives_the_same_bits():
    first, second = (calibrate(decoder(), tokens(), batch_size=4, seed=3) for _ in range(2))
    other = calibrate(decoder(), tokens(), batch_size=4, seed=4)
    for name, curvature in first.curvature.items():
        assert np.array_equal(curvature.rows, second.curvature[name].rows)
    assert not np.array_equal(first.curvature["up"].rows, other.curvature["up"].rows)
    assert all(same(first.statistics[key], second.statistics[key]) for key in first.statistics)


def test_the_model_is_left_as_it_was():
    model = decoder()
    before = {name: tensor.clone() for name, tensor in model.body.network.state_dict().items()}
    calibrate(model, tokens())
    assert all(torch.equal(before[name], tensor) for name, tensor in model.body.network.state_dict().items())
    assert all(parameter.grad is None for parameter in model.body.network.parameters())


def test_padding_is_not_observed():
    class Padded(Rows):
        pass

    ids = tokens().tensors["input_ids"]
    mask = torch.ones_like(ids)
    mask[:, 5:] = 0
    result = calibrate(decoder(), Padded(input_ids=ids, attention_mask=mask), batch_size=4)
    assert result.statistics["up", "input"].count == 10 * 5 * 8
    assert result.curvature["up"].count == 50


def test_frames_of_padded_sounds_are_not_observed(tmp_path):
    """The network counts its frames itself; within, a frame is real where the points that it begins with are."""
    save_tiny(tmp_path, "Wav2Vec2ForCTC", feat_extract_norm="layer")
    model, lengths = open_model(tmp_path), [1600, 810]
    mask = (torch.arange(1600) < torch.tensor(lengths)[:, None]).long()
    data = Rows(inputs=torch.randn(2, 1600, generator=torch.Generator().manual_seed(0)) * mask, attention_mask=mask)
    seen = calibrate(model, data, batch_size=2).statistics
    frames = model.body.network._get_feat_extract_output_lengths(torch.tensor(lengths)).tolist()
    parts = [-(-length // 5) for length in lengths]
    for layer, counts in (("wav2vec2.feature_extractor.conv_layers.1.conv", parts), ("lm_head", frames)):
        x, _ = tapped(model, data, layer)
        x = x.transpose(1, 2) if counts is parts else x
        real = torch.cat([each[:count] for each, count in zip(x, counts, strict=True)])
        assert seen[layer, "input"].count == real.numel() < x.numel()
        np.testing.assert_allclose(seen[layer, "input"].channel_absmax, real.abs().amax(dim=0), rtol=1e-5)


def test_a_convolution_over_as_many_tokens_as_channels_is_observed_by_channel():
    class Convolved(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.mix, self.out = nn.Embedding(9, 6), nn.Conv1d(6, 6, 3, padding=1), nn.Linear(6, 9)

        def forward(self, input_ids, attention_mask=None):
            return self.out(self.mix(self.embed(input_ids).transpose(1, 2)).transpose(1, 2))

    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]])
    data = Rows(input_ids=torch.arange(12).reshape(2, 6) % 9, attention_mask=mask)
    model = model_of(Convolved(), OutputKind.TOKEN_LOGITS)
    x, _ = tapped(model, data, "mix")
    seen = calibrate(model, data, batch_size=2).statistics["mix", "input"]
    assert seen.count == 9 * 6
    np.testing.assert_allclose(seen.channel_absmax, x.transpose(1, 2)[mask == 1].abs().amax(dim=0), rtol=1e-5)


def test_tensors_are_not_held_longer_than_the_network_wants_them(monkeypatch):
    collected = []

    def look(tensor, axis):
        alive.append(StorageWeakRef(tensor.untyped_storage()))
        collected.append(sum(not each.expired() for each in alive))
        return observe_tokens(tensor, axis)

    alive = []
    monkeypatch.setattr(calibrate_module, "observe_tokens", look)
    network = torch.nn.Sequential(*(m for _ in range(4) for m in (torch.nn.Linear(4, 4), torch.nn.ReLU())))
    data = Rows(inputs=torch.ones(6, 4))
    calibrate(model_of(network, OutputKind.CLASS_LOGITS), data, batch_size=6, curvature=False)
    assert collected == [1, 2, 2, 3, 2, 3, 2, 3]  # the layer's input and output, and the data


@pytest.mark.parametrize("curvature", [False, True])
def test_what_layers_share_is_observed_once_and_anew_after_a_change_in_place(monkeypatch, curvature):
    class Shared(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.third = (torch.nn.Linear(4, 4) for _ in range(3))

        def forward(self, x):
            x = x.clone()
            y = self.first(x) + self.second(x)
            x = x * 100 if torch.is_grad_enabled() else x.mul_(100)
            return y + self.third(x)

    looked = []
    monkeypatch.setattr(calibrate_module, "observe_tokens", lambda *a: looked.append(a) or observe_tokens(*a))
    data = Rows(inputs=torch.randn(6, 4, generator=torch.Generator().manual_seed(0)))
    shared = model_of(Shared(), OutputKind.CLASS_LOGITS)
    result = calibrate(shared, data, batch_size=6, curvature=curvature).statistics
    assert len(looked) == 5  # three outputs, the input before and after
    assert result["first", "input"].counts is result["second", "input"].counts
    assert result["third", "input"].absmax == pytest.approx(100 * result["first", "input"].absmax)


def test_a_batch_with_nan_is_named_and_left_out():
    data = images()
    broken = Rows(**{name: tensor.clone() for name, tensor in data.tensors.items()})
    broken.tensors["inputs"][5, 0, 0, 0] = float("nan")
    rest = Rows(**{name: torch.cat([t[:4], t[8:]]) for name, t in data.tensors.items()})
    result, clean = calibrate(convolutions(), broken, batch_size=4), calibrate(convolutions(), rest, batch_size=4)
    assert result.samples == 6
    assert any("batch 2 was left out" in note and "the input of first" in note for note in result.notes)
    # labels are drawn by a sample's place, and gradients with them
    seen = {key: replace(each, costs=clean.statistics[key].costs) for key, each in result.statistics.items()}
    assert all(same(seen[key], clean.statistics[key]) for key in clean.statistics)


def test_only_nan_is_an_error():
    with pytest.raises(DataError, match="batch 1 was left out"):
        calibrate(convolutions(), Rows(inputs=torch.full((2, 2, 8, 8), torch.nan)))


def test_layers_that_no_data_reach_are_named():
    result = calibrate(recurrent(), sequences())
    assert any("never reached the layer unused" in note for note in result.notes)
    assert not any("lstm" in note for note in result.notes)
    assert "unused" not in result.curvature and "out" in result.curvature


class Shared(nn.Module):
    """A table of three names that runs under one of them, as T5's and BART's do, and one that does not run."""

    def __init__(self):
        super().__init__()
        self.shared, self.own, self.other = nn.Embedding(9, 8), nn.Embedding(9, 8), nn.Embedding(9, 8)
        self.third, self.out = nn.Embedding(9, 8), nn.Linear(8, 4)
        self.own.weight = self.third.weight = self.shared.weight

    def forward(self, ids):
        return self.out(self.own(ids).mean(1))


def test_a_layer_whose_weight_runs_under_another_name_was_reached():
    data = Rows(input_ids=torch.randint(0, 9, (6, 5), generator=torch.Generator().manual_seed(0)))
    result = calibrate(model_of(Shared(), OutputKind.CLASS_LOGITS), data)
    assert [note for note in result.notes if "never reached" in note] == [
        "the data never reached the layer other: nothing was observed of it"
    ]


class Choosing(nn.Module):
    """Two experts, of which the second is called with no rows."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.out = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, inputs):
        given = torch.zeros_like(inputs)
        large = inputs.sum(dim=-1) > -1e9
        for chosen, expert in ((large, self.first), (~large, self.second)):
            given = given.index_put((chosen.nonzero()[:, 0],), expert(inputs[chosen]))
        return self.out(given)


def test_a_layer_that_gets_no_rows_is_one_that_no_data_reach():
    model, data = model_of(Choosing(), OutputKind.CLASS_LOGITS), Rows(inputs=torch.randn(6, 8))
    result = calibrate(model, data)
    assert [note for note in result.notes if "never reached the layer second" in note]
    assert "second" not in result.curvature and not any(name == "second" for name, _ in result.statistics)
    for metric in ("predicted_kl", "measured_kl"):
        table = score(model, metric, ("int4-channel",), curvature=result.curvature, dataset=data)
        losses = dict(zip(table.layers, table.score[:, 0].tolist(), strict=True))
        assert np.isnan(losses.pop("second")) and min(losses.values()) > 0 and "second" not in table.unused


def test_empty_data_and_cancelling():
    with pytest.raises(DataError, match="no samples"):
        calibrate(decoder(), Rows(input_ids=torch.zeros(0, 4, dtype=torch.int64)))

    def cancel(fraction, text, partial=None):
        if fraction > 0.3:
            raise CancelledError("cancelled")

    with pytest.raises(CancelledError):
        calibrate(decoder(), tokens(), batch_size=2, progress=cancel)


def test_weight_statistics_count_nan_and_go_on():
    model = decoder()
    with torch.no_grad():
        model.body.network.up.weight[0, 0] = float("nan")
    result = weight_statistics(model)
    assert result["up", "weight"].non_finite == 1 and result["up", "weight"].count == 95
    assert result["head", "weight"] is result["embed", "weight"]
    assert result["down", "weight"].channels == 8


def test_an_output_without_an_axis_of_samples_is_refused():
    class Summed(Decoder):
        def forward(self, ids):
            return super().forward(ids).sum()

    with pytest.raises(DataError, match=r"an output of shape \(\) for a batch of 1"):
        calibrate(model_of(Summed(), OutputKind.EMBEDDING), tokens(), batch_size=4)


@pytest.mark.parametrize(
    ("make", "data"), [(decoder, tokens(7, 300)), (convolutions, images(7)), (recurrent, sequences(7))],
    ids=["tokens", "classes", "outputs"],
)  # fmt: skip
def test_results_are_those_of_any_batch_size(make, data):
    """A batch is cut where memory is short: each sample draws its own random numbers, wherever it runs."""
    model = make()
    whole = calibrate(model, data, batch_size=7, seed=3)
    assert whole.curvature
    for size in (1, 3):
        cut = calibrate(model, data, batch_size=size, seed=3)
        for name, exact in whole.curvature.items():
            np.testing.assert_allclose(cut.curvature[name].rows, exact.rows, rtol=1e-4, atol=1e-9 * exact.rows.max())
            np.testing.assert_allclose(cut.curvature[name].columns, exact.columns, rtol=1e-4)
    moments = [SecondMoments(model, data, whole.curvature, batch_size=size, seed=3) for size in (7, 2)]
    for name in whole.curvature if make is decoder else ():
        exact, cut = (each[name] for each in moments)
        for one, other in ((exact.full, cut.full), (exact.outputs, cut.outputs)):
            if one is not None:
                np.testing.assert_allclose(other, one, rtol=1e-3, atol=1e-5 * np.abs(one).max())


def test_parts_of_the_data_give_the_curvature_of_the_whole():
    model, data = decoder(), tokens(6)
    whole = calibrate(model, data, batch_size=3)
    parts = [
        calibrate(model, Rows(input_ids=data.tensors["input_ids"][start : start + 3]), first_sample=start)
        for start in (0, 3)
    ]
    for name, exact in whole.curvature.items():
        if model.summary.by_name[name].kind is LayerKind.LINEAR:
            lengths = [part.curvature[name].columns.sum() for part in parts]
            rows = [part.curvature[name].rows * length for part, length in zip(parts, lengths, strict=True)]
            mean = np.mean(rows, axis=0) / exact.columns.sum()
            np.testing.assert_allclose(mean, exact.rows, rtol=1e-4)

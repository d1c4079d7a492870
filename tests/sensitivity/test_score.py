"""Scores against plain autograd, naive loops and brute force; resuming, cancelling, NaN and layers out of reach."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tests.measurement.moments import whole_curvature
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
from workbench.errors import CancelledError, MissingResultError, ModelError, PlanError, SchemeError
from workbench.measurement.calibrate import calibrate
from workbench.measurement.units import HALF_SQUARED_DISTANCE
from workbench.models.summary import OutputKind
from workbench.numerics.formats import parse_scheme
from workbench.numerics.rounding.round_weight import round_weight
from workbench.sensitivity.checks import small_networks
from workbench.sensitivity.directional_losses import DRAWS
from workbench.sensitivity.predicted import Form, form_of
from workbench.sensitivity.score import score

SCHEMES = ("int3-g32-asym", "int4-channel", "int8-channel")


def rounded(model, name, scheme):
    return parse_scheme(scheme).quantize(model.weight(name), clip_search=True)


def test_weight_error_is_the_inverse_of_the_snr():
    model = decoder()
    table = score(model, "weight_error", SCHEMES)
    assert table.layers == ("embed", "value", "up", "down") and table.unit == "relative squared error"
    for name in table.layers:
        for scheme in SCHEMES:
            weight = model.weight(name).double()
            error = (rounded(model, name, scheme).double() - weight).square().sum() / weight.square().sum()
            assert table.of(name, scheme) == pytest.approx(float(error), rel=1e-9)


class Sharing(nn.Module):
    """Blocks of which the first ones put their keys where the later ones take them, as Gemma 3n's do."""

    class Block(nn.Module):
        def __init__(self, first):
            super().__init__()
            self.first, self.key, self.out = first, nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x, shared):
            if self.first:
                shared["keys"] = self.key(x)
            return x + self.out(torch.tanh(shared["keys"]))

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(13, 8), nn.Linear(8, 13)
        self.blocks = nn.ModuleList(self.Block(number == 0) for number in range(3))

    def forward(self, ids):
        x, shared = self.embed(ids), {}
        for block in self.blocks:
            x = block(x, shared)
        return self.head(x)


def test_blocks_that_hand_over_more_than_their_outputs_are_measured():
    torch.manual_seed(0)
    model, data = model_of(Sharing(), OutputKind.TOKEN_LOGITS), tokens()
    names = ["blocks.0.key", "blocks.0.out", "blocks.1.out", "blocks.2.out", "head"]
    table = score(model, "measured_kl", SCHEMES, dataset=data, batch_size=4, layers=names)
    with torch.no_grad():
        p = model.run(data.tensors).double().log_softmax(-1)
        for name in names:
            for scheme in SCHEMES:
                q = model.with_weights({name: rounded(model, name, scheme)}).run(data.tensors).double().log_softmax(-1)
                naive = float((p.exp() * (p - q)).sum(-1).mean())
                assert table.of(name, scheme) == pytest.approx(naive, rel=1e-4, abs=1e-9)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_a_scripted_part_is_measured():
    """It takes no hooks, so that runs begin at the start."""
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4))
    scripted = nn.Sequential(plain[0], torch.jit.script(nn.ReLU()), plain[2])
    tables = [score(model_of(net, OutputKind.EMBEDDING), "measured_kl", SCHEMES, dataset=sequences())
              for net in (plain, scripted)]  # fmt: skip
    np.testing.assert_allclose(tables[0].score, tables[1].score, rtol=1e-6)
    assert (tables[1].score > 0).all()


class Indexed(nn.Module):
    """Attention that sees the ``best`` positions by an indexer without gradients, as DeepSeek-V3.2's."""

    def __init__(self, best):
        super().__init__()
        self.best, self.embed, self.index = best, nn.Embedding(32, 8), nn.Linear(8, 8)
        self.up, self.head = nn.Linear(8, 16), nn.Linear(16, 32)

    def forward(self, ids):
        x = self.embed(ids)
        with torch.no_grad():
            chosen = (self.index(x) @ x.mT).topk(self.best, dim=-1).indices
            mask = torch.full((*ids.shape, ids.shape[1]), -torch.inf).scatter(-1, chosen, 0.0)
        return self.head(torch.relu(self.up((x @ x.mT + mask).softmax(-1) @ x)))


@pytest.mark.parametrize("best", [3, 7])
def test_a_layer_that_only_chooses_is_measured_or_said_to_choose_the_same(best):
    torch.manual_seed(0)
    model, data, notes = model_of(Indexed(best), OutputKind.TOKEN_LOGITS), tokens(), []
    curvature = calibrate(model, data).curvature
    how = {"dataset": data, "batch_size": 8}
    predicted = score(model, "predicted_kl", SCHEMES, curvature=curvature, notes=notes, **how)
    measured = score(model, "measured_kl", SCHEMES, **how)
    row = predicted.row["index"]
    assert np.isfinite(np.delete(predicted.score, row, axis=0)).all()
    if best == 3:
        np.testing.assert_array_equal(predicted.score[row], measured.score[row])
        assert (measured.score[row] > 0).all() and predicted.measured == ("index",)
        assert notes == ["measured, not predicted, since no gradient tells what it decides: index"]
    else:  # every position, whatever the scheme
        assert np.isnan(predicted.score[row]).all() and predicted.measured == ()
        assert len(notes) == 1 and notes[0].startswith("not scored: index, which only choose what others see, and on")


@pytest.mark.parametrize(
    ("metric", "unit"), [("measured_kl", HALF_SQUARED_DISTANCE), ("weight_error", "relative squared error")]
)
def test_losses_where_outputs_are_no_logits_are_distances(metric, unit):
    model = recurrent()
    table = score(model, metric, ("int8-channel",), dataset=None if metric == "weight_error" else sequences())
    assert table.unit == unit


def test_measured_kl_is_that_of_a_naive_loop():
    model, data = decoder(), tokens()
    table = score(model, "measured_kl", SCHEMES, dataset=data, batch_size=4)
    with torch.no_grad():
        p = model.run(data.tensors).double().log_softmax(-1)
        for name in table.layers:
            for scheme in SCHEMES:
                view = model.with_weights({name: rounded(model, name, scheme)})
                q = view.run(data.tensors).double().log_softmax(-1)
                naive = float((p.exp() * (p - q)).sum(-1).mean())
                assert table.of(name, scheme) == pytest.approx(naive, rel=1e-4, abs=1e-9)


def test_a_layer_that_the_output_does_not_depend_on_costs_nothing():
    table = score(recurrent(), "measured_kl", SCHEMES, dataset=sequences(), batch_size=5)
    assert (table.score[table.row["unused"]] == 0).all() and table.unused == ("unused",)
    others = np.delete(table.score, table.row["unused"], axis=0)
    assert np.isfinite(others).all() and (others > 0).all()


def test_a_network_that_mixes_its_samples_is_measured_whole():
    class Mixing(Decoder):
        """Adds the mean over the batch: three weights in one run would see each other."""

        def forward(self, ids):
            x = self.embed(ids)
            x = self.up(x) + self.up(x).mean(dim=0, keepdim=True)
            return self.head(self.down(torch.relu(x)))

    torch.manual_seed(0)
    model, data = model_of(Mixing(), OutputKind.TOKEN_LOGITS), tokens()
    table = score(model, "measured_kl", SCHEMES, dataset=data, batch_size=10, layers=["up", "down"])
    with torch.no_grad():
        p = model.run(data.tensors).double().log_softmax(-1)
        for name in table.layers:
            for scheme in SCHEMES:
                q = model.with_weights({name: rounded(model, name, scheme)}).run(data.tensors).double().log_softmax(-1)
                naive = float((p.exp() * (p - q)).sum(-1).mean())
                assert table.of(name, scheme) == pytest.approx(naive, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize(
    ("make", "data", "units"),
    [(convolutions, images(), 10), (recurrent, sequences(), 10)],
    ids=["convolutions", "recurrent"],
)
def test_the_directional_form_is_the_squared_product_with_each_samples_gradient(make, data, units, monkeypatch):
    monkeypatch.setattr(small_networks, "LAYERS", 0)  # whose cells are measured
    model, curvature = make(), {}
    table = score(model, "predicted_kl", SCHEMES, curvature=curvature, dataset=data, batch_size=4, seed=3)
    for name in table.layers:
        if name == "unused":
            assert (table.score[table.row[name]] == 0).all()
            continue
        gradients = sample_gradients(model, data, name, 4, 3, DRAWS).double()
        for scheme in SCHEMES:
            difference = (rounded(model, name, scheme) - model.weight(name)).double()
            expected = 0.5 * float((gradients * difference).sum(dim=(1, 2)).square().sum()) / units / DRAWS
            assert table.of(name, scheme) == pytest.approx(expected, rel=2e-3), (name, scheme)


@pytest.mark.parametrize("algorithm", ["rtn-weighted", "gptq"])
def test_errors_that_an_algorithm_correlates_are_predicted_with_the_whole_second_moment(algorithm):
    model, data = decoder(), tokens()
    curvature = whole_curvature(model, data)
    table = score(model, "predicted_kl", SCHEMES, curvature=curvature, algorithm=algorithm, layers=["up"])
    known = curvature["up"]
    for scheme in SCHEMES:
        values = round_weight("up", model.weight("up"), scheme, algorithm, known).values
        error = (values - model.weight("up")).double().numpy()
        energy = error @ known.full.astype(np.float64) @ error.T
        unit = np.sqrt(known.rows / known.outputs.diagonal())
        expected = 0.5 * float((energy * known.outputs * unit * unit[:, None]).sum())
        assert table.of("up", scheme) == pytest.approx(expected, rel=1e-4)
        assert table.of("up", scheme) != pytest.approx(0.5 * float(known.rows @ error**2 @ known.columns), rel=1e-3)


def test_the_kronecker_form_adds_both_uses_of_a_tied_weight():
    model, data = decoder(), tokens()
    curvature = calibrate(model, data).curvature
    both = score(model, "predicted_kl", SCHEMES, curvature=curvature)
    parts = [
        score(model, "predicted_kl", SCHEMES, curvature={"embed": curvature[name]}, layers=["embed"])
        for name in ("embed", "head")
    ]
    np.testing.assert_allclose(both.score[0], parts[0].score[0] + parts[1].score[0], rtol=1e-9)
    assert "head" not in both.row


def test_predictions_are_near_measured_losses():
    model, data = decoder(), tokens(400, 7)
    curvature = calibrate(model, data, batch_size=50).curvature
    schemes = ("int5-channel", "int6-channel", "int8-channel")
    predicted = score(model, "predicted_kl", schemes, curvature=curvature).score
    measured = score(model, "measured_kl", schemes, dataset=data, batch_size=50).score
    ratio = predicted / measured
    assert ratio.min() > 0.5 and ratio.max() < 2.0
    assert 0.75 < np.median(ratio) < 1.33


def test_predictions_for_convolutions_are_near_measured_losses():
    model, data = convolutions(), images(600)
    schemes = ("int5-channel", "int6-channel", "int8-channel")
    predicted = score(model, "predicted_kl", schemes, dataset=data, batch_size=50).score
    measured = score(model, "measured_kl", schemes, dataset=data, batch_size=50).score
    ratio = predicted / measured
    assert ratio.min() > 0.6 and ratio.max() < 1.6


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_table_that_is_also_the_head_is_predicted_with_both_uses(seed):
    model, data = decoder(seed), tokens(400, 7)
    schemes = ("int6-channel", "int8-channel")
    how = {"schemes": schemes, "dataset": data, "batch_size": 50, "layers": ["embed"]}
    predicted = score(model, "predicted_kl", curvature=calibrate(model, data, batch_size=50).curvature, **how).score
    ratio = predicted / score(model, "measured_kl", **how).score
    assert ratio.min() > 0.8 and ratio.max() < 1.25


@pytest.mark.parametrize("calibrated", [False, True])
def test_layers_whose_gradient_is_zero_are_measured(calibrated):
    class Gated(nn.Module):
        """A gate that is shut on all data, and a choice by argmax: no gradient reaches either."""

        def __init__(self):
            super().__init__()
            self.shut, self.chosen, self.out = nn.Linear(3, 8), nn.Linear(3, 8), nn.Linear(8, 4)
            nn.init.constant_(self.shut.bias, -100.0)

        def forward(self, x):
            picked = nn.functional.one_hot(self.chosen(x).argmax(-1), 8).float()
            return self.out(torch.relu(self.shut(x)) + picked).mean(dim=1)

    torch.manual_seed(0)
    model, data = model_of(Gated(), OutputKind.EMBEDDING), sequences(40)
    curvature, notes = calibrate(model, data).curvature if calibrated else {}, []
    predicted = score(model, "predicted_kl", SCHEMES, dataset=data, curvature=curvature, notes=notes)
    measured = score(model, "measured_kl", SCHEMES, dataset=data)
    assert np.isfinite(predicted.score).all()
    assert predicted.measured == ("shut", "chosen") and measured.measured == ()
    assert "measured, not predicted, since no gradient tells what it decides: shut, chosen" in notes
    again = score(model, "predicted_kl", (*SCHEMES, "int5-channel"), dataset=data, curvature=curvature,
                  previous=predicted)  # fmt: skip
    assert again.measured == predicted.measured and np.isfinite(again.score).all()
    assert (predicted.score[predicted.row["shut"]] == 0).all()
    assert predicted.unused == measured.unused == again.unused == ("shut",)  # data that open the gate would need it
    assert any("the same however shut is rounded" in note for note in notes)
    np.testing.assert_array_equal(predicted.score[predicted.row["chosen"]], measured.score[measured.row["chosen"]])
    assert predicted.of("chosen", SCHEMES[0]) > 0


def test_the_form_follows_the_kind_of_layer():
    summary = decoder().summary
    forms = {layer.name: form_of(summary, layer) for layer in summary.layers}
    assert forms.pop("embed") is forms.pop("head") is Form.DIRECTIONAL  # one weight, used twice
    assert set(forms.values()) == {Form.KRONECKER}
    assert {form_of(summary, layer, paired=True) for layer in summary.layers} == {Form.DIRECTIONAL}  # encoder-decoders
    assert {form_of(s, x) for s in (convolutions().summary,) for x in s.layers} == {Form.DIRECTIONAL}


def test_output_error_from_moments_equals_that_of_tapped_outputs():
    model, data = decoder(), tokens()
    curvature = whole_curvature(model, data, weighed=False)
    by_moment = score(model, "output_error", SCHEMES, curvature=curvature, layers=["value", "up", "down"])
    by_taps = score(model, "output_error", SCHEMES, dataset=data, layers=["value", "up", "down"])
    np.testing.assert_allclose(by_moment.score, by_taps.score, rtol=1e-3)


@pytest.mark.parametrize("metric", ["measured_kl", "predicted_kl", "weight_error", "output_error"])
def test_a_resumed_table_has_the_bits_of_an_uninterrupted_one(metric):
    model, data = convolutions(), images()
    curvature = calibrate(model, data).curvature
    whole = score(model, metric, SCHEMES, curvature=curvature, dataset=data, batch_size=4)
    saved = []

    def cancel(fraction, text, partial=None):
        if partial is not None:
            saved.append(partial)
            if len(saved) == 3:
                raise CancelledError("cancelled")

    with pytest.raises(CancelledError):
        score(model, metric, SCHEMES, curvature=curvature, dataset=data, batch_size=4, progress=cancel)
    assert np.isnan(saved[-1].score).any() and np.isfinite(saved[-1].score).any()
    resumed = score(model, metric, SCHEMES, curvature=curvature, dataset=data, batch_size=4, previous=saved[-1])
    assert resumed.score.tobytes() == whole.score.tobytes()
    if metric == "predicted_kl":
        assert resumed.directions.layers == whole.directions.layers
        assert resumed.directions.values.tobytes() == whole.directions.values.tobytes()


def test_a_table_of_other_data_is_not_kept():
    model, data = decoder(), tokens()
    other = score(model, "measured_kl", SCHEMES, dataset=data, seed=7)
    other.score[:] = 123.0
    assert (score(model, "measured_kl", SCHEMES, dataset=data, previous=other).score < 100).all()


def test_a_new_scheme_extends_a_table():
    model = decoder()
    first = score(model, "weight_error", SCHEMES[:2])
    first.score[0, 0] = 42.0
    both = score(model, "weight_error", SCHEMES, previous=first)
    assert both.of("embed", SCHEMES[0]) == 42.0 and np.isfinite(both.score).all()


@pytest.mark.parametrize("metric", ["measured_kl", "predicted_kl", "weight_error"])
def test_cells_that_are_left_out_stay_open_until_they_are_asked_for(metric):
    model, data = decoder(), tokens()
    curvature, omitted = calibrate(model, data).curvature, {"up": SCHEMES[:2], "down": SCHEMES}
    whole = score(model, metric, SCHEMES, curvature=curvature, dataset=data)
    part = score(model, metric, SCHEMES, curvature=curvature, dataset=data, omitted=omitted)
    expected = {(layer, scheme) for layer, schemes in omitted.items() for scheme in schemes}
    opened = {(part.layers[row], part.schemes[column]) for row, column in np.argwhere(np.isnan(part.score))}
    assert opened == expected
    known = np.isfinite(part.score)
    np.testing.assert_array_equal(part.as_predicted().score[known], whole.as_predicted().score[known])
    full = score(model, metric, SCHEMES, curvature=curvature, dataset=data, previous=part)
    assert full.score.tobytes() == whole.score.tobytes()


@pytest.mark.parametrize("metric", ["measured_kl", "predicted_kl", "weight_error"])
def test_a_layer_with_nan_leaves_its_row_open(metric):
    good, data = decoder(), tokens()
    curvature = calibrate(good, data).curvature
    model = decoder()
    with torch.no_grad():
        model.body.network.down.bias[0] += 0.0
        model.body.network.up.weight[1, 1] = float("inf")
    table = score(model, metric, SCHEMES, curvature=curvature, dataset=Rows(input_ids=data.tensors["input_ids"]))
    assert np.isnan(table.score[table.row["up"]]).all()
    if metric != "measured_kl":
        assert np.isfinite(np.delete(table.score, table.row["up"], axis=0)).all()


def test_what_is_missing_is_named():
    model = decoder()
    with pytest.raises(MissingResultError, match="needs data"):
        score(model, "measured_kl", SCHEMES)
    with pytest.raises(MissingResultError, match="curvature"):
        score(model, "predicted_kl", SCHEMES)
    with pytest.raises(MissingResultError, match="calibrate"):
        score(model, "output_error", SCHEMES)
    with pytest.raises(PlanError, match="predicted_kl"):
        score(model, "predicted", SCHEMES)
    with pytest.raises(SchemeError):
        score(model, "weight_error", ["int99"])
    with pytest.raises(ModelError, match="'upp'.*up"):
        score(model, "weight_error", SCHEMES, layers=["upp"])


class Masked(nn.Module):
    """A network that answers only about positions that are marked."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x[:, :1] > 1, self.layer(x), torch.tensor([0.0, -1e4, -1e4]))


@pytest.mark.parametrize("metric", ["predicted_kl", "measured_kl"])
@pytest.mark.parametrize("marked", [False, True])
def test_losses_that_are_all_0_are_said_to_tell_nothing(metric: str, marked: bool) -> None:
    torch.manual_seed(0)
    model, data = model_of(Masked(), OutputKind.CLASS_LOGITS), Rows(inputs=torch.rand(12, 4) + marked)
    curvature, notes = calibrate(model, data).curvature, list[str]()
    table = score(model, metric, ("int4-channel",), curvature=curvature, dataset=data, notes=notes)
    assert bool(table.score.any()) == marked
    assert any(each.startswith("every loss is 0: on these data the output is the same") for each in notes) != marked

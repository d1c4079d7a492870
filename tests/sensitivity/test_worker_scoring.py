"""Tables in pieces: the bits of one process, and no more in a piece than it needs."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from tests.models.networks import convolutions, decoder, images, tokens
from workbench.errors import MissingResultError
from workbench.measurement.calibrate import calibrate
from workbench.models.layer import ROUTER
from workbench.sensitivity import score as module
from workbench.sensitivity.score import score

SCHEMES = ("int3-g32-asym", "int8-channel")


class Inline:
    """Runs pieces in this process, as they would come out of a pipe, and keeps them."""

    count = 2

    def __init__(self):
        self.pieces = []

    def map(self, model, function, pieces):
        for piece in pieces:
            self.pieces.append(pickle.loads(pickle.dumps(piece)))
            yield function(model, self.pieces[-1])


@pytest.fixture
def workers(monkeypatch):
    made = Inline()
    monkeypatch.setattr(module, "workers_in_use", lambda: made)
    return made


def in_one_process(monkeypatch, *arguments, **options):
    with monkeypatch.context() as patch:
        patch.setattr(module, "workers_in_use", lambda: None)
        return score(*arguments, **options)


@pytest.mark.parametrize("metric", ["predicted_kl", "hessian_trace", "output_error", "measured_kl"])
@pytest.mark.parametrize(("make", "data"), [(decoder, tokens), (convolutions, images)])
def test_pieces_give_the_bits_of_one_process(make, data, metric, workers, monkeypatch):
    model, samples = make(), data()
    options = {"dataset": samples, "curvature": calibrate(model, samples).curvature}
    alone = in_one_process(monkeypatch, model, metric, SCHEMES, **options)
    np.testing.assert_array_equal(score(model, metric, SCHEMES, **options).score, alone.score)
    assert len(workers.pieces) > 1


def test_a_piece_carries_the_curvature_of_its_layers_and_of_those_tied_to_them(workers):
    model, samples = decoder(), tokens()
    known = calibrate(model, samples).curvature
    tied = {layer.name: layer.tied_to or layer.name for layer in model.summary.layers}
    score(model, "predicted_kl", SCHEMES, dataset=samples, curvature=known)
    for piece in workers.pieces:
        assert piece.curvature.keys() == {name for name in known if tied[name] in piece.table.layers}
    assert any("head" in piece.curvature for piece in workers.pieces)


def test_a_piece_of_a_model_with_routers_carries_all(workers, monkeypatch):
    model, samples = decoder(), tokens()
    layers = tuple(replace(x, keep=ROUTER) if x.name == "value" else x for x in model.summary.layers)
    known = calibrate(model, samples).curvature
    monkeypatch.setattr(model, "summary", replace(model.summary, layers=layers))
    score(model, "measured_kl", SCHEMES, dataset=samples, curvature=known)
    assert all(piece.curvature.keys() == known.keys() for piece in workers.pieces)


def test_layers_that_cannot_be_scored_stop_no_other_piece(workers, monkeypatch):
    model, samples = decoder(), tokens()
    known = {name: each for name, each in calibrate(model, samples).curvature.items() if name != "down"}
    options = {"dataset": samples, "curvature": known}
    for metric in ("predicted_kl", "hessian_trace"):
        alone = in_one_process(monkeypatch, model, metric, SCHEMES, **options)
        np.testing.assert_array_equal(score(model, metric, SCHEMES, **options).score, alone.score)
    assert any(piece.table.layers == ("down",) for piece in workers.pieces)
    with pytest.raises(MissingResultError, match="hessian_trace needs the calibrated curvature"):
        score(model, "hessian_trace", SCHEMES, dataset=samples, curvature={})

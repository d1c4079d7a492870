"""Ids that all samples share are repeated where the network's output stays the same, and only there."""

from __future__ import annotations

import pytest
import torch

from tests.models.networks import decoder, tokens
from tests.sensitivity.test_embedding_rows import Encoder, Narrow, encoder, some_words
from workbench.measurement.gradients import GradientPass
from workbench.measurement.shared_ids import repeatable
from workbench.models.summary import OutputKind

NAMES = ("words", "positions", "up")


class Sum(Encoder):
    """Sums over what comes out of the positions: repeated ids would count twice."""

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        positions = self.positions(torch.arange(ids.shape[1])[None]).sum(dim=0)
        return (self.words(ids) + positions).mean(dim=1)


@pytest.mark.parametrize(("kind", "names"), [(Encoder, {"positions"}), (Narrow, set()), (Sum, set())])
def test_only_what_leaves_the_output_as_it_is_is_repeated(kind, names):
    batch = next(some_words().batches(4))
    assert repeatable(encoder(kind), batch, NAMES) == names


def test_ids_of_the_samples_themselves_and_single_samples_are_not_repeated():
    assert not repeatable(decoder(), next(tokens().batches(4)), ["embed"])
    assert not repeatable(encoder(), next(some_words().batches(1)), NAMES)


def test_the_gradients_of_the_samples_come_apart():
    model, batch, observed = encoder(), next(some_words().batches(4)), {}
    assert model.summary.output is OutputKind.EMBEDDING

    def backward(name, ids, gradient):
        observed[name] = ids.shape, gradient

    GradientPass(model).run(batch, 0, 0, None, backward, layers=("positions",))
    together = observed["positions"]
    GradientPass(model).run(batch, 0, 0, None, backward, layers=("positions",), apart=("positions",))
    apart = observed["positions"]
    assert together[0] == (1, 6) and apart[0] == (4, 6)
    torch.testing.assert_close(apart[1].sum(dim=0, keepdim=True), together[1])

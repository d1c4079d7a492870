"""Random gradients at the output: their covariance is the Fisher information's, and few draws scatter little."""

from __future__ import annotations

import weakref

import torch
from torch import nn

from tests.models.networks import model_of
from workbench.measurement.gradients import GradientPass, batch_generator, drawn_gradients
from workbench.models.summary import OutputKind


def drawn(logits: torch.Tensor, kind: OutputKind, draws: int, seed: int = 0) -> torch.Tensor:
    return torch.stack(list(drawn_gradients(logits, {}, kind, [batch_generator(seed, 0)], draws)))


def fisher(logits: torch.Tensor) -> torch.Tensor:
    p = logits.double().softmax(-1)
    return torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)


def test_class_gradients_have_the_covariance_of_the_fisher_information() -> None:
    logits = torch.tensor([[2.0, -1.0, 0.0, 0.5]]).expand(20_000, 4)
    each = drawn(logits, OutputKind.CLASS_LOGITS, 2)
    for draw in each.double():
        torch.testing.assert_close(draw.T @ draw / len(draw), fisher(logits[0]), rtol=0.05, atol=0.003)
    of_tokens = drawn(logits[:, None], OutputKind.TOKEN_LOGITS, 1)[0, :, 0].double()
    torch.testing.assert_close(of_tokens.T @ of_tokens / len(logits), fisher(logits[0]), rtol=0.05, atol=0.003)


def test_tokens_of_which_the_network_is_sure_say_as_much_as_others() -> None:
    """One label in ten thousand would be another than the likely one, and carry all of the information."""
    logits = torch.tensor([10.0, 0.0, -0.5, 0.3, 1.0]).expand(1, 60, 5)
    squares = drawn(logits, OutputKind.TOKEN_LOGITS, 1)[0, 0].double().square().sum(dim=0)
    torch.testing.assert_close(squares / 60, fisher(logits[0, 0]).diagonal(), rtol=0.3, atol=0)


def test_tokens_of_a_large_vocabulary_are_drawn_apart() -> None:
    logits = torch.zeros(1, 3, 1 << 22)  # more than the signs that are held at a time
    first, second, third = drawn(logits, OutputKind.TOKEN_LOGITS, 1)[0, 0].double()
    for item, other in ((first, second), (second, third), (first, third)):
        assert abs(float(item @ other)) < 0.003 and abs(float(item @ item) - 1) < 0.001


def test_as_many_draws_as_classes_less_one_are_exact() -> None:
    logits = torch.randn(6, 3, generator=torch.Generator().manual_seed(1))
    each = drawn(logits, OutputKind.CLASS_LOGITS, 2).double()
    torch.testing.assert_close(torch.einsum("dsi,dsj->sij", each, each) / 2, fisher(logits), rtol=1e-4, atol=1e-6)
    twice = drawn(logits, OutputKind.CLASS_LOGITS, 4).double()  # a new set of directions after the second
    torch.testing.assert_close(torch.einsum("dsi,dsj->sij", twice, twice) / 4, fisher(logits), rtol=1e-4, atol=1e-6)


def test_plain_outputs_get_vectors_of_unit_variance_at_right_angles() -> None:
    each = drawn(torch.zeros(5, 2, 3), OutputKind.EMBEDDING, 6).flatten(2).double()
    torch.testing.assert_close(
        torch.einsum("dsi,dsj->sij", each, each) / 6, torch.eye(6).double().expand(5, 6, 6), rtol=1e-4, atol=1e-5
    )


def test_one_class_and_one_number_are_served() -> None:
    assert bool((drawn(torch.ones(3, 1), OutputKind.CLASS_LOGITS, 3) == 0).all())
    torch.testing.assert_close(drawn(torch.ones(3, 1), OutputKind.EMBEDDING, 3).abs(), torch.ones(3, 3, 1))


class Doubling(nn.Module):
    """Two products; what enters the second is seen by it alone."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.entered = nn.Linear(4, 3), nn.Linear(3, 2), []

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = 2 * self.first(inputs)
        self.entered.append(weakref.ref(hidden.untyped_storage()))
        return self.second(hidden)


def test_a_linear_layers_input_is_held_only_for_who_asks_for_it() -> None:
    network = Doubling()
    model, batch, alive = model_of(network, OutputKind.EMBEDDING), {"inputs": torch.ones(5, 4)}, list[bool]()

    def proceed(output: torch.Tensor) -> bool:
        alive.append(network.entered[-1]() is not None)
        return True

    passes = GradientPass(model)
    passes.run(batch, 0, 0, None, None, proceed=proceed)
    seen = dict[str, torch.Tensor]()
    passes.run(batch, 0, 0, None, lambda name, x, gradient: seen.update({name: x}), proceed=proceed)
    assert alive == [False, True] and seen["second"].shape == (5, 3)
    assert all(parameter.requires_grad for parameter in network.parameters())

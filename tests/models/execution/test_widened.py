"""Weights of two bytes that compute in float32: the bits of float32 weights, forward and back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from workbench.memory import limited_to
from workbench.models.execution import widened as module
from workbench.models.execution.widened import Widened, widened


@pytest.fixture(params=["at once", "in pieces"])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in pieces":
        monkeypatch.setattr(module, "PIECE", 700)


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


USES: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "linear": lambda x, w: nn.functional.linear(x, w),
    "linear with bias": lambda x, w: nn.functional.linear(x, w, random(96, seed=2)),
    "inputs x outputs": lambda x, w: torch.addmm(random(48, seed=3), x.flatten(0, 1)[:, :1].expand(-1, 96), w),
    "left of the product": lambda x, w: w @ x.flatten(0, 1).T,
    "looked up": lambda x, w: x * nn.functional.embedding(torch.tensor([[1, 2, 0], [5, 5, 95]]), w),
    "some rows": lambda x, w: x @ w[3:9].T,
    "experts": lambda x, w: torch.bmm(x.flatten(0, 1)[:2, None], w.view(2, 48, 48)),
}


@pytest.mark.parametrize("use", USES)
def test_bits_and_gradients_are_those_of_float32(use: str, pieces: None) -> None:
    stored = random(96, 48).bfloat16()
    results = []
    for weight in (widened(stored), stored.float()):
        x = random(2, 3, 48, seed=1).requires_grad_()
        output = USES[use](x, nn.Parameter(weight))
        results.append((output.detach(), *torch.autograd.grad(output.square().sum(), x)))
    for result, exact in zip(*results, strict=True):
        # a product of fewer columns may add up in another order, which depends on the processor
        torch.testing.assert_close(result, exact, rtol=1e-6, atol=1e-6 * max(1.0, float(exact.abs().max())))


def test_autograd_saves_the_stored_numbers_only() -> None:
    weight, x = nn.Parameter(widened(random(96, 48).half())), random(5, 48).requires_grad_()
    saved: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda each: (saved.append(each), each)[1], lambda each: each):
        nn.functional.linear(x, weight)
    assert [type(each) for each in saved if each.numel() == 96 * 48] == [Widened]


def test_it_is_a_float32_parameter_that_stays_itself() -> None:
    weight = nn.Parameter(widened(random(96, 48).bfloat16()))
    assert weight.dtype == torch.float32 and isinstance(weight, nn.Parameter) and weight.to(torch.float32) is weight
    assert isinstance(weight[...], Widened) and isinstance(weight.T, Widened)
    low, high = torch.aminmax(weight.detach())
    assert float(low) == float(weight.stored.float().min()) and high.dtype == torch.float32
    assert not isinstance(widened(random(48).bfloat16()), Widened)  # what is small is simply float32


def test_pieces_follow_a_limit_of_the_memory() -> None:
    assert module.piece_size() == module.PIECE
    sizes = []
    for allowed in (1, 640_000_000, 1 << 40):
        with limited_to(allowed):
            sizes.append(module.piece_size())
    assert sizes == [module.LEAST_PIECE, 5_000_000, module.PIECE]


JOINS: dict[str, Callable[[list[torch.Tensor]], torch.Tensor]] = {
    "one below the other": lambda parts: torch.cat(parts),
    "beside each other": lambda parts: torch.cat(parts, dim=-1),
    "along a new axis": lambda parts: torch.stack(parts),
    "experts of two matrices": lambda parts: torch.cat([torch.stack(parts), torch.stack(parts[::-1])], dim=1),
    "last": lambda parts: torch.stack(parts, dim=-1),
}


@pytest.mark.parametrize("join", JOINS)
def test_what_the_file_has_in_parts_is_put_together_when_it_is_used(join: str) -> None:
    parts = [random(24, 16, seed=seed).bfloat16() for seed in range(3)]
    expected = JOINS[join]([part.float() for part in parts])
    tensor = JOINS[join]([Widened(part) for part in parts])
    assert isinstance(tensor, Widened) and tensor.shape == expected.shape and tensor.dtype == torch.float32
    view = tensor.transpose(0, 1)[3:]
    assert not tensor.held.any() and isinstance(view, Widened)  # nothing was read so far
    assert torch.equal(view + 0, expected.transpose(0, 1)[3:])
    assert tensor.stored.dtype == torch.bfloat16 and torch.equal(tensor.stored.float(), expected)
    assert view.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr()


@pytest.mark.parametrize("first", [False, True], ids=["the whole first", "the parts first"])
@pytest.mark.parametrize("turned", [False, True], ids=["as they are", "turned"])
def test_what_is_joined_of_joined_parts_in_whatever_order_they_are_used(turned: bool, first: bool) -> None:
    """Square experts: the shape does not tell that they were turned."""
    parts = [random(16, 16, seed=seed).bfloat16() for seed in range(4)]

    def joined(tensors: list[torch.Tensor]) -> tuple[list[torch.Tensor], torch.Tensor]:
        stacks = [torch.stack(tensors[:2]), torch.stack(tensors[2:])]
        return stacks, torch.cat([stack.transpose(1, 2) for stack in stacks] if turned else stacks, dim=1)

    expected, whole = joined([part.float() for part in parts])
    stacks, tensor = joined([Widened(part) for part in parts])
    for own, known in zip(stacks, expected, strict=True) if first else ():
        assert torch.equal(own + 0, known)
    assert torch.equal(tensor + 0, whole)


@pytest.mark.parametrize("other", [torch.float16, torch.float32], ids=str)
def test_parts_of_several_dtypes_are_joined_in_memory(other: torch.dtype) -> None:
    """float16 has no number for most of bfloat16's, and the other way round."""
    parts = [random(4, 4).to(torch.bfloat16) * 1e20, (random(4, 4) * 1e-6).to(other)]
    joined = torch.stack([Widened(part) if part.itemsize == 2 else part for part in parts])
    assert not isinstance(joined, Widened) and torch.equal(joined, torch.stack([part.float() for part in parts]))

"""Resumed runs against whole ones: blocks, shared modules, writing in place, attention, layers run alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.models.networks import convolutions, decoder, images, model_of, recurrent, sequences, tokens
from workbench.models.execution.resume import Resumable, layer_outputs
from workbench.models.summary import OutputKind


class Block(nn.Module):
    """Attention with torch's own module, a perceptron that writes in place, a residual that writes in place."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.up, self.act, self.down = nn.Linear(width, 12), nn.ReLU(inplace=True), nn.Linear(12, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(x, x, x, need_weights=False)[0]
        y = self.act(self.up(x))
        x += self.down(y)
        return x


class Stack(nn.Module):
    """Blocks; ``twice`` runs the first of them again at the end."""

    def __init__(self, *, twice: bool = False) -> None:
        super().__init__()
        self.embed = nn.Embedding(13, 8)
        self.blocks = nn.ModuleList(Block(8) for _ in range(3))
        self.head = nn.Linear(8, 13)
        self.twice, self.ran = twice, 0

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        for block in (*self.blocks, self.blocks[0]) if self.twice else self.blocks:
            x = block(x)
        return self.head(x)


def stack(**options: bool):
    torch.manual_seed(0)
    return model_of(Stack(**options), OutputKind.TOKEN_LOGITS)


CASES = {
    "decoder": (decoder, tokens()), "convolutions": (convolutions, images()), "recurrent": (recurrent, sequences()),
    "stack": (stack, tokens()), "twice": (lambda: stack(twice=True), tokens()),
}  # fmt: skip


@pytest.mark.parametrize("case", list(CASES))
def test_a_resumed_run_is_the_whole_run_bit_for_bit(case: str) -> None:
    make, data = CASES[case]
    model, batch = make(), next(data.batches(4))
    resumable = Resumable(model)
    with torch.no_grad():
        recording = resumable.record(batch)
        assert torch.equal(recording.output, model.run(batch))
        for layer in model.summary.stored:
            outer = resumable.keep(batch, recording, resumable.before_unit(recording, layer.name))
            inner = resumable.keep(batch, recording, resumable.before(recording, layer.name))
            view = model.with_weights({layer.name: model.weight(layer.name) * 1.1 + 0.01})
            assert torch.equal(resumable.run(view, batch, recording, layer.name), view.run(batch)), layer.name
            assert not outer & inner
        assert torch.equal(recording.output, model.run(batch))


def test_what_ran_before_does_not_run_again() -> None:
    model, batch = stack(), next(tokens().batches(4))
    resumable, ran = Resumable(model), []
    names = {id(module): name for name, module in model.body.network.named_modules()}
    with torch.no_grad():
        recording = resumable.record(batch)
        resumable.keep(batch, recording, resumable.before(recording, "blocks.2.down"))
        view = model.with_weights({"blocks.2.down": model.weight("blocks.2.down") * 2})
        for module in model.body.network.modules():
            forward = module.forward
            module.forward = lambda *a, f=forward, m=module, **k: (ran.append(names[id(m)]), f(*a, **k))[1]
        output = resumable.run(view, batch, recording, "blocks.2.down")
        assert set(ran) == {"", "blocks.2", "blocks.2.down", "head"}
        for module in model.body.network.modules():
            del module.__dict__["forward"]
        assert torch.equal(output, view.run(batch))


def test_the_network_is_left_as_it_was() -> None:
    model, batch = stack(), next(tokens().batches(4))
    resumable = Resumable(model)
    recording = resumable.record(batch)
    resumable.keep(batch, recording, resumable.before(recording, "head"))
    with pytest.raises(RuntimeError):
        resumable.run(_Failing(), batch, recording, "head")  # type: ignore[arg-type]
    for module in model.body.network.modules():
        assert "forward" not in module.__dict__
        assert not module._forward_hooks and not module._forward_pre_hooks


class _Failing:
    def run(self, batch: object) -> None:
        raise RuntimeError("no")


def test_units_are_the_entries_of_the_outermost_list() -> None:
    resumable = Resumable(stack())
    assert resumable.unit_of("blocks.1.down") == "blocks.1"
    assert resumable.unit_of("head") == "head"


@pytest.mark.parametrize("case", ["decoder", "convolutions", "stack"])
def test_a_layer_alone_gives_what_it_gives_inside_the_model(case: str) -> None:
    make, data = CASES[case]
    model, batch = make(), next(data.batches(4))
    for layer in model.summary.layers:
        if layer.name not in model.tappable or layer.tied_to:
            continue
        other = model.weight(layer.name) * 0.5
        outputs: list[torch.Tensor] = []
        with torch.no_grad():
            mine = layer_outputs(model, batch, layer.name, [model.weight(layer.name), other])
            model.run(batch, tap=lambda name, x, y, outputs=outputs: outputs.append(y.clone()), layers=(layer.name,))
        assert len(mine[0]) == len(outputs) == 1
        torch.testing.assert_close(mine[0][0], outputs[0])
        assert not torch.equal(mine[1][0], outputs[0])


@pytest.mark.parametrize("case", ["decoder", "convolutions", "stack"])
def test_several_weights_in_one_run_give_what_each_gives_alone(case: str) -> None:
    make, data = CASES[case]
    model, batch = make(), next(data.batches(4))
    resumable, stacked = Resumable(model), []
    with torch.no_grad():
        recording = resumable.record(batch)
        for layer in model.summary.stored:
            name = layer.name
            resumable.keep(batch, recording, resumable.before(recording, name))
            if not resumable.stackable(recording, name):
                continue
            stacked.append(name)
            matrices = [model.weight(name) * factor for factor in (1.1, 0.7, 1.0)]
            outputs = resumable.run_stacked(batch, recording, name, matrices)
            for matrix, output in zip(matrices, outputs, strict=True):
                torch.testing.assert_close(output, model.with_weights({name: matrix}).run(batch), rtol=1e-5, atol=1e-6)
        assert torch.equal(recording.output, model.run(batch))
    assert len(stacked) >= 3
    assert all("forward" not in module.__dict__ for module in model.body.network.modules())


def test_weights_that_are_used_twice_are_not_stacked() -> None:
    model = stack(twice=True)
    resumable, batch = Resumable(model), next(tokens().batches(4))
    with torch.no_grad():
        recording = resumable.record(batch)
        assert not resumable.stackable(recording, "blocks.0.up")
        assert resumable.stackable(recording, "blocks.1.up")
        assert not resumable.stackable(recording, "blocks.1.attention.in_proj_weight")
        changed = Resumable(model.with_weights({"head": model.weight("head")}))
        assert not changed.stackable(changed.record(batch), "blocks.1.up")
        batched = resumable.most_stacked(recording, "blocks.1.up", 4 * recording.output.nbytes + 3)
    assert batched == 4

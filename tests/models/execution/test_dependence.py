"""Layers that the output does not depend on: checked by changing their weights."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.models.networks import model_of, recurrent, sequences, tokens
from workbench.models.execution.dependence import unused_layers
from workbench.models.summary import OutputKind


class Branches(nn.Module):
    """A pooler that nobody reads, an encoder that acts through ``argmax`` alone, experts, a tower that does not run, a
    layer of which the shape alone is taken (MRA's attention without its kernels)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.encoder = nn.Embedding(13, 8), nn.Linear(8, 16)
        self.codes = nn.Embedding(16, 8)
        self.pooler, self.tower, self.sized = (nn.Linear(8, 8) for _ in range(3))
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.switch = nn.Linear(8, 1)
        self.out = nn.Linear(8, 13)

    def forward(self, ids: torch.Tensor, pixels: torch.Tensor | None = None) -> torch.Tensor:
        x = self.codes(self.encoder(self.embed(ids)).argmax(dim=-1))
        pooled = torch.tanh(self.pooler(x[:, 0])) if pixels is None else self.tower(pixels)
        expert = 1 if self.switch(x).sum().item() > 0 else 2
        buffer = torch.zeros_like(self.sized(x))
        buffer.copy_(self.experts[expert](x))
        result: torch.Tensor = self.out(buffer.view(-1, 8).reshape(x.shape))
        return result if pooled is not None else x


def test_only_layers_that_cannot_change_the_output_are_unused() -> None:
    torch.manual_seed(0)
    model = model_of(Branches(), OutputKind.TOKEN_LOGITS)
    unused = unused_layers(model, tokens())
    assert set(unused) == {"pooler", "tower", "sized"}
    assert unused["pooler"] == "its result does not reach the model's output"
    assert unused["tower"] == "it does not run when the model is given input_ids"
    batch, outputs = next(tokens().batches(10)), model.run
    for layer in ("pooler", "tower", "sized", "encoder", "codes", "out"):
        changed = model.with_weights({layer: torch.randn(model.summary.layer(layer).matrix)})
        assert torch.equal(changed.run(batch), outputs(batch)) == (layer in unused), layer


class Depth(nn.Module):
    """Classifiers after every block, of which only the last one's answers come out, as in D-FINE."""

    def __init__(self, looks: bool) -> None:
        super().__init__()
        self.looks = looks
        self.blocks = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))
        self.heads = nn.ModuleList(nn.Linear(3, 4) for _ in range(3))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            inputs = torch.relu(block(inputs))
        chosen = int((inputs.sum() < -1).item()) if self.looks else 2  # relu: never below 0
        answer: torch.Tensor = self.heads[2 - chosen](inputs)
        return answer


def test_entries_of_a_list_that_never_run_are_unused_unless_a_value_decides_what_runs() -> None:
    torch.manual_seed(0)
    model = model_of(Depth(looks=False), OutputKind.EMBEDDING)
    assert set(unused_layers(model, sequences())) == {"heads.1", "heads.2"}
    assert not unused_layers(model_of(Depth(looks=True), OutputKind.EMBEDDING), sequences())


def test_weights_inside_a_fused_operation_count() -> None:
    assert set(unused_layers(recurrent(), sequences())) == {"unused"}


def test_an_open_model_is_followed_once_for_each_content_of_data(monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.models.execution import dependence

    model, calls = model_of(Branches(), OutputKind.TOKEN_LOGITS), []
    follow = dependence._unused
    monkeypatch.setattr(dependence, "_unused", lambda *given: calls.append(1) or follow(*given))
    first = unused_layers(model, tokens())
    first.clear()
    assert set(unused_layers(model, tokens())) == {"pooler", "tower", "sized"} and len(calls) == 1
    unused_layers(model)
    assert len(calls) == 2

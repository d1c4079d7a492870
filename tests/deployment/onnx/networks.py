"""Small networks with every kind of weight that a graph uses in a way of its own."""

from __future__ import annotations

import torch
from torch import nn

from tests.models.networks import model_of
from workbench.models.execution.network import NetworkModel
from workbench.models.summary import OutputKind


class Tagger(nn.Module):
    """A table that is also the head, a linear layer with and one without bias, GPT-2's transposed one, a norm."""

    def __init__(self) -> None:
        super().__init__()
        from transformers.pytorch_utils import Conv1D

        self.embed, self.up, self.norm = nn.Embedding(64, 32), nn.Linear(32, 96), nn.LayerNorm(96)
        self.turned, self.down = Conv1D(64, 96), nn.Linear(64, 32, bias=False)
        self.head = nn.Linear(32, 64, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.up(self.embed(ids)).relu())
        logits: torch.Tensor = self.head(self.down(self.turned(x).tanh()))
        return logits


class Pictures(nn.Module):
    """Convolutions, plain, grouped and transposed, and a linear layer whose input has two axes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.grouped = nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(8, 16, 2, groups=2)
        self.wider, self.last = nn.ConvTranspose2d(16, 8, 2), nn.Linear(8, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.wider(self.grouped(self.first(images).relu()).relu())
        logits: torch.Tensor = self.last(x.mean((2, 3)))
        return logits


def tagger() -> NetworkModel:
    """Return a Tagger."""
    torch.manual_seed(0)
    return model_of(Tagger(), OutputKind.TOKEN_LOGITS)


def pictures() -> NetworkModel:
    """Return Pictures."""
    torch.manual_seed(1)
    return model_of(Pictures(), OutputKind.CLASS_LOGITS)


TOKENS = {"input_ids": torch.arange(36).reshape(2, 18) * 7 % 64}
IMAGES = {"inputs": torch.randn(3, 4, 8, 8, generator=torch.Generator().manual_seed(2))}

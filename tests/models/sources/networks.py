"""Tiny networks that tests build: one of every kind of layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn


class Tokens(nn.Module):
    """Tied embedding and head, convolution, norm, LSTM, attention and a sequential block; ids (N, 5) -> (N, 5, 32)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(32, 8)
        self.conv = nn.Conv1d(8, 8, 3, padding=1, groups=2)
        self.norm = nn.BatchNorm1d(8)
        self.lstm = nn.LSTM(8, 8, batch_first=True)
        self.blocks = nn.Sequential(nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 8)))
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = nn.Linear(8, 32, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.conv(self.embed(ids).transpose(1, 2))).transpose(1, 2)
        x = self.blocks(self.lstm(x)[0])
        logits: torch.Tensor = self.head(self.attention(x, x, x, need_weights=False)[0])
        return logits


class Images(nn.Module):
    """Plain, strided, grouped and depthwise transposed convolutions; (N, 3, 8, 8) -> (N, 4)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 6, 2, stride=2)
        self.depthwise = nn.ConvTranspose2d(6, 12, 3, groups=6)
        self.volume = nn.Conv3d(1, 4, (1, 3, 3))
        self.head = nn.Linear(4, 4)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.depthwise(self.up(torch.relu(self.conv(images))))
        logits: torch.Tensor = self.head(self.volume(x.unsqueeze(1)).mean(dim=(2, 3, 4)))
        return logits


class Experts(nn.Module):
    """Two experts stored as one 3-D parameter each way, mixed with a learnt gate; (N, 8) -> (N, 8)."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(8, 2)
        self.up = nn.Parameter(torch.randn(2, 16, 8) / 4)
        self.down = nn.Parameter(torch.randn(2, 8, 16) / 4)
        self.bias = nn.Parameter(torch.zeros(2, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(torch.einsum("eij,nj->nei", self.up, x))
        return torch.einsum("eij,nej,ne->ni", self.down, hidden, self.gate(x).softmax(-1))


def seeded(kind: type[nn.Module]) -> nn.Module:
    """A network with reproducible weights, in evaluation mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        return kind().eval()


def save_python(folder: Path, kind: type[nn.Module], state: dict[str, torch.Tensor] | None = None) -> Path:
    """Write ``net.py``, which builds ``kind``, with its weights beside it; returns the Python file."""
    file = folder / "net.py"
    file.write_text(f"from tests.models.sources.networks import {kind.__name__}\n\nbuild = {kind.__name__}\n")
    tensors = state or {name: value.clone() for name, value in seeded(kind).state_dict().items()}
    save_file(tensors, folder / "net.safetensors")
    return file


class HeadFirst(nn.Module):
    """Token logits whose head, and whose table of positions, are defined before the table of tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(9, 6))
        self.head, self.places, self.tokens = nn.Linear(6, 13), nn.Embedding(9, 6), nn.Embedding(13, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = self.places(torch.arange(x.shape[1])) * self.scale[: x.shape[1]]
        logits: torch.Tensor = self.head(self.tokens(x) + places)
        return logits


class Retrieved(HeadFirst):
    """The same without a module for its table, sequence first, and an answer for the last token only."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Parameter(torch.randn(13, 6))  # type: ignore[assignment]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(torch.tanh(self.tokens[x.T]))[-1]  # type: ignore[index]
        return logits


class Steps(nn.Module):
    """Classes of series ``[samples, steps, 4]``; a hard choice of one of two matrices at every step."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.choose, self.head = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 3)
        self.experts = nn.Parameter(torch.randn(2, 8, 8) / 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.enter(x))
        chosen = self.experts[self.choose(x).argmax(-1)]
        logits: torch.Tensor = self.head(torch.einsum("bti,btio->bto", x, chosen).mean(dim=1))
        return logits


class Bands(nn.Module):
    """Classes of series ``[samples, 2, points]``."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(16, 4))
        self.enter, self.head = nn.Conv1d(2, 16, 3), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(torch.relu(self.enter(x)).mean(dim=2) @ self.table)
        return logits


class Versioned(nn.Linear):
    """Loads nothing that does not say of which version it is, as torchvision's MNASNet."""

    _version = 2

    def __init__(self) -> None:
        super().__init__(6, 3)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *others: Any) -> None:
        if local_metadata.get("version") != 2:
            raise ValueError("version should be 2")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *others)

"""Small networks of the shapes that transforms meet, with odd names, so that nothing can be read off a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import nn
from torch.nn import functional

from tests.models.networks import Rows, model_of
from workbench.models.execution.network import NetworkModel
from workbench.models.summary import OutputKind

VOCABULARY = 24


class RootMeanSquare(nn.Module):
    """An RMS norm; ``offset`` 1 stores the difference from one."""

    def __init__(self, width: int, offset: float = 0.0) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.rand(width) + 0.5 - offset)
        self.offset = offset

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return y * (self.gain + self.offset) if self.offset else self.gain * y


class GatedBlock(nn.Module):
    """Attention with two heads of queries for each of values, and a gated perceptron."""

    def __init__(self, width: int, heads: int, shared: int, offset: float, inner: int) -> None:
        super().__init__()
        self.size, self.heads, self.shared = width // heads, heads, shared
        self.one, self.two = RootMeanSquare(width, offset), RootMeanSquare(width, offset)
        self.a = nn.Linear(width, width, bias=False)
        self.b = nn.Linear(width, self.size * shared, bias=False)
        self.c = nn.Linear(width, self.size * shared, bias=True)
        self.d = nn.Linear(width, width, bias=True)
        self.e, self.f = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=True)
        self.g = nn.Linear(inner, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, t, width = x.shape
        y = self.one(x)
        q = self.a(y).view(n, t, self.heads, self.size).transpose(1, 2)
        k, v = (
            layer(y).view(n, t, self.shared, self.size).transpose(1, 2)
            .repeat_interleave(self.heads // self.shared, dim=1)
            for layer in (self.b, self.c)
        )  # fmt: skip
        weights = torch.softmax(q @ k.transpose(2, 3) / self.size**0.5, dim=-1)
        x = x + self.d((weights @ v).transpose(1, 2).reshape(n, t, width))
        y = self.two(x)
        result: torch.Tensor = x + self.g(functional.silu(self.e(y)) * self.f(y))
        return result


class Gated(nn.Module):
    """A Llama in small, its head tied to the embedding."""

    def __init__(self, width: int = 16, blocks: int = 2, offset: float = 0.0, inner: int = 20) -> None:
        super().__init__()
        self.ids = nn.Embedding(VOCABULARY, width)
        self.body = nn.ModuleList(GatedBlock(width, 4, 2, offset, inner) for _ in range(blocks))
        self.last = RootMeanSquare(width, offset)
        self.out = nn.Linear(width, VOCABULARY, bias=False)
        self.out.weight = self.ids.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.ids(ids)
        for block in self.body:
            x = block(x)
        result: torch.Tensor = self.out(self.last(x))
        return result


class Fused(nn.Module):
    """One projection for queries, keys and values, layer norms in front, an ungated perceptron with ``activation``."""

    def __init__(self, activation: nn.Module | None = None, width: int = 16) -> None:
        super().__init__()
        self.ids = nn.Embedding(VOCABULARY, width)
        self.n1, self.n2, self.n3 = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.all, self.back = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 24), nn.Linear(24, width)
        self.act = activation or nn.GELU()
        self.out = nn.Linear(width, VOCABULARY)
        for norm in (self.n1, self.n2, self.n3):
            nn.init.uniform_(norm.weight, 0.5, 1.5)
            nn.init.normal_(norm.bias)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.ids(ids)
        q, k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in self.all(self.n1(x)).chunk(3, dim=-1))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.back(y.transpose(1, 2).flatten(2))
        x = x + self.narrow(self.act(self.wide(self.n2(x))))
        result: torch.Tensor = self.out(self.n3(x))
        return result


class After(nn.Module):
    """Norms behind the sum, so that what they give is the stream itself: nothing can be folded into them."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.ids, self.n1 = nn.Embedding(VOCABULARY, width), nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 12), nn.Linear(12, width)
        self.out = nn.Linear(width, VOCABULARY)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.n1(self.ids(ids))
        result: torch.Tensor = self.out(torch.tanh(x + self.narrow(torch.tanh(self.wide(x)))))
        return result


def language_model(network: type[nn.Module] = Gated, seed: int = 0, **options: object) -> NetworkModel:
    torch.manual_seed(seed)
    return model_of(network(**options), OutputKind.TOKEN_LOGITS)


def sentences(samples: int = 6, length: int = 9, seed: int = 1) -> Rows:
    generator = torch.Generator().manual_seed(seed)
    return Rows(input_ids=torch.randint(0, VOCABULARY, (samples, length), generator=generator))


def with_outliers(model: NetworkModel, channels: tuple[int, ...] = (1, 6), factor: float = 30.0) -> NetworkModel:
    """Make what some channels of every norm of a ``Gated`` give larger, the columns behind them smaller."""
    readers = {
        f"body.{index}.{norm}.gain": [f"body.{index}.{layer}" for layer in layers]
        for index in (0, 1) for norm, layers in (("one", "abc"), ("two", "ef"))
    }  # fmt: skip
    return outliers_behind(model, readers, channels, factor)


def llama_with_outliers(model: NetworkModel, channels: tuple[int, ...] = (1, 6), factor: float = 64.0) -> NetworkModel:
    """The same in every block of a Llama."""
    readers: dict[str, list[str]] = {}
    for layer in model.summary.layers:
        block, _, last = layer.name.rpartition(".")
        if last in ("q_proj", "k_proj", "v_proj"):
            readers.setdefault(block.replace("self_attn", "input_layernorm.weight"), []).append(layer.name)
        elif last in ("gate_proj", "up_proj"):
            readers.setdefault(block.replace("mlp", "post_attention_layernorm.weight"), []).append(layer.name)
    return outliers_behind(model, readers, channels, factor)


def outliers_behind(
    model: NetworkModel, readers: Mapping[str, Sequence[str]], channels: Sequence[int], factor: float
) -> NetworkModel:
    """Multiply channels of the norms ``readers`` by ``factor``, divide the columns of the layers that read them: the
    same function.

    Large language models have such channels in what their norms give (Dettmers et al., "LLM.int8()", NeurIPS 2022).
    """
    inputs, weights = {}, {}
    for norm, layers in readers.items():
        inputs[norm] = model.other(norm).clone()
        inputs[norm][list(channels)] *= factor
        for layer in layers:
            weights[layer] = model.weight(layer).clone()
            weights[layer][:, list(channels)] /= factor
    return model.with_others(inputs).with_weights(weights)

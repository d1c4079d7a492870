"""ONNX's LSTM and GRU in torch, for gradients: onnx, docs/Operators.md.

ONNX keeps the gates of an LSTM as input, output, forget, cell and those of a GRU as update, reset, hidden; torch as
input, forget, cell, output and reset, update, hidden.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

LSTM_ORDER, GRU_ORDER = (0, 2, 3, 1), (1, 0, 2)
PLAIN = {"Sigmoid", "Tanh"}
ODD = ("activation_alpha", "activation_beta", "clip", "input_forget", "layout")


class NoCounterpartError(ValueError):
    """An operator has options that its counterpart in torch has not."""


def lstm(attributes: Mapping[str, Any], inputs: Sequence[Any]) -> tuple[Tensor, ...]:
    """Return outputs ``[steps, directions, samples, hidden]``, the last hidden and the last cell states."""
    x, weights, states = _prepared(attributes, inputs, LSTM_ORDER)
    if len(inputs) > 7 and inputs[7] is not None:
        raise NoCounterpartError("an LSTM whose gates see its cells")
    cells = inputs[6] if len(inputs) > 6 and inputs[6] is not None else torch.zeros_like(states)
    two = attributes.get("direction") == "bidirectional"
    outputs, hidden, cell = torch.lstm(x, (states, cells), weights, True, 1, 0.0, False, two, False)
    return _given(attributes, outputs, states), hidden, cell


def gru(attributes: Mapping[str, Any], inputs: Sequence[Any]) -> tuple[Tensor, ...]:
    """Return outputs ``[steps, directions, samples, hidden]`` and the last hidden states."""
    if not attributes.get("linear_before_reset"):
        raise NoCounterpartError("a GRU that resets before its product")
    x, weights, states = _prepared(attributes, inputs, GRU_ORDER)
    two = attributes.get("direction") == "bidirectional"
    outputs, hidden = torch.gru(x, states, weights, True, 1, 0.0, False, two, False)
    return _given(attributes, outputs, states), hidden


def _given(attributes: Mapping[str, Any], outputs: Tensor, states: Tensor) -> Tensor:
    steps, samples, _ = outputs.shape
    outputs = outputs.reshape(steps, samples, states.shape[0], states.shape[2]).transpose(1, 2)
    return outputs.flip(0) if attributes.get("direction") == "reverse" else outputs


def _prepared(
    attributes: Mapping[str, Any], inputs: Sequence[Any], order: Sequence[int]
) -> tuple[Tensor, list[Tensor], Tensor]:  # fmt: skip
    """Return inputs, torch's parameters by direction, and first hidden states."""
    x, forward, recurrent, bias, lengths, states = [*inputs, None, None, None][:6]
    odd = any(attributes.get(name) for name in ODD) or {*PLAIN, *attributes.get("activations", ())} != PLAIN
    if odd or (lengths is not None and bool((lengths < len(x)).any())):
        raise NoCounterpartError("a recurrent layer with other functions, another layout or lengths")
    directions, hidden = recurrent.shape[0], recurrent.shape[2]
    if bias is None:
        bias = torch.zeros(directions, 2 * recurrent.shape[1], dtype=x.dtype)
    if states is None:
        states = torch.zeros(directions, x.shape[1], hidden, dtype=x.dtype)
    weights = []
    for at in range(directions):
        biases = bias[at].reshape(2, -1)
        weights += [_ordered(each, order) for each in (forward[at], recurrent[at], *biases)]
    return (x.flip(0) if attributes.get("direction") == "reverse" else x), weights, states


def _ordered(tensor: Tensor, order: Sequence[int]) -> Tensor:
    """Return the gates in torch's order."""
    gates = tensor.chunk(len(order), 0)
    return torch.cat([gates[at] for at in order])

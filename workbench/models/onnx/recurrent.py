"""ONNX's LSTM and GRU in torch, for gradients: onnx, docs/Operators.md.

ONNX keeps the gates of an LSTM as input, output, forget, cell and those of a GRU as update, reset, hidden; torch as
input, forget, cell, output and reset, update, hidden.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

LSTM_ORDER, GRU_ORDER = (0, 2, 3, 1), (1, 0, 2)
PLAIN = {"Sigmoid", "Tanh"}
ODD = ("activation_alpha", "activation_beta", "clip", "input_forget", "layout")


class NoCounterpartError(Exception):
    """An operator has options that its counterpart in torch has not.

    No ValueError: those say that a branch was not made for an input, which is no reason to give up gradients.
    """


def lstm(attributes: Mapping[str, Any], inputs: Sequence[Any]) -> tuple[Tensor, ...]:
    """Return outputs ``[steps, directions, samples, hidden]``, the last hidden and the last cell states."""
    if len(inputs) > 7 and inputs[7] is not None:
        raise NoCounterpartError("an LSTM with peepholes")
    weights, states = _prepared(attributes, inputs, LSTM_ORDER)
    cells = inputs[6] if len(inputs) > 6 and inputs[6] is not None else torch.zeros_like(states)
    return _run(torch.lstm, attributes, inputs, (states, cells), weights)


def gru(attributes: Mapping[str, Any], inputs: Sequence[Any]) -> tuple[Tensor, ...]:
    """Return outputs ``[steps, directions, samples, hidden]`` and the last hidden states."""
    if not attributes.get("linear_before_reset"):
        raise NoCounterpartError("a GRU with linear_before_reset = 0")
    weights, states = _prepared(attributes, inputs, GRU_ORDER)
    return _run(torch.gru, attributes, inputs, (states,), weights)


def _run(
    layer: Any, attributes: Mapping[str, Any], inputs: Sequence[Any], states: tuple[Tensor, ...], weights: list[Tensor]
) -> tuple[Tensor, ...]:  # fmt: skip
    """Run a layer of torch: each sample for its own number of steps, behind which outputs are 0."""
    x, lengths = inputs[0], inputs[4] if len(inputs) > 4 else None
    steps, samples, _ = x.shape
    lengths = torch.full((samples,), steps) if lengths is None else lengths.long()
    direction, places = attributes.get("direction"), torch.arange(steps)[:, None]
    reversed_places = torch.where(places < lengths, lengths - 1 - places, places)[..., None]
    more = (True, 1, 0.0, False, direction == "bidirectional")
    x = x.gather(0, reversed_places.expand_as(x)) if direction == "reverse" else x
    if bool((lengths == steps).all()):
        outputs, *last = layer(x, states[0] if len(states) == 1 else states, weights, *more, False)
    elif not bool((lengths > 0).all()):
        raise NoCounterpartError("a recurrent layer over no steps")
    else:
        packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
        ordered = [each[:, packed.sorted_indices] for each in states]
        start = ordered[0] if len(ordered) == 1 else ordered
        data, *last = layer(packed.data, packed.batch_sizes, start, weights, *more)
        outputs, _ = pad_packed_sequence(packed._replace(data=data), total_length=steps)
        last = [each[:, packed.unsorted_indices] for each in last]
    outputs = outputs.gather(0, reversed_places.expand_as(outputs)) if direction == "reverse" else outputs
    return outputs.reshape(steps, samples, len(states[0]), -1).transpose(1, 2), *last


def _prepared(
    attributes: Mapping[str, Any], inputs: Sequence[Any], order: Sequence[int]
) -> tuple[list[Tensor], Tensor]:  # fmt: skip
    """Return torch's parameters by direction, and first hidden states."""
    x, forward, recurrent, bias, _, states = [*inputs, None, None, None][:6]
    if any(attributes.get(name) for name in ODD) or {*PLAIN, *attributes.get("activations", ())} != PLAIN:
        raise NoCounterpartError("a recurrent layer with other functions or another layout")
    directions, hidden = recurrent.shape[0], recurrent.shape[2]
    if bias is None:
        bias = torch.zeros(directions, 2 * recurrent.shape[1], dtype=x.dtype)
    if states is None:
        states = torch.zeros(directions, x.shape[1], hidden, dtype=x.dtype)
    weights = []
    for at in range(directions):
        parts = [each.chunk(len(order)) for each in (forward[at], recurrent[at], *bias[at].reshape(2, -1))]
        weights += [torch.cat([gates[place] for place in order]) for gates in parts]
    return weights, states

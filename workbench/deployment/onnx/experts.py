"""Experts in a graph: all of them run on all tokens, as no operator of ONNX multiplies groups of rows.

transformers runs a token through its experts alone, by an operator of torch's own or by a loop over what the data
choose, which no graph can be captured of.  The same sum over all experts, those that were not chosen with the weight 0,
is plain products of matrices; it takes as many times the work as there are experts for each that is chosen.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import nn


@contextlib.contextmanager
def all_experts(network: nn.Module) -> Iterator[None]:
    """Have the experts of transformers (``use_experts_implementation``) run on every token."""
    modules = [module for module in network.modules() if hasattr(module, "_is_expert_parallel")]
    for module in modules:
        module.forward = partial(_forward, module)
    try:
        yield
    finally:
        for module in modules:
            del module.forward


def _forward(
    experts: Any, hidden_states: torch.Tensor, top_k_index: torch.Tensor, top_k_weights: torch.Tensor
) -> torch.Tensor:
    """Return what the chosen experts add up to, ``[tokens, hidden]``; weights are ``[tokens, chosen]``."""
    first = experts.gate_up_proj if experts.has_gate else experts.up_proj
    share = torch.zeros(hidden_states.shape[0], first.shape[0], dtype=top_k_weights.dtype)
    share = share.scatter(1, top_k_index, top_k_weights).to(hidden_states.dtype)
    bias = getattr(experts, "gate_up_proj_bias" if experts.has_gate else "up_proj_bias") if experts.has_bias else None
    inner = _product(experts, hidden_states.expand(len(first), -1, -1), first, bias)
    inner = experts._apply_gate(inner) if experts.has_gate else experts.act_fn(inner)
    outer = _product(experts, inner, experts.down_proj, experts.down_proj_bias if experts.has_bias else None)
    if experts.has_post_expert_norm:
        outer = experts.post_expert_norm(outer)
    return (outer * share.T[:, :, None]).sum(0)


def _product(experts: Any, inputs: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """Return ``[experts, tokens, outputs]``."""
    product = inputs @ (weight if experts.is_transposed else weight.transpose(1, 2))
    return product if bias is None else product + bias[:, None]

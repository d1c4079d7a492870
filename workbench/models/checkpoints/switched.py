"""Experts as mlx-lm stores them: one tensor for each projection, all experts one after another (``switch_mlp``).

Source: ml-explore/mlx-lm 0.32, ``models/switch_layers.py`` and ``sanitize`` of the networks that have experts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from workbench.models.layer import StoredTensor

if TYPE_CHECKING:  # the window, which has no torch, knows the names
    import torch

    from workbench.models.sources.stored import TensorStore

PROJECTIONS = {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}
"""What mlx-lm calls the projections of Mixtral's checkpoints; those of others have its own names."""

ONE = re.compile(
    r"(?P<owner>.+)\.experts\.(?P<expert>\d+)\.(?P<projection>w[123]|(?:gate|up|down)_proj)\.(?P<part>\w+)"
)
ALL = re.compile(r"(?P<owner>.+)\.switch_mlp\.(?P<projection>(?:gate|up|down)_proj)\.(?P<part>\w+)")


def switched_name(name: str) -> str:
    """Return what mlx-lm calls the tensor that a tensor of one expert is part of; other names as they are."""
    match = ONE.fullmatch(name)
    if match is None:
        return name
    projection = PROJECTIONS.get(match["projection"], match["projection"])
    return f"{match['owner']}.switch_mlp.{projection}.{match['part']}"


def one_by_one(store: TensorStore) -> TensorStore:
    """Return the tensors with experts one by one, under the names of transformers' checkpoints; views, no copies."""
    tensors, places = dict[str, StoredTensor](), dict[str, tuple[str, int]]()
    for name, tensor in store.tensors.items():
        match = ALL.fullmatch(name)
        if match is None or len(tensor.shape) != 3 or 0 in tensor.shape:
            tensors[name] = tensor
            continue
        for expert in range(tensor.shape[0]):
            own = _name_of_one(match, expert)
            tensors[own] = StoredTensor(name=own, dtype=tensor.dtype, shape=tensor.shape[1:])
            places[own] = name, expert
    return replace(store, tensors=tensors, read=partial(_read, store, places)) if places else store


def _name_of_one(match: re.Match[str], expert: int) -> str:
    names = {of: name for name, of in PROJECTIONS.items()} if match["owner"].endswith("block_sparse_moe") else {}
    projection = names.get(match["projection"], match["projection"])
    return f"{match['owner']}.experts.{expert}.{projection}.{match['part']}"


def _read(store: TensorStore, places: Mapping[str, tuple[str, int]], name: str) -> torch.Tensor:
    whole, expert = places.get(name, (name, -1))
    return store.read(whole) if expert < 0 else store.read(whole)[expert]

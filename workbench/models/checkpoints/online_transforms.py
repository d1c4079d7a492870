"""Rotations that a compressed-tensors checkpoint has carried out while the network runs: QuaRot's R4, those of QuIP.

Specification: the package compressed-tensors (``TransformConfig``).  What it says of weights is done: they are stored
so.  Queries and keys that are rotated alike (R3) leave attention as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from workbench.errors import NotAModelError
from workbench.models.checkpoints.compressed_tensors import matches
from workbench.models.sources.stored import TensorStore
from workbench.numerics.equivalences.rotation import BlockRotation

Groups = Mapping[str, Mapping[str, Any]]
"""``config_groups`` of ``transform_config``, each with what happens while the network runs alone."""

KINDS = ("hadamard", "random-hadamard")
LINEAR, ATTENTION, DONE = ("input", "output"), ("q_attn", "k_cache"), ("weight_input", "weight_output")


def online_groups(settings: Mapping[str, Any]) -> tuple[Groups, tuple[str, ...]]:
    """Return the rotations of inputs and outputs, and notes on what is left out.

    ``settings`` is ``quantization_config``.  Raises NotAModelError for what is not read.
    """
    groups, notes = dict[str, Mapping[str, Any]](), list[str]()
    for name, group in ((settings.get("transform_config") or {}).get("config_groups") or {}).items():
        stated = [{**each, "targets": _listed(each["targets"])} for each in group["apply"]]
        online = [each for each in stated if each["location"] not in DONE]
        _require_read(name, group, online)
        linear = [each for each in online if each["location"] in LINEAR]
        if linear:
            groups[name] = {**group, "apply": linear}
            ends = " and ".join(f"{end}s" for end in LINEAR if any(each["location"] == end for each in linear))
            notes.append(
                f"the network rotates {ends} of layers while it runs ({name:.40} in transform_config of config.json); "
                "exports to compressed-tensors alone can say so"
            )
        if attention := [each for each in online if each not in linear]:
            notes.append(_of_attention(name, attention))
    return groups, tuple(notes)


def _require_read(name: str, group: Mapping[str, Any], online: Sequence[Mapping[str, Any]]) -> None:
    """Raise NotAModelError for a group of whose kind or places none are read."""
    how = [f"at {each['location']!s:.40}" for each in online if each["location"] not in (*LINEAR, *ATTENTION)][:1]
    how += [f"by {group['type']!s:.40}"] * (group["type"] not in KINDS)
    how += ["differently for each layer"] * bool(group.get("randomize"))
    if online and how:
        raise NotAModelError(
            f"its activations are transformed {', '.join(how)} while the model runs ({name:.40} in transform_config of "
            f"config.json), which is not read: {' and '.join(KINDS)} of inputs and outputs of linear layers are; open "
            "the folder that it was made from"
        )


def _listed(targets: Any) -> list[str]:
    return [str(each) for each in ([targets] if isinstance(targets, str) else targets or ())]


def _of_attention(name: str, stated: Sequence[Mapping[str, Any]]) -> str:
    """Return the note on queries and keys that are rotated alike; NotAModelError where they are not."""
    ways = {(*each["targets"], bool(each.get("inverse"))) for each in stated}
    if len(ways) > 1 or {each["location"] for each in stated} != {*ATTENTION}:
        raise NotAModelError(
            f"it transforms queries and keys differently while the model runs ({name:.40} in transform_config of "
            "config.json), which is not read; open the folder that it was made from"
        )
    return (
        f"the files have queries and keys rotated alike while the model runs ({name:.40}), which leaves their products "
        "as they are and is left out; a KV cache is rounded without it"
    )


def without_matrices(store: TensorStore, groups: Groups) -> TensorStore:
    """Return ``store`` without the matrices of the rotations."""
    matrices = {name for group, what in groups.items() for name in _matrices(store, group, what)}
    kept = {name: tensor for name, tensor in store.tensors.items() if name not in matrices}
    return TensorStore(kept, store.read)


def rotate(network: nn.Module, groups: Groups, store: TensorStore) -> None:
    """Have ``network`` rotate what ``groups`` say; NotAModelError where it has no such layers."""
    for name, group in groups.items():
        for each in group["apply"]:
            modules = list(_named(network, each["targets"], _listed(each.get("ignore"))))
            if not modules:
                raise NotAModelError(
                    f"{name} of transform_config is for {', '.join(each['targets']):.200}, and the network "
                    "has no such modules; fetch the folder again"
                )
            for path, module in modules:
                _hook(module, path, each, partial(_rotation, store, name, group, bool(each.get("inverse"))))


def _hook(module: nn.Module, path: str, each: Mapping[str, Any], rotation: Callable[[str, int], Any]) -> None:
    if not isinstance(module, nn.Linear):
        raise NotAModelError(
            f"transform_config rotates the {each['location']} of {path}, of class {type(module).__name__}: of linear "
            "layers alone is that read; open the folder that it was made from"
        )
    if each["location"] == "input":
        turn = rotation(path, module.in_features)
        module.register_forward_pre_hook(lambda _, args: (turn(args[0]), *args[1:]))
    else:
        turn = rotation(path, module.out_features)
        module.register_forward_hook(lambda _, __, output: turn(output))


def _rotation(store: TensorStore, name: str, group: Mapping[str, Any], inverse: bool, path: str, width: int) -> Any:
    """Return what multiplies blocks of ``width`` features by a group's matrix, or by its inverse."""
    block = group.get("head_dim") or width
    if not isinstance(block, int) or block < 1 or width % block:
        raise NotAModelError(
            f"{name} of transform_config rotates {block!s:.40} of the {width} features of {path} together"
        )
    if group["type"] == "hadamard":
        if block & (block - 1):
            raise NotAModelError(f"{name} of transform_config has a Hadamard matrix of {block}, no power of two")
        return BlockRotation(block)
    for tensor in _matrices(store, name, group):
        if store.tensors[tensor].shape == (block, block):
            matrix = store.read(tensor).float() / math.sqrt(block)
            return _MatrixRotation(matrix.T.contiguous() if inverse else matrix)
    raise NotAModelError(f"{name} of transform_config has a random matrix of {block} x {block}, which the files lack")


@dataclass(frozen=True, slots=True, eq=False)
class _MatrixRotation:
    """Multiplies every block of neighbouring features of ``[..., features]`` by ``matrix``, float32, in float32."""

    matrix: torch.Tensor

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        blocks = x.float().reshape(*x.shape[:-1], -1, len(self.matrix))
        return (blocks @ self.matrix.to(x.device)).reshape(x.shape).to(x.dtype)


def _matrices(store: TensorStore, name: str, group: Mapping[str, Any]) -> list[str]:
    """Return the tensors that hold a group's matrices: layers of one width share one, under the first one's name."""
    endings = tuple(f".{name}_{each['location']}.weight" for each in group["apply"])
    return [tensor for tensor in store.tensors if tensor.endswith(endings)]


def _named(network: nn.Module, targets: Sequence[str], ignore: Sequence[str]) -> Iterator[tuple[str, nn.Module]]:
    for path, module in network.named_modules():
        if any(_is(path, module, each) for each in targets) and not any(_is(path, module, each) for each in ignore):
            yield path, module


def _is(path: str, module: nn.Module, target: str) -> bool:
    classes = {cls.__name__ for cls in type(module).__mro__}
    return matches(target[3:], path) if target.startswith("re:") else target == path or target in classes

"""Layers that must get one scheme together: tied tensors, projections that a runtime runs as one, experts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workbench.models.layer import Layer

Bond = tuple[str, ...]
"""Names of layers that share one scheme."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Layers that share one scheme: those whose whole names match ``pattern`` with the same groups."""

    title: str
    pattern: str

    def bonds(self, layers: Iterable[Layer]) -> tuple[Bond, ...]:
        """Return the groups of two or more layers, in model order."""
        names_by_group: dict[tuple[str, ...], list[str]] = {}
        whole = re.compile(self.pattern).fullmatch  # looked up once: there can be 10,000 layers
        for layer in layers:
            if match := whole(layer.name):
                names_by_group.setdefault(match.groups(), []).append(layer.name)
        return tuple(tuple(names) for names in names_by_group.values() if len(names) > 1)


FUSED_QKV = Sharing(title="fused query, key and value", pattern=r"(.*\.|)[qkv]_proj")
FUSED_GATE_UP = Sharing(title="fused gate and up", pattern=r"(.*\.|)(?:gate|up)_proj")
FUSED_W1_W3 = Sharing(title="fused gate and up", pattern=r"(.*\.|)w[13]")
EXPERTS = Sharing(title="experts of one mixture", pattern=r"(.*\bexperts)\.\d+\..*")
"""They run as one grouped product."""
EXPERTS_OF_PROJECTION = Sharing(title="experts of one projection", pattern=r"(.*\bexperts)\.\d+\.(.+)")
"""They are one tensor."""
FUSED_EXPERTS = Sharing(title="experts of all mixtures", pattern=r"(?:.*\.)?(experts)\.(?:gate_up|down)_proj")
"""transformers decodes those of a whole checkpoint by one scheme."""


def bonds_of(layers: Sequence[Layer], sharing: Iterable[Sharing]) -> tuple[Bond, ...]:
    """Return all groups that ``sharing`` finds among ``layers``."""
    return tuple(bond for rule in sharing for bond in rule.bonds(layers))


def sharing_groups(layers: Sequence[Layer], bonds: Iterable[Bond] = ()) -> tuple[tuple[Layer, ...], ...]:
    """Return the layers in groups that must share a weight scheme (tied tensors, ``shares_with``, ``bonds``).

    In model order; a layer that shares with none is a group of its own.
    """
    parent = {layer.name: layer.name for layer in layers}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    def join(a: str, b: str) -> None:
        if a in parent and b in parent:
            parent[root(b)] = root(a)

    for layer in layers:
        for other in (*layer.shares_with, *((layer.tied_to,) if layer.tied_to else ())):
            join(layer.name, other)
    for bond in bonds:
        for other in bond[1:]:
            join(bond[0], other)
    groups: dict[str, list[Layer]] = {}
    for layer in layers:
        groups.setdefault(root(layer.name), []).append(layer)
    return tuple(tuple(group) for group in groups.values())

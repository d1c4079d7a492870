"""The rows of the layer tree: blocks, layers and kept tensors as flat arrays of small records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from workbench.models.layer import KeptTensor, Layer
from workbench.models.summary import ModelSummary

ROOT = -1
KEPT_TITLE = "Kept in FP"


@dataclass(slots=True)
class Row:
    """One row: a block (``layer`` and ``kept`` None), a layer or a kept tensor.  ``label`` is what column 0 shows."""

    label: str
    parent: int
    position: int
    layer: Layer | None = None
    kept: KeptTensor | None = None
    children: list[int] = field(default_factory=list)

    @property
    def is_group(self) -> bool:
        """Whether the row is a block."""
        return self.layer is None and self.kept is None


@dataclass(slots=True)
class Rows:
    """All rows; ``top`` the indices without parent, ``of`` the row of each layer."""

    rows: list[Row] = field(default_factory=list)
    top: list[int] = field(default_factory=list)
    of: dict[str, int] = field(default_factory=dict)

    def add(self, label: str, parent: int = ROOT, layer: Layer | None = None, kept: KeptTensor | None = None) -> int:
        """Append a row and return its index."""
        siblings = self.top if parent == ROOT else self.rows[parent].children
        index = len(self.rows)
        self.rows.append(Row(label, parent, len(siblings), layer, kept))
        siblings.append(index)
        if layer is not None:
            self.of[layer.name] = index
        return index


def tree(summary: ModelSummary, wanted: set[str] | None = None) -> Rows:
    """Return blocks with their layers in the order of the network, then the kept tensors.

    A block of a single layer is no block.  ``wanted`` limits the layers; kept tensors are then left out.
    """
    rows = Rows()
    blocks: dict[str, int] = {}
    sizes = Counter(layer.block for layer in summary.layers)
    for layer in summary.layers:
        if wanted is not None and layer.name not in wanted:
            continue
        if not layer.block or sizes[layer.block] < 2:
            rows.add(layer.name, layer=layer)
            continue
        if layer.block not in blocks:
            blocks[layer.block] = rows.add(layer.block)
        rows.add(short_name(layer), blocks[layer.block], layer=layer)
    if summary.kept and wanted is None:
        group = rows.add(KEPT_TITLE)
        for tensor in summary.kept:
            rows.add(tensor.name, group, kept=tensor)
    return rows


def flat(layers: Iterable[Layer]) -> Rows:
    """Return the layers in the given order without blocks (for a sorted table)."""
    rows = Rows()
    for layer in layers:
        rows.add(layer.name, layer=layer)
    return rows


def short_name(layer: Layer) -> str:
    """Return the layer's name without its block's."""
    prefix = f"{layer.block}."
    return layer.name[len(prefix) :] if layer.block and layer.name.startswith(prefix) else layer.name

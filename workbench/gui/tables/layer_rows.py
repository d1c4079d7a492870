"""The rows of the layer tree: blocks, layers and other tensors as flat arrays of small records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from workbench.models.layer import Layer, StoredTensor
from workbench.models.summary import ModelSummary

ROOT = -1
KEPT_TITLE = "Kept in FP"


@dataclass(slots=True)
class Row:
    """A block (``layer`` and ``other`` None), a layer or another tensor.  ``label`` is the text of column 0.

    ``children`` of a block is a list; an empty tuple else, as a list for each of 10,000 layers takes 2 ms.
    """

    label: str
    parent: int
    position: int
    layer: Layer | None = None
    other: StoredTensor | None = None
    children: list[int] | tuple[()] = ()

    @property
    def is_group(self) -> bool:
        """Whether the row is a block."""
        return self.layer is None and self.other is None


@dataclass(slots=True)
class Rows:
    """All rows; ``top`` the indices without parent, ``layers`` the row of each layer."""

    rows: list[Row] = field(default_factory=list)
    top: list[int] = field(default_factory=list)
    layers: dict[str, int] = field(default_factory=dict)

    def add(self, label: str, parent: int = ROOT, layer: Layer | None = None, other: StoredTensor | None = None) -> int:
        """Append a row and return its index."""
        siblings, index = self.children(parent), len(self.rows)
        self.rows.append(Row(label, parent, len(siblings), layer, other, [] if layer is None and other is None else ()))
        assert isinstance(siblings, list), "a row that is no block has none below it"
        siblings.append(index)
        if layer is not None:
            self.layers[layer.name] = index
        return index

    def children(self, index: int) -> list[int] | tuple[()]:
        """Return the indices of the rows below a row or ROOT."""
        return self.top if index == ROOT else self.rows[index].children


def tree(summary: ModelSummary, shown: Collection[str] | None = None) -> Rows:
    """Return blocks of two or more layers with their layers in the order of the network, then the other tensors.

    ``shown`` limits the layers; other tensors are then left out.
    """
    rows = Rows()
    blocks: dict[str, int] = {}
    sizes = Counter(layer.block for layer in summary.layers)
    for layer in summary.layers:
        if shown is not None and layer.name not in shown:
            continue
        if not layer.block or sizes[layer.block] < 2:
            rows.add(layer.name, layer=layer)
            continue
        if layer.block not in blocks:
            blocks[layer.block] = rows.add(layer.block)
        rows.add(short_name(layer), blocks[layer.block], layer=layer)
    if summary.others and shown is None:
        group = rows.add(KEPT_TITLE)
        for tensor in summary.others:
            rows.add(tensor.name, group, other=tensor)
    return rows


def flat(layers: Iterable[Layer]) -> Rows:
    """Return the layers in their order without blocks (for a sorted table)."""
    rows = Rows()
    for layer in layers:
        rows.add(layer.name, layer=layer)
    return rows


def short_name(layer: Layer) -> str:
    """Return the layer's name without its block's."""
    return layer.name.removeprefix(f"{layer.block}.") if layer.block else layer.name

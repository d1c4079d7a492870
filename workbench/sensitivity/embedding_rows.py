"""Which rows of embeddings the data look up: only those can cost anything, and only those need be rounded."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from workbench.models.data.batches import Data, batches_of, tappable
from workbench.models.layer import LayerKind
from workbench.models.model import Model


class _AllLookedUp(Exception):
    """Ends a forward pass: nothing behind the last embedding is of interest."""


def looked_up(model: Model, data: Data, names: Sequence[str], batch_size: int) -> dict[str, torch.Tensor]:
    """Return the rows (int64, in order) that ``data`` look up, for those of ``names`` that are embeddings.

    Embeddings that are used more than once, or as a head too, are left out.  A forward pass goes no further than the
    last of them.  Raises what running the model raises.
    """
    summary, tapped = model.summary, {layer.name for layer in tappable(model)}
    shared = {layer.tied_to for layer in summary.layers}
    tables = {
        name for name in names
        if (layer := summary.by_name[name]).kind is LayerKind.EMBEDDING and layer.calls == 1 and not layer.tied_to
        and name in tapped and name not in shared
    }  # fmt: skip
    used = {name: torch.zeros(summary.by_name[name].matrix[0], dtype=torch.bool) for name in tables}
    waiting: set[str] = set()

    def tap(name: str, ids: torch.Tensor, output: torch.Tensor) -> None:
        used[name][ids.detach().cpu().flatten()] = True
        waiting.discard(name)
        if not waiting:
            raise _AllLookedUp

    for batch in batches_of(model, data, batch_size) if tables else ():
        waiting |= tables
        try:
            with torch.no_grad():
                model.run(batch, tap=tap, layers=tuple(sorted(tables)))
        except _AllLookedUp:
            pass
    return {name: rows.nonzero().flatten() for name, rows in used.items()}

"""Between a calibration's curvature and llama.cpp's importance matrices: names, experts, what is missing.

An importance matrix holds the diagonal of ``A = E[x x^T]`` of every product, which is ``Curvature.columns``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from workbench.deployment.gguf_file import text_configuration
from workbench.errors import DataError, ExportError, NotAModelError
from workbench.models.gguf.architectures import architecture_of, by_name
from workbench.models.gguf.container import read_gguf
from workbench.models.gguf.imatrix import InputSquares, read_imatrix
from workbench.models.gguf.tensors import gguf_names, names_of
from workbench.models.layer import Layer, LayerKind
from workbench.models.summary import ModelSummary
from workbench.numerics.curvature import Curvature
from workbench.readable import few

MULTIPLIED = (LayerKind.LINEAR, LayerKind.EXPERTS)
"""What an importance matrix knows: weights that are multiplied with what their tap sees."""


def tensor_names(summary: ModelSummary) -> dict[str, tuple[str, ...]]:
    """Return llama.cpp's names of each layer's tensors; the parameter's own where llama.cpp has none."""
    names: dict[str, tuple[str, ...]] = {layer.name: (layer.parameter,) for layer in summary.layers}
    try:
        if summary.source.kind == "gguf":
            file = read_gguf(Path(summary.source.path))
            architecture, blocks = by_name(file.architecture), file.plain.get(f"{file.architecture}.block_count")
        else:
            _, config = text_configuration(summary)
            architecture = architecture_of(str(config.get("model_type")), ExportError)
            blocks = config.get(architecture.keys["block_count"])
    except (ExportError, NotAModelError):
        return names
    if architecture is None or not isinstance(blocks, int):
        return names
    look_up = gguf_names(architecture, blocks)
    return {layer: names_of(look_up, own[0]) or own for layer, own in names.items()}


def entries_of(summary: ModelSummary, curvature: Mapping[str, Curvature]) -> dict[str, InputSquares]:
    """Return the entries of every layer that was calibrated, by tensor.  A tied head is that of the shared tensor."""
    names, entries = tensor_names(summary), dict[str, InputSquares]()
    for layer in summary.layers:
        known = curvature.get(layer.name)
        if known is not None and layer.kind in MULTIPLIED:
            counts = np.full(len(known.by_run), known.count) if known.seen is None else known.seen
            means = known.by_run.astype(np.float32)
            squares = InputSquares(means=means, counts=counts.astype(np.int64))
            entries |= dict.fromkeys(names[layer.name], squares)
    return entries


def with_imatrix(
    summary: ModelSummary, curvature: Mapping[str, Curvature], path: str | Path
) -> tuple[dict[str, Curvature], str]:
    """Return ``curvature`` with the file's input statistics, and a note that says what the file knew of the model.

    A layer that no run has seen gets the file's columns and no gradients (NaN rows), as does the weight that a head
    shares.  Raises DataError for a file whose
    tensors are not this model's.
    """
    entries, names = read_imatrix(path), tensor_names(summary)
    layers = [layer for layer in summary.layers if layer.kind in MULTIPLIED]
    changed, used, missing = dict(curvature), set[str](), list[str]()
    for layer in layers:
        name = next((n for n in (*names[layer.name], layer.parameter, layer.name) if n in entries), None)
        if name is not None:
            used |= {name, *names[layer.name]}
            changed[layer.name] = _joined(layer, entries[name], curvature.get(layer.name), name)
        elif layer.tied_to is None:
            missing.append(layer.name)
    if not used:
        raise DataError(
            f"{path} matches none of the model's {len(layers)} layers: it has {few(list(entries))}, the model "
            f"{few([name for layer in layers for name in names[layer.name]])}; give this model's matrix"
        )
    for layer in layers:
        known = changed.get(layer.name)
        if layer.tied_to is not None and known is not None and not known.has_gradients:
            changed.setdefault(layer.tied_to, known)  # a table of tokens multiplies nothing but as the head
    unknown = [name for name in entries if name not in used]
    parts = [f"{Path(path).name} gave the input statistics of {len(used)} tensors"]
    parts += [f"it lacks {few(missing)}"] if missing else []
    parts += [f"the model has no {few(unknown)}"] if unknown else []
    return changed, "; ".join(parts)


def _joined(layer: Layer, entry: InputSquares, known: Curvature | None, name: str) -> Curvature:
    rows, columns = layer.matrix
    experts = layer.experts
    means = entry.means.reshape(-1, columns) if entry.means.size in (columns, experts * columns) else None
    if means is None:
        expected = f"{experts} x {columns}" if experts > 1 else f"{columns}"
        raise DataError(
            f"the importance matrix has {entry.means.size} values for {name}, the layer has {expected} inputs; it is "
            "another model's"
        )
    counts = np.broadcast_to(entry.counts, len(means)) if entry.counts.size in (1, len(means)) else None
    count = int(entry.counts.sum())
    means = means.astype(np.float64)
    if counts is not None and (counts == 0).any():  # what an expert without tokens would see is not known
        means = np.where(counts[:, None] > 0, means, means[counts > 0].mean(axis=0) if (counts > 0).any() else 1.0)
    several = len(means) > 1
    facts = {
        "columns": means if several else means[0], "counts": counts if several else None, "full": None, "shown": 0,
    }  # fmt: skip
    if known is not None:
        return replace(known, **facts, outputs=None, by_loss=None)  # type: ignore[arg-type]
    return Curvature(rows=np.full(rows, np.nan), count=count, **facts)  # type: ignore[arg-type]

"""An ONNX file layer by layer: what each part of it gives in the runtime, fed what the evaluation fed that part.

Where a plan rounds inputs, a number near the middle between two codes goes to the other one in the runtime, and what
follows differs by that.  Fed the same numbers, the parts between two rounded inputs have to agree to the rounding of
sums: then the graph computes what was evaluated, however far its answers drift.  Run through, the file shows where that
begins.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workbench.errors import ExportError
from workbench.models.model import Batch, Model, Replacement

UINT8 = 2
"""ONNX's number of the codes that are looked at.  Where they are int8, their values are: ONNX Runtime makes these uint8
on its own, and fails where they are outputs."""

FORCED = "evaluated:"
STEP = 1e-4
"""A difference of two rounded inputs, relative to the largest, from which it is that of two codes."""

Arrays = Mapping[str, np.ndarray]
RunGraph = Callable[[Path, Arrays, Sequence[str]], dict[str, np.ndarray]]
"""``run(file, inputs, names)`` returns the values called so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByLayers:
    """``apart`` is the largest difference of what a layer takes, with the evaluation's inputs before, relative to the
    largest number there, and ``at`` that layer.  ``first`` is the first layer whose codes differ when all is run
    through ("": none), ``there`` the share of its codes that do, ``most`` the largest such share.
    """

    apart: float
    at: str
    first: str
    there: float
    most: float

    @property
    def in_words(self) -> str:
        """A sentence about where the answers begin to differ."""
        same = f"fed the same inputs, no layer differs by more than {self.apart:.1g} (before {self.at})"
        if not self.first:
            return f"{same}; no code differs"
        shares = f"{self.there:.2g} of them, later {self.most:.2g}"
        return f"{same}; run through, codes differ from {self.first} on ({shares})"


@dataclass(slots=True, eq=False)
class _Taken:
    """What a layer takes each time it runs, before and after rounding, float32."""

    quantizer: Replacement
    before: list[np.ndarray] = field(default_factory=list)
    after: list[np.ndarray] = field(default_factory=list)

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        rounded = self.quantizer(tensor)
        self.before.append(tensor.detach().float().cpu().numpy())
        self.after.append(rounded.detach().float().cpu().numpy())
        return rounded


@dataclass(slots=True, kw_only=True, eq=False)
class _Quantizer:
    """The nodes of the file that round one value: ``entries`` (node, place) take it; ``rounded`` is what they give."""

    layer: str
    value: str
    entries: list[tuple[Any, int]] = field(default_factory=list)
    rounded: str = ""
    codes: tuple[np.ndarray, np.ndarray] | None = None
    """Scale and zero point where ``rounded`` are codes of 8 bits."""


def by_layers(file: Path, bound: Model, sample: Batch, takes: Arrays, run: RunGraph, place: Path) -> ByLayers | None:
    """Return how the parts of ``file`` agree with ``bound``, the quantized model, on one sample; None where no input is
    rounded in a way that can be told from the file.

    ``takes`` is the sample under the graph's names; files are written to the folder ``place``.
    """
    taken = {name: _Taken(quantizer) for name, quantizer in bound.overrides.inputs.items()}
    if not taken:
        return None
    with torch.no_grad():
        bound.run(sample, inputs=taken)
    paired = _paired(_quantizers(file, taken), taken)
    if not paired:
        return None
    through = run(_tapped(file, place / "through.onnx", paired, forced=False), takes,
                  [quantizer.rounded for quantizer, *_ in paired])  # fmt: skip
    paired = [
        _in_shape(*each, through[each[0].rounded]) for each in paired if each[1].size == through[each[0].rounded].size
    ]  # a convolution may have taken its padding in
    if not paired:
        return None
    first, shares = "", []
    for quantizer, _, after in paired:
        shares.append(_other_codes(quantizer, through[quantizer.rounded], after))
        first = first or (quantizer.layer if shares[-1] else "")
    named = {f"{FORCED}{quantizer.value}": before for quantizer, before, _ in paired}
    inner = [quantizer for quantizer, *_ in paired if quantizer.value not in takes]
    forced = run(_tapped(file, place / "forced.onnx", paired, forced=True), {**takes, **named},
                 list(dict.fromkeys(quantizer.value for quantizer in inner)))  # fmt: skip
    apart = {each.layer: _apart(forced[each.value], named[f"{FORCED}{each.value}"]) for each in inner}
    at = max(apart, key=lambda name: apart[name], default="")
    return ByLayers(
        apart=apart.get(at, 0.0), at=at or paired[0][0].layer, first=first, most=max(shares),
        there=next((share for share in shares if share), 0.0),
    )  # fmt: skip


def _in_shape(
    quantizer: _Quantizer, before: np.ndarray, after: np.ndarray, theirs: np.ndarray
) -> tuple[_Quantizer, np.ndarray, np.ndarray]:  # fmt: skip
    """Return what the evaluation rounded in the file's shape: a graph may have put axes together."""
    return quantizer, before.reshape(theirs.shape), after.reshape(theirs.shape)


def _apart(theirs: np.ndarray, ours: np.ndarray) -> float:
    largest = float(np.abs(ours).max(initial=0.0)) or 1.0
    return float(np.abs(theirs.reshape(ours.shape) - ours).max(initial=0.0)) / largest


def _other_codes(quantizer: _Quantizer, theirs: np.ndarray, after: np.ndarray) -> float:
    """Return the share of rounded numbers that are others."""
    if quantizer.codes is not None:
        scale, zero = quantizer.codes
        theirs = (theirs.astype(np.float32) - zero.astype(np.float32)) * scale
    differs = np.abs(theirs.reshape(after.shape) - after) > STEP * float(np.abs(after).max(initial=0.0))
    return float(differs.mean())


def _quantizers(file: Path, layers: Mapping[str, _Taken]) -> list[_Quantizer]:
    """Return the quantizers of layers' inputs in the order of the graph."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(file), load_external_data=False).graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    owners = _owners(graph, layers)
    quantizers: dict[tuple[str, str], _Quantizer] = {}
    mine: dict[str, _Quantizer] = {}
    for node in graph.node:
        layer = owners.get(node.output[0] if node.output else "")
        if layer is None:
            continue
        inside = next((mine[name] for name in node.input if name in mine and mine[name].layer == layer), None)
        for place, name in enumerate(node.input):
            if name and name not in constants and owners.get(name) != layer:
                quantizer = quantizers.setdefault((layer, name), _Quantizer(layer=layer, value=name))
                quantizer.entries.append((node.output[0], place))
                inside = quantizer
        if inside is None:
            continue
        mine[node.output[0]] = inside
        if node.op_type == "QuantizeLinear" and constants[node.input[2]].data_type == UINT8:
            scale, zero = (numpy_helper.to_array(constants[name]) for name in node.input[1:3])
            inside.rounded, inside.codes = node.output[0], (scale, zero)
        elif inside.codes is None:
            inside.rounded = node.output[0]  # the last one
    return list(quantizers.values())


def _owners(graph: Any, layers: Mapping[str, _Taken]) -> dict[str, str]:
    """Return the layers of the nodes that round their inputs, by the nodes' outputs."""
    owners = {}
    for node in graph.node:
        stem, dot, _ = (node.output[0] if node.output else "").rpartition(".input.")
        if dot and stem in layers:
            owners[node.output[0]] = stem
    return owners


def _paired(
    quantizers: list[_Quantizer], taken: Mapping[str, _Taken]
) -> list[tuple[_Quantizer, np.ndarray, np.ndarray]]:  # fmt: skip
    """Return each quantizer with what the evaluation rounded there; layers that ran another number of times are left
    out."""
    times: dict[str, list[_Quantizer]] = {}
    for quantizer in quantizers:
        times.setdefault(quantizer.layer, []).append(quantizer)
    return [
        (quantizer, own.before[at], own.after[at]) for layer, each in times.items()
        if len((own := taken[layer]).before) == len(each) for at, quantizer in enumerate(each)
    ]  # fmt: skip


def _tapped(file: Path, out: Path, paired: Sequence[tuple[_Quantizer, Any, Any]], *, forced: bool) -> Path:
    """Write ``file`` with more outputs; ``forced``: its quantizers take inputs of the graph."""
    import onnx
    from onnx import helper

    model = onnx.load(str(file), load_external_data=False)
    graph, made = model.graph, {node.output[0]: node for node in model.graph.node if node.output}
    names = [each.value if forced else each.rounded for each, *_ in paired]
    if forced:
        for value, shape in {each.value: before.shape for each, before, _ in paired}.items():
            graph.input.append(helper.make_tensor_value_info(f"{FORCED}{value}", 1, list(shape)))
        for output, at in (entry for each, *_ in paired for entry in each.entries):
            made[output].input[at] = f"{FORCED}{made[output].input[at]}"
    known = {each.name for each in (*graph.output, *graph.input)}
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(names) if name not in known)
    for name in {entry.value for tensor in graph.initializer for entry in tensor.external_data
                 if entry.key == "location"}:  # fmt: skip
        if not (out.parent / name).exists():
            _beside(file.with_name(name), out.parent / name)
    onnx.save(model, str(out))
    return out


def _beside(source: Path, target: Path) -> None:
    """Have the bytes of ``source`` under another name, copied only where they cannot be linked."""
    try:
        os.link(source, target)
    except OSError:
        try:
            shutil.copyfile(source, target)
        except OSError as error:
            raise ExportError(f"the tensors beside the ONNX file cannot be copied: {error}") from error

"""Whole second moments of layers' inputs and output gradients, collected where an algorithm asks for them.

Predictions need diagonals, which a session stores.  Whole moments of a model are larger than the model: they are
collected again from the calibration's data, some layers at a time, and never stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from workbench.errors import AlgorithmError
from workbench.measurement.expert_sums import ExpertMoments, shown_everything, unit_of
from workbench.measurement.finite_batches import all_finite
from workbench.measurement.gradients import GradientPass, fitting_batch
from workbench.measurement.partial_results import digest
from workbench.measurement.shared_weights import whole_of_table
from workbench.measurement.weight_gradients import ConvolutionGeometry, same_tensor
from workbench.memory import Spill, available_memory, disk_room, size_text
from workbench.models.data.batches import (
    Data,
    Padding,
    numbered_batches,
    routed,
    samples_of,
    tappable,
)
from workbench.models.layer import Layer, LayerKind
from workbench.models.model import Batch, Model
from workbench.numerics.curvature import Curvature
from workbench.numerics.statistics.symmetric_sum import SymmetricSum, held_bytes
from workbench.progress import Progress, silent

POSITIONS = 2048
"""How many of a convolution's positions in one batch, drawn at random, enter its second moment: all would cost more
than the forward pass."""

OUTPUT_POSITIONS = 256
"""How many of a sample's tokens, evenly spaced, enter the second moment of a linear layer's output gradients."""

OUTPUT_ROWS = 2048
"""Up to this many outputs a linear layer's output gradients have a whole second moment, which improves GPTQ but is not
required: its size grows with the square."""

SHARE_OF_MEMORY = 4
"""One part in so many of the free memory holds the moments of one group of layers."""

LEAST_BYTES = 1 << 28
"""A group's moments may take as much on any machine."""

TRANSFORM_BYTES = 1 << 30
"""The most bytes of moments that are rewritten with a model; later layers have the diagonal."""


def digest_of(curvature: Mapping[str, Curvature]) -> str:
    """Return a checksum of curvature; nothing is collected for it."""
    return curvature.digest if isinstance(curvature, SecondMoments) else digest(dict(curvature), (Curvature,))


class SecondMoments(Mapping[str, Curvature]):
    """The curvature of every layer of ``curvature``, with its whole moments: those of one group of layers at a time.

    A group is consecutive layers whose moments take at most ``nbytes`` together (default: a quarter of the free memory,
    or what the disk has room for, where they lie beyond that); it is collected by one run over ``data`` when one of its
    layers is asked for, and replaces the group before.  Groups decide nothing about the values.  Curvature that has its
    whole moments already, as in sessions of earlier versions, is returned as it is.  ``progress`` is called for every
    batch, always at 0 (see :func:`workbench.progress.rising`), and may cancel.  Raises AlgorithmError for a layer whose
    moments alone fit neither into the free memory nor onto the disk.
    """

    def __init__(
        self, model: Model, data: Data, curvature: Mapping[str, Curvature], *, batch_size: int = 8, seed: int = 0,
        nbytes: int | None = None, progress: Progress = silent,
    ) -> None:  # fmt: skip
        self._model, self._data, self._curvature = model, data, curvature
        self._batch_size = fitting_batch(batch_size, data, model, gradients=True)
        self._seed, self._progress = seed, progress
        self._all_experts = any(shown_everything(curvature.get(name)) for name in model.routed)
        self._nbytes = nbytes or max(available_memory() // SHARE_OF_MEMORY, disk_room(), LEAST_BYTES)
        self._groups = self._grouped()
        self._collected: _Sums | None = None

    def __iter__(self) -> Iterator[str]:
        return iter(self._curvature)

    def __len__(self) -> int:
        return len(self._curvature)

    def __getitem__(self, name: str) -> Curvature:
        if self._collected is None or name not in self._collected.layers:
            number = next((number for number, group in enumerate(self._groups) if name in group), None)
            if number is None:
                return whole_of_table(self._model.summary.by_name[name].kind, self._curvature[name])
            self._collected = None
            self._collected = self._collect(self._groups[number])
        return self._collected.mean(name, self._curvature[name])

    @property
    def groups(self) -> int:
        """How many groups of layers there are: as many runs over the data collect all."""
        return len(self._groups)

    def collect_first(self) -> tuple[str, ...]:
        """Collect the moments of the first group's layers now, and return their names."""
        self._collected = self._collect(self._groups[0]) if self._groups else None
        return () if self._collected is None else tuple(self._collected.layers)

    @property
    def digest(self) -> str:
        """A checksum of what decides the values."""
        return digest([digest_of(self._curvature), repr(self._data.record), self._batch_size, self._seed])

    def bounded(self, nbytes: int = TRANSFORM_BYTES) -> tuple[dict[str, Curvature], tuple[str, ...]]:
        """Return the curvature of all layers, whole for the first ``nbytes`` of moments, and the layers beyond."""
        layers = {name: layer for group in self._groups for name, layer in group.items()}
        whole: dict[str, Layer] = {}
        for name, layer in layers.items():
            nbytes -= _nbytes(layer, whole=True)
            if nbytes < 0:
                break
            whole[name] = layer
        sums = self._collect(whole) if whole else None
        collected = {} if sums is None else {name: sums.mean(name, self._curvature[name]) for name in whole}
        return {**self._curvature, **collected}, tuple(name for name in layers if name not in whole)

    def _grouped(self) -> list[dict[str, Layer]]:
        groups: list[dict[str, Layer]] = []
        room, position = 0, self._model.summary.position
        layers = (*tappable(self._model), *routed(self._model))
        for layer in sorted(layers, key=lambda each: position[each.tied_to or each.name]):  # as their weights are asked
            known = self._curvature.get(layer.name)
            if known is None or known.full is not None or layer.kind is LayerKind.EMBEDDING:
                continue
            if not groups or _nbytes(layer) > room:
                groups.append({})
                room = self._nbytes
            groups[-1][layer.name] = layer
            room -= _nbytes(layer)
        return groups

    def _collect(self, group: Mapping[str, Layer]) -> _Sums:
        name, needed = next(iter(group)), sum(_nbytes(layer) for layer in group.values())
        if needed > (most := available_memory() + disk_room()):
            raise AlgorithmError(
                f"the second moments of {name} take {size_text(needed)}, and {size_text(most)} of memory and disk are "
                "free; choose rtn-clip for it"
            )
        passes, left_out, alone = GradientPass(self._model), set[int](), set[str]()
        while True:
            weighed = {name for name in group if self._is_weighed(name)}
            sums = _Sums(layers=group, weighed=weighed, alone=alone, spill=Spill(share=1 / SHARE_OF_MEMORY))
            bad = self._run(passes, sums, left_out)
            if bad is not None:
                left_out.add(bad)
            elif differing := sums.differing():
                alone |= differing
            else:
                return sums

    def _is_weighed(self, name: str) -> bool:
        """Return whether tokens are weighed by their gradients: earlier versions noted nothing of those."""
        known = self._curvature.get(name)
        return known is not None and known.by_loss is not None

    def _run(self, passes: GradientPass, sums: _Sums, left_out: set[int]) -> int | None:
        """Add up all batches but those left out; return the number of one with NaN or infinite values, if any."""
        total = -(-len(self._data) // self._batch_size)
        for count, batch in numbered_batches(self._model, self._data, self._batch_size):
            text = f"second moments of {len(sums.layers)} layers, batch {count + 1} of {total}"
            self._progress(0.0, text)
            if count in left_out:
                continue
            sums.begin(batch)
            passes.run(
                batch, count * self._batch_size, self._seed, sums.forward, sums.backward, layers=tuple(sums.layers),
                proceed=sums.is_finite, experts=sums.experts, all_experts=self._all_experts,
            )  # fmt: skip
            if not sums.finite:
                return count
        return None


@dataclass(slots=True, kw_only=True)
class _Sums:
    """Sums of products over positions, ``counts`` of them, and over ``sampled`` tokens' output gradients.

    ``inputs`` are of ``[groups, columns, columns]``; layers that get the same tensor share the sums of ``owner``,
    but for those that are ``alone`` and those that are ``weighed``, whose tokens count as their squared gradients do.
    Gradients are multiplied by ``units``, powers of two: the squares of tiny ones would vanish.
    ``outputs`` are of ``[rows, rows]``.  ``calls`` counts the tensors of each layer;
    ``apart`` are layers that did not get their owner's tensor again.
    """

    layers: Mapping[str, Layer]
    weighed: set[str]
    alone: set[str]
    spill: Spill
    experts: ExpertMoments = field(init=False)
    calls: Counter[str] = field(default_factory=Counter)
    apart: set[str] = field(default_factory=set)
    owner: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, SymmetricSum] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    units: dict[str, float] = field(default_factory=dict)
    outputs: dict[str, SymmetricSum] = field(default_factory=dict)
    sampled: dict[str, int] = field(default_factory=dict)
    finite: bool = True
    _padding: Padding = Padding()
    _samples: int = 1
    _last: tuple[str, torch.Tensor, int] | None = None
    _shared: tuple[str, np.ndarray] | None = None

    def __post_init__(self) -> None:
        self.experts = ExpertMoments(spill=self.spill, weighed=self.weighed)

    def begin(self, batch: Batch) -> None:
        self._padding, self._last, self._samples = Padding.of(batch), None, samples_of(batch)

    def forward(self, name: str, tensor: torch.Tensor, output: torch.Tensor) -> None:
        """Add what a layer is multiplied with; the same tensor is multiplied once for all layers that get it."""
        if name in self.weighed:
            return
        last = self._last
        shared = last is not None and last[2] == tensor._version and same_tensor(last[1], tensor)
        at_hand = last[0] if last is not None and shared and name not in self.alone else name
        owner = self.owner.setdefault(name, at_hand)
        self.calls[name] += 1
        if owner not in (name, at_hand):
            self.apart.add(name)
        self._last = (owner, tensor, tensor._version)
        rows = _multiplied(self.layers[name], tensor, output, self._padding) if owner == name else None
        if rows is not None:
            self._add(name, rows)

    def _add(self, name: str, rows: torch.Tensor) -> None:
        if name not in self.inputs:
            self.inputs[name] = SymmetricSum(len(rows), rows.shape[-1], rows, self.spill)
            self.counts[name] = 0
        self.inputs[name].add(rows)
        self.counts[name] += rows.shape[1]

    def backward(self, name: str, tensor: torch.Tensor, gradient: torch.Tensor) -> None:
        layer = self.layers[name]
        if name in self.weighed:
            lengths = gradient.reshape(-1, layer.matrix[0]).float().norm(dim=1, keepdim=True)
            self.finite = self.finite and bool(lengths.isfinite().all())
            self.units[name] = self.units.get(name) or unit_of(lengths)
            rows = tensor.reshape(-1, tensor.shape[-1]).float() * (lengths * (self.units[name] or 1.0))
            self._add(name, rows.unsqueeze(0))
        if layer.kind is not LayerKind.LINEAR or layer.matrix[0] > OUTPUT_ROWS or not gradient.numel():
            return
        samples = self._samples if gradient.numel() % (self._samples * layer.matrix[0]) == 0 else 1
        each = gradient.reshape(samples, -1, layer.matrix[0])
        some = each[:, :: -(-each.shape[1] // OUTPUT_POSITIONS)].reshape(-1, layer.matrix[0]).float()
        self.finite = self.finite and bool(some.isfinite().all())
        if name not in self.outputs:
            self.outputs[name], self.sampled[name] = SymmetricSum(1, some.shape[-1], some, self.spill), 0
        self.outputs[name].add(some.unsqueeze(0))
        self.sampled[name] += len(some)

    def is_finite(self, output: torch.Tensor) -> bool:
        self.finite = all_finite(output)
        return self.finite

    def differing(self) -> set[str]:
        """Return the layers that were taken to share their inputs and did not at every call."""
        return self.apart | {name for name, owner in self.owner.items() if self.calls[name] != self.calls[owner]}

    def mean(self, name: str, known: Curvature) -> Curvature:
        """Return ``known`` with the layer's whole moments; as it is where no batch reached the layer."""
        if name in self.experts.sums:
            mean = self.experts.means(name).cpu()
            return replace(known, full=(_as_large(mean, known) if name in self.weighed else mean).numpy())
        if name in self.weighed and name in self.inputs:
            mean = _as_large(self.inputs[name].mean(self.counts[name]), known)[0]
            return replace(known, full=mean.numpy(), outputs=self._outputs(name))
        owner = self.owner.get(name, "")
        if owner not in self.inputs:
            return known
        if self._shared is None or self._shared[0] != owner:  # the layers after it may get the same inputs
            mean = self.inputs[owner].mean(self.counts[owner])
            self._shared = owner, (mean if self.layers[owner].kind.is_convolution else mean[0]).numpy()
        return replace(known, full=self._shared[1], outputs=self._outputs(name))

    def _outputs(self, name: str) -> np.ndarray | None:
        return self.outputs[name].mean(self.sampled[name])[0].numpy() if name in self.outputs else None


def _as_large(means: torch.Tensor, known: Curvature) -> torch.Tensor:
    """Return weighed moments ``[runs, columns, columns]`` in the unit of the inputs' squares, by their traces."""
    traces = means.diagonal(dim1=1, dim2=2).sum(dim=1, dtype=torch.float64)
    sums = torch.from_numpy(known.by_run.sum(axis=1)).double()
    return means * torch.where(traces > 0, sums / traces.clamp_min(1e-300), 0.0).float()[:, None, None]


def _multiplied(layer: Layer, tensor: torch.Tensor, output: torch.Tensor, padding: Padding) -> torch.Tensor | None:
    """Return what a layer is multiplied with, float32 ``[groups, positions, columns]``; None where it is not known."""
    if layer.kind is LayerKind.LINEAR:
        return padding.real(tensor).reshape(1, -1, tensor.shape[-1]).float()
    geometry = ConvolutionGeometry.of(layer, tensor, output) if output.requires_grad else None
    return None if geometry is None else sampled_inputs(geometry, tensor, padding)


def _nbytes(layer: Layer, *, whole: bool = False) -> int:
    """Return the bytes of a layer's moments, at most, as they are summed, or of the ``whole`` matrices."""
    rows, columns = layer.matrix
    outputs = rows if layer.kind is LayerKind.LINEAR and rows <= OUTPUT_ROWS else 0
    if whole:
        return 4 * (layer.experts * columns**2 + outputs**2)
    return held_bytes(columns, layer.experts) + held_bytes(outputs)


def sampled_inputs(geometry: ConvolutionGeometry, x: torch.Tensor, padding: Padding) -> torch.Tensor | None:
    """Return a convolution's unfolded inputs at some real positions, float32 ``[groups, positions, columns]``."""
    x = x.detach().float()
    count = 0 if geometry.transposed else geometry.positions(x)
    mask = padding.at((len(x), *geometry.steps(x.shape[2:]))) if count else None
    real = None if mask is None else mask.flatten().nonzero().flatten().cpu()
    total = count if real is None else len(real)
    if total <= POSITIONS:
        return geometry.inputs(x, real)
    some = torch.randint(total, (POSITIONS,), generator=torch.Generator().manual_seed(total))
    return geometry.inputs(x, some if real is None else real[some])

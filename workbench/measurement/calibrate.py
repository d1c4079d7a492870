"""Batches and taps to statistics and curvature: one streaming pass over the calibration data.

Statistics and second moments of batches add up, in any order; a batch in which anything is NaN or infinite is left out
whole and named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import partial

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from workbench.errors import DataError
from workbench.measurement.expert_sums import ExpertSums, Observed, RoutedSums, add_to, relative_error, scatter_of
from workbench.measurement.finite_batches import all_finite
from workbench.measurement.gini_impurity import impurities_of
from workbench.measurement.gradients import GradientPass, fitting_batch, sample_generators
from workbench.measurement.partial_results import pieces_of
from workbench.measurement.token_outliers import BatchPlaces, PlacedPeaks, TokenSums
from workbench.measurement.weight_gradients import ConvolutionGeometry, Sketches, Squares, row_and_column_squares
from workbench.models.data.batches import (
    Data,
    Padding,
    numbered_batches,
    require_classes,
    require_data,
    require_repeatable,
    routed,
    samples_of,
    tappable,
    units_of,
)
from workbench.models.layer import Layer, LayerKind
from workbench.models.model import Batch, Model
from workbench.models.placement import ran_on
from workbench.models.workers import current as workers_in_use
from workbench.numerics.curvature import Curvature
from workbench.numerics.statistics.input_costs import InputCosts
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.numerics.statistics.observe import observe, observe_tokens
from workbench.numerics.statistics.outliers import Peaks, TokenOutliers
from workbench.progress import Progress, silent


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """What one pass observed.

    ``statistics`` maps (layer, ``input`` | ``output``); ``curvature`` maps every layer that a tap can see, tied ones
    under their own name too; ``moments`` the mean square of every input channel (the diagonal of A, float64
    ``[channels]``) wherever inputs are floating-point.  ``outliers`` maps (layer, ``input`` | ``output``) to the tokens
    with the largest values.  ``samples`` is how many were used; ``notes`` names batches left out and layers that no
    data reached; ``impurities`` are every used sample's (:mod:`workbench.measurement.gini_impurity`), for logits.

    The curvature of weight ``ij`` is ``rows_i * columns_j``, per unit of the model's loss (a token for token logits,
    else a sample).  ``columns`` is the diagonal of ``A = E[x x^T]`` for linear layers, and ``rows`` makes every row's
    sum that of the Fisher information's diagonal, ``E[g_ij^2]`` with ``g`` the gradient of a whole sample's
    log-likelihood. So it counts what K-FAC's ``E[d_i^2]`` leaves out: errors that add up over correlated positions, as
    in the keys and values that attention averages (on a small Llama the rank agreement with measured losses rises from
    0.90 to 0.97). Embeddings and convolutions have the diagonal's row and column sums.  ``by_loss`` compares the
    columns of a linear layer as the diagonal's sums do, its positions taken as independent where the gradient is not
    formed: the first token of many language models has inputs of a thousand times the others', and a small gradient.
    Whole second moments are those of :class:`workbench.measurement.second_moments.SecondMoments`.
    """

    statistics: Mapping[tuple[str, str], LayerStatistics]
    curvature: Mapping[str, Curvature]
    samples: int
    notes: tuple[str, ...]
    moments: Mapping[str, np.ndarray] = field(default_factory=dict)
    outliers: Mapping[tuple[str, str], TokenOutliers] = field(default_factory=dict)
    impurities: np.ndarray = field(default_factory=lambda: np.empty(0))


def calibrate(
    model: Model, dataset: Data, *, batch_size: int = 8, seed: int = 0, curvature: bool = True, first_sample: int = 0,
    all_experts: bool = False, progress: Progress = silent,
) -> Calibration:  # fmt: skip
    """Observe every layer's input and output on ``dataset``, and with ``curvature`` also the diagonals of A and G.

    ``batch_size`` is the most samples that run at once: long samples of large models run fewer at a time.
    ``seed`` draws the labels of each sample: the same data, batch size and seed give the same bits, other batch sizes
    the same numbers but for the order in which they are added.  ``first_sample`` numbers the first sample, so that the
    statistics of several parts of one data set merge to those of the whole.
    ``all_experts``: the inputs of a mixture's experts are those that all tokens would give them, not only the tokens
    that the router sends; gradients are those of the network as it is.  Raises CannotRunError for weights-only models,
    DataError for an empty data set or one whose every batch is NaN.
    """
    summary = model.summary
    require_data(model, dataset, "calibration")
    batch_size = fitting_batch(batch_size, dataset, model, gradients=True) if curvature else batch_size
    saved = pieces_of("calibration", SAVED, lambda: {
        "model": summary.fingerprint, "place": ran_on(model), "data": repr(dataset.record), "batch_size": batch_size,
        "seed": seed, "curvature": curvature, "first_sample": first_sample, "all_experts": all_experts,
    })  # fmt: skip
    done, state = saved.load("sums") or (0, {})
    sums = _Sums(layers=_layers(model), **state)
    if done:
        saved.goes_on(f"calibration continues at batch {done + 1} of {-(-len(dataset) // batch_size)}")
    pieces = _pieces(model, dataset, batch_size, done, Piece(
        seed=seed, curvature=curvature, first=first_sample, all_experts=all_experts
    ), progress)  # fmt: skip
    workers = workers_in_use()
    observed = map(partial(_compact, model), pieces) if workers is None else workers.map(model, _observed, pieces)
    for number, contribution in enumerate(observed, done):
        sums.add(contribution, number)
        if saved.due():
            saved.save({"sums": (number + 1, sums.state())})
    if not sums.samples:
        raise DataError(f"no batch of {dataset.record.name} ran without NaN or infinity: {sums.notes[0]}")
    progress(1.0, "calibrated")
    return sums.result(all_experts)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Piece:
    """A batch to observe, and how; ``first`` is the number of its first sample.

    With the first batch of all, whether the network is random is tried, too.
    """

    batch: Batch = field(default_factory=dict)
    seed: int = 0
    curvature: bool = True
    first: int = 0
    all_experts: bool = False
    is_first: bool = False


def _pieces(
    model: Model, dataset: Data, batch_size: int, done: int, like: Piece, progress: Progress
) -> Iterator[Piece]:  # fmt: skip
    """Yield the batches from number ``done`` on."""
    for number, batch in numbered_batches(model, dataset, batch_size, progress, "calibrating"):
        if number < done:
            continue
        yield replace(like, batch=batch, first=like.first + number * batch_size, is_first=not number)


def observe_batch(model: Model, batch: Batch) -> dict[tuple[str, str], LayerStatistics]:
    """Do with one batch, on the model's device, what :func:`calibrate` with curvature does; returns its statistics."""
    contribution = _observed(model, Piece(batch=batch))
    return {(name, tap): statistics for name, tap, (statistics, *_) in contribution.observed}


def _observed(model: Model, piece: Piece) -> _Contribution:
    """Run a batch and return what it contributes."""
    layers, batch = _layers(model), model.on_device(piece.batch)
    sums = _BatchSums(
        model=model, batch=batch, layers=layers, places=BatchPlaces.of(batch, piece.first), padding=Padding.of(batch),
        sketches=Sketches(generators=sample_generators(~piece.seed, piece.first, batch)),
    )  # fmt: skip
    if piece.curvature:
        output = GradientPass(model).run(
            batch, piece.first, piece.seed, sums.forward, sums.backward, proceed=sums.proceeds, experts=sums.experts,
            all_experts=piece.all_experts, entering=sums.entering,
        )  # fmt: skip
    else:
        with torch.no_grad():
            output = model.run(
                batch, tap=sums.forward, layers=tuple(layers), experts=sums.experts.forward,
                everywhere=piece.all_experts,
            )  # fmt: skip
            sums.proceeds(output)
    if piece.is_first:
        require_repeatable(model, batch, output)
    sums.experts.look = None  # which refers to the sums: nothing would be freed before the next search for cycles
    return _Contribution(
        observed=sums.observed, gradients=sums.gradients, experts=sums.experts, bad=sums.bad,
        units=units_of(batch, model.summary), samples=samples_of(batch), impurities=sums.impurities,
        costs=sums.costs,
    )  # fmt: skip


def _compact(model: Model, piece: Piece) -> _Contribution:
    """Return what a batch contributes, its arrays copied: among activations, which are freed, small ones would keep the
    memory from being used again (SmolLM2-135M took 0.2 GB more, and fresh pages for each batch)."""
    batch = _observed(model, piece)
    return replace(batch, observed=deepcopy(batch.observed), costs=deepcopy(batch.costs))


def _layers(model: Model) -> dict[str, Layer]:
    return {layer.name: layer for layer in (*tappable(model), *routed(model))}


SAVED = (LayerStatistics, TokenOutliers, TokenSums, PlacedPeaks, BatchPlaces, Peaks, RoutedSums, InputCosts)
"""What the sums of an interrupted pass are made of."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Contribution:
    """What one batch contributes; ``bad`` says where it is not finite, and then nothing of it counts."""

    observed: list[tuple[str, str, Observed]]
    gradients: list[tuple[str, Squares]]
    experts: ExpertSums
    bad: str
    units: int
    samples: int
    impurities: list[float]
    costs: InputCosts


@dataclass(slots=True, kw_only=True)
class _BatchSums:
    """What one batch contributes, while it runs."""

    model: Model
    batch: Batch
    layers: Mapping[str, Layer]
    places: BatchPlaces
    padding: Padding
    sketches: Sketches
    observed: list[tuple[str, str, Observed]] = field(default_factory=list)
    gradients: list[tuple[str, Squares]] = field(default_factory=list)
    geometry: dict[str, ConvolutionGeometry | None] = field(default_factory=dict)
    bad: str = ""
    impurities: list[float] = field(default_factory=list)
    costs: InputCosts = field(default_factory=InputCosts)
    exponents: dict[str, int] = field(default_factory=dict)
    experts: ExpertSums = field(init=False)
    _seen: dict[str, _Seen] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.experts = ExpertSums(look=self._experts)

    def _experts(self, name: str, tap: str, rows: torch.Tensor) -> Observed | None:
        statistics, squares, _ = observe_tokens(rows, -1)
        if statistics.non_finite and not self.bad:
            self.bad = f"the {tap} of {name}"
        self._bounded(name, tap, statistics)
        return statistics, squares, None

    def forward(self, name: str, tensor: torch.Tensor, output: torch.Tensor) -> None:
        layer = self.layers[name]
        axis = channel_axis(layer)
        if not tensor.numel():  # called with no rows: no data reach it
            return
        if tensor.is_floating_point():
            self._observe(name, "input", tensor, axis)
        self._observe(name, "output", output, axis)
        if axis == 1 and output.requires_grad:
            self.geometry[name] = ConvolutionGeometry.of(layer, tensor, output)

    def backward(self, name: str, tensor: torch.Tensor, gradient: torch.Tensor) -> None:
        layer, geometry = self.layers[name], self.geometry.get(name)
        if not tensor.numel():
            return
        squares = row_and_column_squares(layer, tensor, gradient, samples_of(self.batch), geometry, self.sketches)
        if squares is None:
            return
        self.gradients.append((name, squares))
        if not bool(squares[0].isfinite().all()):
            self.bad = self.bad or f"the gradient at the output of {name}"

    def entering(self, name: str, tensor: torch.Tensor, gradient: torch.Tensor) -> None:
        if name in self.exponents:
            self.costs.note(name, tensor, gradient, self.exponents[name])

    def _bounded(self, name: str, tap: str, statistics: LayerStatistics) -> None:
        if tap == "input":
            self.exponents[name] = max(self.exponents.get(name, statistics.exponent), statistics.exponent)

    def proceeds(self, output: torch.Tensor) -> bool:
        """Return whether all is finite so far; raises DataError for labels of classes that the model does not have."""
        require_classes(self.batch, output, self.model.summary.output)
        if not self.bad and not all_finite(output):
            self.bad = "the model's output"
        if not self.bad and self.model.summary.output.is_logits:
            self.impurities = impurities_of(self.model, output, self.batch)
        return not self.bad

    def _observe(self, name: str, tap: str, tensor: torch.Tensor, axis: int) -> None:
        """Observe once what several layers share (the inputs of query, key and value; an output that is an input)."""
        shared = next((each for each in self._seen.values() if each.is_of(tensor, axis)), None)
        if shared is None:
            shared = self._look(tensor, axis)
        self._seen[tap] = shared
        if shared.observed[0].non_finite and not self.bad:
            self.bad = f"the {tap} of {name}"
        self.observed.append((name, tap, shared.observed))
        self._bounded(name, tap, shared.observed[0])

    def _look(self, tensor: torch.Tensor, axis: int) -> _Seen:
        """Observe a tensor without its padding."""
        mask, real = self.padding.mask(tensor, axis), self.padding.real(tensor.detach(), axis)
        statistics, squares, peaks = observe_tokens(real, axis)
        placed = None if peaks is None else PlacedPeaks.of(peaks, real, axis, self.places, mask)
        return _Seen(
            storage=StorageWeakRef(tensor.untyped_storage()),  # type: ignore[no-untyped-call]
            place=_place(tensor), axis=axis, observed=(statistics, squares, placed),
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Seen:
    """What was observed of a tensor.  Its memory is not held: it is freed when the network frees it."""

    storage: StorageWeakRef
    place: tuple[object, ...]
    axis: int
    observed: Observed

    def is_of(self, other: torch.Tensor, axis: int) -> bool:
        """Return whether ``other`` is the same tensor, not written to since."""
        return self.axis == axis and self.place == _place(other) and not self.storage.expired()  # type: ignore[no-untyped-call]


def _place(tensor: torch.Tensor) -> tuple[object, ...]:
    return tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype, tensor._version


def channel_axis(layer: Layer) -> int:
    """Return the axis of a tapped tensor along which the features lie: the last, or 1 for convolutions."""
    return 1 if layer.kind.is_convolution else -1


@dataclass(slots=True, kw_only=True)
class _Sums:
    """Everything so far.

    ``squares`` are sums over positions (``counts``) of the inputs' squares by channel; ``gradients`` and ``columns``
    sums over samples of squared weight gradients, by row and by column; ``scatter`` their number, sum and sum of
    squares over samples.
    """

    layers: Mapping[str, Layer]
    statistics: dict[tuple[str, str], LayerStatistics] = field(default_factory=dict)
    outliers: TokenSums = field(default_factory=TokenSums)
    squares: dict[str, np.ndarray] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    gradients: dict[str, torch.Tensor] = field(default_factory=dict)
    columns: dict[str, torch.Tensor] = field(default_factory=dict)
    scatter: dict[str, torch.Tensor] = field(default_factory=dict)
    experts: RoutedSums = field(default_factory=RoutedSums)
    units: int = 0
    samples: int = 0
    impurities: list[float] = field(default_factory=list)
    costs: InputCosts = field(default_factory=InputCosts)
    notes: list[str] = field(default_factory=list)

    def add(self, batch: _Contribution, number: int) -> None:
        if batch.bad:
            self.notes.append(f"batch {number + 1} was left out: {batch.bad} holds NaN or infinite values")
            return
        merged: dict[tuple[int, int], LayerStatistics] = {}  # what layers share is merged once
        for name, tap, (statistics, squares, outliers) in batch.observed:
            old = self.statistics.get((name, tap))
            both = (id(old), id(statistics))
            if both not in merged:
                merged[both] = statistics if old is None else old.merge(statistics)
            self.statistics[name, tap] = merged[both]
            if outliers is not None:
                self.outliers.add((name, tap), outliers)
            if tap == "input" and squares.size:
                self.squares[name] = self.squares[name] + squares if name in self.squares else squares
                self.counts[name] = self.counts.get(name, 0) + statistics.count // squares.size
        for name, (rows, columns, each) in batch.gradients:
            add_to(self.gradients, name, rows)
            add_to(self.columns, name, columns)
            add_to(self.scatter, name, scatter_of(each))
        self.experts.add(batch.experts)
        self.units += batch.units
        self.samples += batch.samples
        self.impurities += batch.impurities
        self.costs.add(batch.costs)

    def state(self) -> dict[str, object]:
        """Return everything but the layers, by field."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "layers"}

    def result(self, all_experts: bool) -> Calibration:
        """Return means, and notes on the layers that no data reached and on experts that few tokens reached."""
        self.statistics |= self.experts.statistics
        self.statistics |= self.costs.of(self.statistics, self.units)
        reached = {name for name, _ in self.statistics}
        ran = {layer.tied_to or name for name, layer in self.layers.items() if name in reached}  # weights that ran
        missed = [name for name, layer in self.layers.items() if (layer.tied_to or name) not in ran]
        self.notes += [f"the data never reached the layer {name}: nothing was observed of it" for name in missed]
        errors = {name: relative_error(scatter) for name, scatter in self.scatter.items()}
        curvature = {name: replace(self._curvature(name), error=errors[name]) for name in self.gradients}
        curvature |= self.experts.curvature(self.layers, self.units)
        self.notes += self.experts.notes(self.layers, all_experts)
        moments = {name: squares / max(self.counts[name], 1) for name, squares in self.squares.items()}
        return Calibration(
            statistics=self.statistics, curvature=curvature, samples=self.samples, notes=tuple(self.notes),
            moments=moments, outliers=self.outliers.result(), impurities=np.array(self.impurities),
        )  # fmt: skip

    def _curvature(self, name: str) -> Curvature:
        """Return rows and columns whose product has the mean squared gradient's row sums (see Calibration)."""
        squares = self.gradients[name] / self.units
        if self.layers[name].kind is not LayerKind.LINEAR:
            columns = self.columns[name] / self.units
            share = squares / squares.sum().clamp_min(torch.finfo(torch.float64).tiny)
            return Curvature(rows=share.cpu().numpy(), columns=columns.cpu().numpy(), full=None, count=self.units)
        inputs = self.squares[name] / self.counts[name]
        whole = float(inputs.sum())
        rows = squares / max(whole, float(np.finfo(np.float64).tiny))
        sums, by_loss = self.columns.get(name), None
        if sums is not None and (total := float(sums.sum())) > 0:
            by_loss = (sums * (whole / total)).cpu().numpy()
        return Curvature(
            rows=rows.cpu().numpy(), columns=inputs, full=None, count=self.counts[name], by_loss=by_loss
        )  # fmt: skip


def weight_statistics(model: Model, progress: Progress = silent) -> dict[tuple[str, str], LayerStatistics]:
    """Return the statistics of every stored weight under (layer, ``weight``), channels being its rows (outputs).

    Works for weights-only models.  NaN and infinite values are counted in ``non_finite`` and left out of the rest.
    """
    statistics: dict[tuple[str, str], LayerStatistics] = {}
    stored = model.summary.stored
    for number, layer in enumerate(stored):
        progress(number / len(stored), f"reading the weights of {layer.name}")
        statistics[layer.name, "weight"] = observe(model.held_weight(layer.name), 0)
    for layer in model.summary.layers:
        if layer.tied_to is not None:
            statistics[layer.name, "weight"] = statistics[layer.tied_to, "weight"]
    progress(1.0, "weights read")
    return statistics

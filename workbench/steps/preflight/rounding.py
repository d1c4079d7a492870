"""What rounding weights takes, from trials on a piece of a weight, or on whole small layers for GPTQ."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from workbench.measurement.second_moments import SecondMoments
from workbench.measurement.shared_weights import curvature_of
from workbench.models.layer import Layer
from workbench.models.model import Model
from workbench.numerics.curvature import Curvature, predicted_loss
from workbench.numerics.rounding import Need
from workbench.numerics.rounding import algorithm as find_algorithm
from workbench.numerics.rounding.round_weight import round_weight
from workbench.planning.plan import KEEP, LEARNED, Assignment
from workbench.preflight import clock
from workbench.progress import heed
from workbench.quantization.quantized_model import decoded, encoded
from workbench.sensitivity.stacked_rounding import STACKED

TRIED = 1 << 17
"""Weights of a trial; half of them, still enough for compiled kernels, show what a call takes whatever its size."""

SHORT_WEIGHTS = 1 << 24
"""So few weights, times schemes, are rounded in a second or two by all that look at weights alone."""

PART, LEAST_SECONDS = 0.02, 1.0
"""Trials of GPTQ end after so much of the time that is estimated, and after so many seconds at least."""

Cell = tuple[Layer, Assignment]


def rounding_seconds(model: Model, cells: Sequence[Cell], *, stores: bool = False, scores: bool = False) -> float:
    """Return the seconds of rounding each layer as its assignment says, by algorithms that look at weights alone.

    ``stores``: the stored form is made and read again; ``scores``: the loss is predicted instead, layers in stacks.
    """
    work = Counter[tuple[str, str]]()
    calls = Counter[tuple[str, str]]()
    for layer, assignment in cells:
        key = (assignment.weights, assignment.algorithm)
        work[key] += layer.parameters
        calls[key] += 1
    if not work or sum(work.values()) < SHORT_WEIGHTS:
        return 0.0
    layer, total = _usual([layer for layer, _ in cells]), 0.0
    for (scheme, algorithm), weights in work.items():
        fixed, each = _rate(model, layer, scheme, algorithm, stores, scores)
        number = min(calls[scheme, algorithm], -(-weights // STACKED) * 2) if scores else calls[scheme, algorithm]
        total += number * fixed + each * weights
    return total


def _usual(layers: Sequence[Layer]) -> Layer:
    """Return the layer in whose size, or in smaller ones, half of all weights lie: of the median one a network of many
    small layers and a large one has next to none."""
    ordered = sorted(layers, key=lambda each: each.parameters)
    sums = list(accumulate(each.parameters for each in ordered))
    return ordered[bisect_left(sums, sums[-1] / 2)]


def _rate(model: Model, layer: Layer, scheme: str, algorithm: str, stores: bool, scores: bool) -> tuple[float, float]:
    """Return the seconds of a call, and for each weight."""
    weight = model.weight(layer.name)
    rows = max(min(TRIED // weight.shape[1], weight.shape[0]), 1)
    few = max(-(-rows // 2), 1)
    curvature = Curvature(rows=np.ones(1), columns=np.ones(weight.shape[1]), full=None, count=1)

    def run(count: int) -> float:
        heed()
        part = weight[:count].float()
        known = replace(curvature, rows=np.ones(count))
        start = clock()
        rounded = round_weight(layer.name, part, scheme, algorithm, known)
        if stores:
            decoded({layer.name: encoded(scheme, rounded)})
        if scores:
            predicted_loss(rounded.values, known, part)
        return clock() - start

    run(rows)  # loads the kernels
    small, large = min(run(few), run(few)), min(run(rows), run(rows))
    if rows == few:
        return 0.0, large / weight[:rows].numel()
    each = max((large - small) / (rows - few), 0.5 * large / rows)
    return max(small - each * few, 0.0), each / weight.shape[1]


def is_quick(assignment: Assignment) -> bool:
    """Return whether the algorithm looks at nothing but the weight."""
    other = assignment.weights == KEEP or assignment.algorithm == LEARNED
    return not other and find_algorithm(assignment.algorithm).needs is Need.NOTHING


@dataclass(slots=True)
class _Class:
    """Layers of one shape, scheme and algorithm."""

    layers: list[Layer]
    assignment: Assignment
    seconds: float | None = None

    @property
    def work(self) -> float:
        """Operations of one layer, up to a factor: sweeps over columns, with the outputs coupled where they are."""
        rows, columns = self.layers[0].matrix
        return float(rows) * columns * (columns + (4 * rows if rows <= 2048 else 0) + 256) + 0.2 * float(columns) ** 3


def moment_seconds(model: Model, cells: Sequence[Cell], moments: Mapping[str, Curvature] | SecondMoments) -> float:
    """Return the seconds of rounding by algorithms that look at second moments: the quickest shapes first, tried whole.

    ``moments`` are those of any few samples; what they say decides little about the time.
    """
    classes: dict[tuple[object, ...], _Class] = {}
    for layer, assignment in cells:
        key = (layer.matrix, assignment.weights, assignment.algorithm)
        classes.setdefault(key, _Class([], assignment)).layers.append(layer)
    ordered = sorted(classes.values(), key=lambda each: each.work)
    spent = 0.0
    for number, each in enumerate(ordered):
        rate = ordered[number - 1].seconds
        expected = 0.0 if not number or rate is None else rate / ordered[number - 1].work * each.work
        total = _total(ordered)
        if number and (rate is None or spent + expected > max(PART * total, LEAST_SECONDS)):
            break
        each.seconds = _tried(model, each, moments)
        if not number:  # the first call loads what others have
            each.seconds = _tried(model, each, moments)
        spent += each.seconds
    return _total(ordered)


def _total(classes: Sequence[_Class]) -> float:
    """Return the seconds of all layers; those of shapes that were not tried follow from the last one that was."""
    tried = [each for each in classes if each.seconds is not None]
    if not tried:
        return 0.0
    rate = (tried[-1].seconds or 0.0) / tried[-1].work
    return sum(len(each.layers) * (rate * each.work if each.seconds is None else each.seconds) for each in classes)


def _tried(model: Model, each: _Class, moments: Mapping[str, Curvature]) -> float:
    layer, assignment = each.layers[0], each.assignment
    known = curvature_of(model.summary, moments, layer.name)
    heed()
    start = clock()
    rounded = round_weight(layer.name, model.weight(layer.name), assignment.weights, assignment.algorithm, known)
    encoded(assignment.weights, rounded)
    return clock() - start

"""Estimates of the long steps.  Each looks at what decides its time, and tries it on a sample or a piece of a weight.

None, or no more than the number of samples, where the step is short.  A trial that fails says nothing: the step itself
reports the error.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from workbench.cache import cache_folder
from workbench.measurement.calibrate import observe_batch
from workbench.measurement.evaluate import evaluate as measure
from workbench.measurement.finite_batches import FiniteBatches
from workbench.measurement.gini_impurity import samples_run
from workbench.measurement.gradients import fitting_batch
from workbench.measurement.reference.cache import ArrayCache
from workbench.measurement.reference.outputs import ReferenceOutputs
from workbench.measurement.second_moments import SecondMoments
from workbench.memory import HELD, anonymous_memory, disk_room, limit, scratch_folder
from workbench.models.data.batches import Data, batches_of, units_of
from workbench.models.layer import Layer
from workbench.models.model import Model
from workbench.models.summary import embeddings
from workbench.numerics.rounding import Need
from workbench.numerics.rounding import algorithm as find_algorithm
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.numerics.statistics.observe import observe
from workbench.planning.plan import KEEP, LEARNED, Assignment, Plan, resolve
from workbench.planning.totals import totals
from workbench.preflight import SHORT, Estimate, clock
from workbench.quantization.learning.loop import LearnOptions
from workbench.quantization.learning.trial import learning_trial
from workbench.sensitivity.checks.measured_losses import samples_measured
from workbench.sensitivity.checks.small_networks import is_small
from workbench.sensitivity.checks.spot_check import CHECKED, samples_checked
from workbench.sensitivity.checks.whole_plans import BITS
from workbench.sensitivity.differences import Differences, cell_bytes
from workbench.sensitivity.directional_losses import DIFFERENCE_BYTES, directional_losses, slopes_batch
from workbench.sensitivity.measured import replaced_rows
from workbench.sensitivity.predicted import REPEATED_CELLS, UNKNOWN, Form, form_of, samples_compared
from workbench.session.calibrated_ranges import all_ranges
from workbench.steps.preflight.pilot import FirstSamples, pilot
from workbench.steps.preflight.rounding import TRIED, Cell, is_quick, moment_seconds, rounding_seconds

SURELY = 0.95
"""The part of the memory of a trial on one sample that the step needs, too: the trial leaves some unused."""

MORE = 1.3
"""A step takes so much more memory beside the model than its trials: they hold no results, and leave fewer gaps."""

LOADED = 100_000_000
"""Bytes of what is loaded and read meanwhile, whatever the model."""

RANGES = 6
"""Of so many tensors all ranges are tried."""

MATRICES = 4
"""Float32 copies of a weight that rounding it holds at most."""

HANDED_SECONDS = 2e-5
"""Seconds in which a runtime hands over one probability, as text."""

WRITTEN = 1 << 23
"""Bytes of a trial of the disk."""


def calibration(model: Model, data: Data, *, batch_size: int, weights: bool) -> Estimate:
    """Estimate a calibration with curvature; ``weights``: their statistics are still to be counted."""
    before, batch = anonymous_memory(), fitting_batch(batch_size, data, model, gradients=True)
    received: list[Mapping[tuple[str, str], LayerStatistics]] = []

    def run(count: int) -> None:
        received[:] = [observe_batch(model, next(batches_of(model, FirstSamples(data, count), count)))]

    line = pilot(run, len(data), batch, least=SHORT if limit() is None else 0.0)  # a short one may not fit either
    if line is None:
        return Estimate(seconds=0.0, memory=0, samples=len(data))
    seconds = line.seconds(len(data), batch) + _range_seconds(received[0])
    if weights:
        seconds += _weight_seconds(model)
    expected = _estimate(seconds, before, line.nbytes(batch), least=before + int(line.nbytes(1) * SURELY))
    return replace(expected, samples=len(data), sample_seconds=line.fixed / batch + line.each)


def _range_seconds(statistics: Mapping[tuple[str, str], LayerStatistics]) -> float:
    """Return the seconds of all ranges, from those of a few tensors."""
    different = list({id(each): (key, each) for key, each in statistics.items()}.values())
    some = different[1 :: max(len(different) // RANGES, 1)]
    all_ranges(dict(different[:1]))  # loads what others have
    start = clock()
    all_ranges(dict(some))
    return (clock() - start) / max(len(some), 1) * len(different)


def _weight_seconds(model: Model) -> float:
    stored = sorted(model.summary.stored, key=lambda layer: layer.parameters)
    weight = model.weight(stored[-1].name)
    part = weight[: max(TRIED // weight.shape[1], 1)]
    observe(part, 0)
    start = clock()
    observe(part, 0)
    return (clock() - start) / part.numel() * sum(each.parameters for each in stored)


def predicted_table(
    model: Model, data: Data, schemes: Sequence[str], *, algorithm: str, batch_size: int,
    omitted: Mapping[str, Collection[str]],
) -> Estimate | None:  # fmt: skip
    """Estimate a table of predicted losses of all layers, without the ``omitted`` schemes of layers."""
    before, summary = anonymous_memory(), model.summary
    cells = [
        (layer, Assignment(weights=scheme, algorithm=algorithm)) for scheme in schemes for layer in summary.stored
        if scheme not in omitted.get(layer.name, ())
    ]  # fmt: skip
    if not all(is_quick(assignment) for _, assignment in cells):
        return None
    measured = samples_measured(len(data), summary.output)
    seconds = rounding_seconds(model, cells, scores=True) * (1 + bool(measured) * len(BITS) / max(len(schemes), 1))
    largest = max((layer.parameters for layer in summary.stored), default=0)
    nbytes = largest * 4 * MATRICES
    paired = model.inputs.has_decoder
    directional = [x for x in summary.stored if form_of(summary, x, paired=paired) is Form.DIRECTIONAL]
    passes = [(directional, len(data))]
    if summary.source.kind in UNKNOWN:
        others = [x for x in summary.stored if x not in directional and x.parameters <= REPEATED_CELLS]
        passes.append((others, samples_compared(model, data)))
    batch, held = slopes_batch(batch_size, data, model), 0
    for layers, samples in passes:
        duration, taken = _slopes(model, data, layers, samples, len(schemes), batch)
        seconds, held = seconds + duration, max(held, taken)
    nbytes += held
    if is_small(summary, len(data)):
        pairs = [(layer.name, scheme) for layer in directional for scheme in schemes]
        cells_alone = measured_cells(model, data, pairs, algorithm=algorithm, batch_size=batch_size)
        seconds += cells_alone.seconds if cells_alone is not None else 0.0
    check, pilot_bytes = _checks(model, data, measured)
    seconds += check
    checks = CHECKED * 4 * largest
    if measured:  # whole plans lie in files where the disk has room
        plan = 4 * sum(layer.parameters for layer in summary.stored)
        checks = max(checks, min(plan, 2 * HELD) if disk_room() > plan else plan)
    return _estimate(seconds, before, max(nbytes, pilot_bytes + checks)) if seconds >= SHORT else None


def _checks(model: Model, data: Data, measured: int) -> tuple[float, int]:
    """Return the seconds and bytes of measuring whole plans on so many samples, and a few cells of the table; nothing
    where that is short."""
    batch = next(batches_of(model, FirstSamples(data, 1), 1))
    passes = (CHECKED + 1) * min(len(data), samples_checked(units_of(batch, model.summary)))
    passes += (len(BITS) + 1 + len(embeddings(model.summary.layers))) * measured
    line = pilot(lambda count: measure(model, model, FirstSamples(data, 1), repeatable=True), passes, 1, passes=0.5)
    return (0.0, 0) if line is None else (line.seconds(passes, 1) / 2, line.nbytes(1))


def _slopes(
    model: Model, data: Data, layers: Sequence[Layer], samples: int, schemes: int, batch: int
) -> tuple[float, int]:  # fmt: skip
    """Return the seconds and bytes of the passes over ``samples`` that give the slopes of differences of ``layers``.

    One pass is tried, with ones for the differences.  Each is a whole matrix, the same for all schemes: one cell for
    all would be widened more slowly, and of zeros the pass would look whether any is not.
    """
    total = sum(layer.parameters * cell_bytes(layer.parameters) for layer in layers) * schemes
    if not total:
        return 0.0, 0
    some = layers[: max(int(len(layers) * min(DIFFERENCE_BYTES / total, 1.0)), 1)]
    shapes = {layer.name: layer.matrix for layer in some}
    ones = torch.ones(max(math.prod(shape) for shape in shapes.values()), dtype=torch.bfloat16)
    matrices = {name: ones[: math.prod(shape)].view(shape).expand(schemes, *shape) for name, shape in shapes.items()}
    changes = {name: Differences(values=values) for name, values in matrices.items()}

    def run(count: int) -> None:
        directional_losses(model, changes, FirstSamples(data, count), batch_size=count, seed=0)

    line = pilot(run, samples, batch)
    if line is None:
        return 0.0, 0
    held = min(total, HELD if disk_room() > DIFFERENCE_BYTES else DIFFERENCE_BYTES) + line.nbytes(batch)
    return line.seconds(samples, batch) * max(total / DIFFERENCE_BYTES, 1.0), held


def measured_cells(
    model: Model, data: Data, cells: Sequence[tuple[str, str]], *, algorithm: str, batch_size: int
) -> Estimate | None:  # fmt: skip
    """Estimate measuring each of ``cells`` (layer, scheme) alone: a layer in the middle stands for all."""
    before, by_name = anonymous_memory(), model.summary.by_name
    batch = fitting_batch(batch_size, data, model, gradients=False)
    layers = list(dict.fromkeys(name for name, _ in cells))
    if not layers:
        return None
    middle = sorted(layers, key=list(by_name).index)[len(layers) // 2]
    weight = model.held_weight(middle).float()

    def run(count: int, schemes: int) -> None:
        keys = {middle: [str(number) for number in range(schemes)]}
        rows = replaced_rows(
            model, keys, lambda names: {middle: dict.fromkeys(keys[middle], weight)}, FirstSamples(data, count),
            batch_size=count, tick=lambda text: None, finite=FiniteBatches(model=model),
        )  # fmt: skip
        list(rows)

    piece = pilot(lambda count: run(count, 1), len(data), batch, passes=len(cells))
    three = pilot(lambda count: run(count, 3), len(data), batch, passes=len(cells))
    if piece is None or three is None:
        return None
    cell = max(three.seconds(len(data), batch) - piece.seconds(len(data), batch), 0.0) / 2
    begin = max(piece.seconds(len(data), batch) - cell, 0.0)
    named = [(by_name[name], Assignment(weights=scheme, algorithm=algorithm)) for name, scheme in cells]
    quick = [each for each in named if is_quick(each[1])]
    seconds = cell * len(cells) + begin * len(layers) / 2 + rounding_seconds(model, quick)
    return _estimate(seconds, before, three.nbytes(batch) + weight.nbytes * MATRICES)


def evaluation(
    model: Model, plan: Plan, data: Data, *, batch_size: int, calibration: Data | None, looks_again: bool,
    moments: Callable[[Data], SecondMoments | None],
) -> Estimate | None:  # fmt: skip
    """Estimate rounding by the plan and running both models; the exact one's outputs may lie on the disk.

    ``looks_again``: how sure the model is of its answers is compared, too.  None, too, for plans with transforms.
    """
    if plan.transforms:
        return None
    before, batch = anonymous_memory(), fitting_batch(batch_size, data, model, gradients=False)

    def bare(count: int) -> None:
        with torch.no_grad():
            model.run(next(batches_of(model, FirstSamples(data, count), count)))

    def both(count: int) -> None:
        measure(model, model, FirstSamples(data, count), batch_size=count, repeatable=True)

    piece = pilot(bare, len(data), batch, passes=2)
    line = None if piece is None else pilot(both, len(data), batch, passes=2)
    if piece is None or line is None:
        alone, nbytes = 0.0, 0
    else:
        alone = line.seconds(len(data), batch)
        cache = ArrayCache(folder=cache_folder("outputs"))
        known = ReferenceOutputs(model=model, data=data, batch_size=batch, cache=cache)
        if known.cache.load(known.key, f"{0:06}") is not None:
            alone -= piece.seconds(len(data), batch) * 0.9
        if looks_again and calibration is not None and model.summary.output.is_logits:
            others = 0 if cache.folder is not None else samples_run(model, data, cache)  # else they are on the disk
            alone += piece.seconds(samples_run(model, calibration, cache) + others, batch)
        nbytes = line.nbytes(batch)
    rounded = quantizing(model, plan, calibration, moments=moments)
    seconds = max(alone, 0.0) + (rounded.seconds if rounded else 0.0)
    if seconds < SHORT:
        return Estimate(seconds=seconds, memory=0, samples=len(data))
    weights = 4 * sum(layer.parameters for layer, _ in _cells(model, plan))
    expected = _estimate(seconds, before, max(rounded.memory - before if rounded else 0, weights + nbytes))
    return replace(expected, samples=len(data), sample_seconds=max(alone, 0.0) / len(data))


def proof(
    model: Model, plan: Plan, data: Data, calibration: Data | None, *, plans: int, passes: float, answers: int,
    moments: Callable[[Data], SecondMoments | None],
) -> Estimate | None:  # fmt: skip
    """Estimate running files of ``plans`` in a runtime and the same here, sample by sample.

    For each, the samples are read ``passes`` times as long as the floating-point model reads them, and ``answers``
    whole distributions of tokens are handed over.  None, too, for plans with transforms.
    """
    before = anonymous_memory()

    def read(count: int) -> None:
        with torch.no_grad():
            model.run(next(batches_of(model, FirstSamples(data, count), count)))

    line, rounded = pilot(read, len(data), 1, passes * plans), quantizing(model, plan, calibration, moments=moments)
    if plan.transforms or line is None:
        return None
    each = line.seconds(1, 1) * passes * plans
    handed = answers * (model.inputs.vocabulary or 0) * HANDED_SECONDS * plans
    expected = _estimate(
        each * len(data) + handed + (rounded.seconds if rounded else 0.0), before,
        2 * 4 * sum(layer.parameters for layer in model.summary.stored) + line.nbytes(1),
    )  # fmt: skip
    return replace(expected, samples=len(data), sample_seconds=each)


def quantizing(
    model: Model, plan: Plan, calibration: Data | None, *, moments: Callable[[Data], SecondMoments | None],
    out: str = "", nbytes: int | None = None, preparing: float = 0.0,
) -> Estimate | None:  # fmt: skip
    """Estimate rounding a model by a plan, and writing ``nbytes`` (default: those of the plan) to ``out``.

    ``moments(data)`` are the second moments that algorithms look at, ``preparing`` the seconds before anything is
    written.  None, too, for plans with transforms.
    """
    if plan.transforms:
        return None
    before, cells = anonymous_memory(), _cells(model, plan)
    learned = [cell for cell in cells if cell[1].algorithm == LEARNED]
    quick = [cell for cell in cells if is_quick(cell[1])]
    others = [cell for cell in cells if cell not in learned and not is_quick(cell[1])]
    seconds = preparing + rounding_seconds(model, quick, stores=True)
    size = totals(model.summary, resolve(plan, model.summary.layers)).nbytes
    largest = max((layer.parameters for layer, _ in cells), default=0)
    peak = size + largest * 4 * MATRICES
    if others and calibration is not None:
        more = _with_moments(model, others, calibration, moments)
        seconds, peak = seconds + more[0], peak + more[1]
    if learned and calibration is not None:
        trial = learning_trial(model, {layer.name: each.weights for layer, each in learned}, calibration)
        seconds, peak = seconds + trial.seconds(LearnOptions().steps), peak + trial.nbytes
    if seconds < SHORT and not out:
        return None
    written = (size if nbytes is None else nbytes) if out else 0
    if out:
        seconds += writing_seconds(Path(out).parent, written)
    return _estimate(max(seconds, 0.1), before, peak, disk=written, folder=str(Path(out).parent) if out else "")


def training(
    model: Model, plan: Plan, data: Data, options: LearnOptions, *, out: str, preparing: float
) -> Estimate | None:  # fmt: skip
    """Estimate training new weights by a plan and writing them to ``out``, ``preparing`` seconds before it."""
    before, cells = anonymous_memory(), _cells(model, plan)
    if not cells:
        return None
    trial = learning_trial(model, {layer.name: each.weights for layer, each in cells}, data, options)
    size = totals(model.summary, resolve(plan, model.summary.layers)).nbytes
    seconds = trial.seconds(options.steps) + preparing + writing_seconds(Path(out).parent, size)
    return _estimate(seconds, before, size + trial.nbytes, disk=size, folder=str(Path(out).parent))


def writing_seconds(folder: Path, nbytes: int) -> float:
    """Return the seconds of writing so many bytes into a folder that exists, and of reading them to compare."""
    size = min(nbytes, WRITTEN)
    if not size or not folder.is_dir():
        return 0.0
    block = bytes(size)
    start = clock()
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(block)
        file.flush()
        os.fsync(file.fileno())
        file.seek(0)
        same = file.read() == block
    return (clock() - start) * nbytes / size if same else 0.0


def _with_moments(
    model: Model, cells: Sequence[Cell], data: Data, moments: Callable[[Data], SecondMoments | None]
) -> tuple[float, int]:
    """Return the seconds and the bytes of collecting second moments and rounding by them."""
    names: list[str] = []
    tried: list[SecondMoments] = []

    def run(count: int) -> None:
        part = moments(FirstSamples(data, count))
        if part is not None:
            tried.clear()  # the moments of the trial before
            names[:] = part.collect_first()
            tried[:] = [part]

    line = pilot(run, len(data), 1, passes=4)
    if line is None or not tried:
        return 0.0, 0
    sequential = [cell for cell in cells if find_algorithm(cell[1].algorithm).needs is Need.SEQUENCE]
    alone = [cell for cell in cells if cell not in sequential]
    passes = tried[0].groups if alone else 0
    seconds = line.seconds(len(data), 1) * (passes + 0.7 * len(sequential))
    known = [
        (layer, Assignment(weights=each.weights, algorithm="gptq")) for layer, each in cells
        if layer.name in names
    ]  # fmt: skip
    if known:
        seconds += moment_seconds(model, known, tried[0]) * len(cells) / len(known)
    return seconds, line.nbytes(1)


def _cells(model: Model, plan: Plan) -> list[Cell]:
    assignments = resolve(plan, model.summary.layers)
    return [
        (layer, assignments[layer.name]) for layer in model.summary.stored if assignments[layer.name].weights != KEEP
    ]  # fmt: skip


def _estimate(
    seconds: float, before: int, nbytes: int, *, least: int = 0, disk: int = 0, folder: str = ""
) -> Estimate:  # fmt: skip
    """Return the estimate; what is beyond a limit of the memory lies on the disk."""
    memory, allowed = before + int(nbytes * MORE) + LOADED, limit()
    beyond = 0 if allowed is None else max(memory - allowed, 0)
    memory -= beyond
    scratch = "" if folder else str(scratch_folder())
    return Estimate(seconds=seconds, memory=memory, disk=disk or beyond, folder=folder or scratch, least=least)

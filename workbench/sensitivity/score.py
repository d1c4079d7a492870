"""The sensitivity table: what each scheme would cost each layer, by one of four metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from workbench.errors import MissingResultError, ModelError, PlanError, nearest
from workbench.measurement.finite import FiniteBatches
from workbench.models.data.batches import Data, require_data
from workbench.models.model import Model
from workbench.numerics.curvature import Curvature
from workbench.numerics.formats import parse_scheme
from workbench.numerics.rounding import algorithm as find_algorithm
from workbench.numerics.rounding.round_weight import round_weight
from workbench.progress import Progress, rising, silent
from workbench.sensitivity.directions import Directions
from workbench.sensitivity.measured import measured_rows, output_rows
from workbench.sensitivity.predicted import Row, Sloped, directional_rows, kronecker_rows, split_forms
from workbench.sensitivity.table import METRICS, Sensitivity, unit_of


def score(
    model: Model,
    metric: str,
    schemes: Sequence[str],
    *,
    curvature: Mapping[str, Curvature] | None = None,
    dataset: Data | None = None,
    batch_size: int = 8,
    seed: int = 0,
    algorithm: str = "rtn-clip",
    layers: Sequence[str] | None = None,
    previous: Sensitivity | None = None,
    notes: list[str] | None = None,
    progress: Progress = silent,
) -> Sensitivity:
    """Return the table of ``metric`` for ``layers`` (default: all that own their weight) x ``schemes``.

    ``predicted_kl`` takes ``curvature`` from a calibration, and ``dataset`` for convolutions and weights inside larger
    modules (:func:`workbench.sensitivity.predicted.form_of` tells which form a layer gets); ``measured_kl`` takes
    ``dataset``; ``output_error`` either; ``weight_error`` nothing.  ``progress`` is given the table so far, NaN for
    open cells.  Cells of ``previous`` are kept if it was computed the same way, and the result has the bits of an
    uninterrupted run.  A layer with NaN or infinite weights, or one that no data reach, has a row of NaN; ``notes``
    gets a sentence for every batch that was left out because the model gave NaN or infinity.  Raises PlanError for an
    unknown metric or algorithm, SchemeError, ModelError for an unknown layer, MissingResultError, CannotRunError,
    DataError.
    """
    table = _table(model, metric, schemes, dataset, seed, algorithm, layers, previous)
    work = _Work(
        model=model, table=table, curvature=curvature or {}, dataset=dataset, batch_size=batch_size, seed=seed,
        algorithm=find_algorithm(algorithm).name, progress=rising(progress),
        finite=FiniteBatches(model=model, notes=[] if notes is None else notes),
    )  # fmt: skip
    wanted = _open_cells(model, table)
    {
        "predicted_kl": work.predict, "measured_kl": work.measure, "output_error": work.compare_outputs,
        "weight_error": work.compare_weights,
    }[metric](wanted)  # fmt: skip
    progress(1.0, "scored", work.snapshot())
    return work.snapshot()


def _table(
    model: Model, metric: str, schemes: Sequence[str], dataset: Data | None, seed: int, algorithm: str,
    layers: Sequence[str] | None, previous: Sensitivity | None,
) -> Sensitivity:  # fmt: skip
    if metric not in METRICS:
        known = ", ".join(METRICS)
        raise PlanError(f"there is no metric {metric!r}{nearest(metric, METRICS)}; the metrics are {known}")
    stored = [layer.name for layer in model.summary.stored]
    names = stored if layers is None else [_owner(model, name) for name in layers]
    columns = tuple(dict.fromkeys(parse_scheme(scheme).name for scheme in schemes))
    needs_data = metric != "weight_error" and dataset is not None
    table = Sensitivity(
        metric=metric, unit=unit_of(metric, model.summary.output), layers=tuple(dict.fromkeys(names)), schemes=columns,
        score=np.full((len(dict.fromkeys(names)), len(columns)), np.nan),
        samples=len(dataset) if needs_data and dataset is not None else 0, seed=seed,
        algorithm=find_algorithm(algorithm).name,
        data_hash=dataset.record.content_hash if needs_data and dataset is not None else "",
    )  # fmt: skip
    if previous is not None and _computed_alike(previous, table):
        for row, name in enumerate(table.layers):
            table.score[row] = [previous.of(name, scheme) for scheme in columns]
        return replace(table, directions=previous.directions)
    return table


def _owner(model: Model, name: str) -> str:
    layer = model.summary.by_name.get(name)
    if layer is None:
        raise ModelError(f"the model has no layer {name!r}{nearest(name, model.summary.by_name)}")
    return layer.tied_to or name


def _computed_alike(a: Sensitivity, b: Sensitivity) -> bool:
    same = ("metric", "algorithm", "samples", "seed", "data_hash")
    return all(getattr(a, field) == getattr(b, field) for field in same)


def _open_cells(model: Model, table: Sensitivity) -> dict[str, tuple[str, ...]]:
    """Return the layers with open cells and finite weights, each with all schemes that are open."""
    wanted = {}
    for row, name in enumerate(table.layers):
        missing = tuple(s for s, value in zip(table.schemes, table.score[row], strict=True) if np.isnan(value))
        if missing and bool(model.weight(name).isfinite().all()):
            wanted[name] = missing
    return wanted


@dataclass(slots=True, kw_only=True)
class _Work:
    """The table being filled."""

    model: Model
    table: Sensitivity
    curvature: Mapping[str, Curvature]
    dataset: Data | None
    batch_size: int
    seed: int
    algorithm: str
    progress: Progress
    finite: FiniteBatches
    slopes: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = self.table.directions
        for name in self.table.layers if known is not None else ():
            if known is not None and name in known.layers:
                row = known.row(name)
                self.slopes[name] = {scheme: row[scheme] for scheme in self.table.schemes if scheme in row}

    def snapshot(self) -> Sensitivity:
        ordered = {name: self.slopes[name] for name in self.table.layers if name in self.slopes}
        directions = Directions.gather(self.table.schemes, ordered)
        return replace(self.table, score=self.table.score.copy(), directions=directions)

    def fill(self, rows: Iterable[Row], total: int, start: float = 0.0) -> None:
        """Take up rows as they come; cells that were there already are kept."""
        for number, (name, losses) in enumerate(rows):
            row = self.table.row[name]
            for scheme, loss in losses.items():
                column = self.table.column[scheme]
                if np.isnan(self.table.score[row, column]):
                    self.table.score[row, column] = loss
            done = start + (1 - start) * (number + 1) / max(total, 1)
            self.progress(done, f"scored {name}", self.snapshot())

    def predict(self, wanted: Mapping[str, Sequence[str]]) -> None:
        kronecker, directional = split_forms(self.model, tuple(wanted), self.curvature, self.dataset)
        by_kronecker = {name: wanted[name] for name in kronecker}
        self.fill(kronecker_rows(self.model, by_kronecker, self.curvature, self.algorithm), len(wanted))
        if directional and self.dataset is not None:
            require_data(self.model, self.dataset, "a predicted loss")
            rows = directional_rows(
                self.model, {name: self.table.schemes for name in directional}, self.dataset, self.curvature,
                batch_size=self.batch_size, seed=self.seed, algorithm=self.algorithm, progress=self.progress,
            )  # fmt: skip
            self.fill(self._with_slopes(rows), len(directional), start=len(kronecker) / len(wanted))

    def _with_slopes(self, rows: Iterable[Sloped]) -> Iterator[Row]:
        """Keep the slopes of rows as they come."""
        for name, losses, slopes in rows:
            self.slopes[name] = slopes
            yield name, losses

    def measure(self, wanted: Mapping[str, Sequence[str]]) -> None:
        if self.dataset is None:
            raise MissingResultError("measured_kl needs data to run the model on; give a data set")
        require_data(self.model, self.dataset, "a measured loss")
        rows = measured_rows(
            self.model, wanted, self.dataset, batch_size=self.batch_size, algorithm=self.algorithm,
            curvature=self.curvature, tick=self._ticker(wanted, -(-len(self.dataset) // self.batch_size)),
            finite=self.finite,
        )  # fmt: skip
        self.fill(rows, len(wanted))

    def compare_outputs(self, wanted: Mapping[str, Sequence[str]]) -> None:
        if self.dataset is None and not self.curvature:
            raise MissingResultError("output_error needs calibrated curvature or data; calibrate, or give a data set")
        if self.dataset is not None:
            require_data(self.model, self.dataset, "an output error")
        rows = output_rows(
            self.model, wanted, self.dataset, batch_size=self.batch_size, algorithm=self.algorithm,
            curvature=self.curvature, tick=self._ticker(wanted, 1), notes=self.finite.notes,
        )  # fmt: skip
        self.fill(rows, len(wanted))

    def compare_weights(self, wanted: Mapping[str, Sequence[str]]) -> None:
        self.fill(((name, self._weight_errors(name, schemes)) for name, schemes in wanted.items()), len(wanted))

    def _weight_errors(self, name: str, schemes: Sequence[str]) -> dict[str, float]:
        weight = self.model.weight(name).float()
        energy = float(weight.double().square().sum())
        errors = {}
        for scheme in schemes:
            rounded = round_weight(name, weight, scheme, self.algorithm, self.curvature.get(name)).values
            errors[scheme] = float((rounded.double() - weight).square().sum()) / energy if energy else 0.0
        return errors

    def _ticker(self, wanted: Mapping[str, Sequence[str]], batches: int) -> _Ticker:
        return _Ticker(progress=self.progress, total=max(batches * sum(len(s) for s in wanted.values()), 1))


@dataclass(slots=True, kw_only=True)
class _Ticker:
    """Counts cells, and lets a cancellation through in the middle of a row."""

    progress: Progress
    total: int
    done: int = 0

    def __call__(self, text: str) -> None:
        self.progress(self.done / self.total, text)
        self.done += 1

"""Which data a step runs on: what was asked for, what the session recorded, or what came with a bundled model."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

from workbench.errors import DataError, MissingResultError, NotAModelError, TransformError
from workbench.models.data.files import ALL, BUNDLED_TEXT, CALIBRATION, EVALUATION, locate, named_after
from workbench.models.data.reading import LONG_WINDOW, Reading, with_reading
from workbench.models.data.record import DataRecord
from workbench.models.model import Model
from workbench.models.readers.tokenizer import holds_tokenizer
from workbench.models.summary import ModelSummary
from workbench.numerics.curvature import Curvature
from workbench.plain_file import read_json
from workbench.planning.plan import Plan, resolve
from workbench.planning.totals import Totals, cached_layers, plan_totals, quantized_inputs
from workbench.progress import Progress, silent
from workbench.session.session import Session
from workbench.steps.requirements import reads_moments

if TYPE_CHECKING:
    from workbench.models.data.datasets import Dataset
    from workbench.models.data.samples import Decode

O = TypeVar("O")  # noqa: E741
AS_USUAL = Reading()
KINDS = "a text file, a table (.jsonl, .csv, .parquet), a folder of images or sounds, or an array file (.npz, .npy)"

_OPENED: ContextVar[dict[str, Dataset | DataError] | None] = ContextVar("opened", default=None)


class _OpenOptions(TypedDict, total=False):
    """How data are opened: the keywords of :func:`workbench.models.data.datasets.open_dataset`."""

    split: str
    samples: int | None
    seed: int
    sequence_length: int | None
    usual_window: int
    recorded: bool


@contextmanager
def opened_once() -> Iterator[None]:
    """Open the same data once within a ``with`` block, however often they are asked for, and if they are refused."""
    token = _OPENED.set({})
    try:
        yield
    finally:
        _OPENED.reset(token)


def open_dataset(path: str | Path, model: Model, **how: Unpack[_OpenOptions]) -> Dataset:
    """Do what :func:`workbench.models.data.datasets.open_dataset` does, once within :func:`opened_once`."""
    from workbench.models.data import datasets

    opened = _OPENED.get()
    key = repr((str(path), id(model), sorted(how.items())))
    if opened is None:
        return datasets.open_dataset(path, model, **how)
    if key not in opened:
        try:
            opened[key] = datasets.open_dataset(path, model, **how)
        except DataError as error:
            opened[key] = error
    if isinstance(result := opened[key], DataError):
        raise result
    return result


def for_calibration(
    model: Model, data: str | Path | None, *, samples: int | None, seed: int, reading: Reading = AS_USUAL
) -> Dataset:
    """Open the calibration split of ``data``, or of the set that came with a bundled model; raises DataError."""
    path = data or bundled_data(model.summary.source.path)
    if path is None:
        raise MissingResultError(
            f"calibrating {model.summary.name} needs data: give {KINDS}",
            command="workbench calibrate MODEL --data DATA --out S.qwb",
        )
    return open_dataset(with_reading(path, reading), model, split=CALIBRATION, samples=samples, seed=seed)


def for_evaluation(
    model: Model, session: Session, data: str | Path | None, *, samples: int | None, seed: int,
    reading: Reading = AS_USUAL,
) -> Dataset:  # fmt: skip
    """Open what to evaluate on; never a sample that calibration has seen.

    ``data`` where it is given: all of it, but for the part that calibration took.  Else the session's evaluation
    record, the evaluation split of the calibration's data, or of a bundled model's set.  ``reading`` counts over what
    the data's path says.
    """
    opened = partial(open_dataset, model=model, samples=samples, seed=seed, usual_window=LONG_WINDOW)
    calibration = session.calibration.path if session.calibration is not None else None
    place, used = Reading.of(calibration or "")
    if session.calibration is not None:
        _require_pooling(model, session.calibration)
    if data:
        file = Reading.of(data)[0]
        part = locate(file, EVALUATION)
        again = calibration is not None and (_same(file, place) or part.recorded == place)
        split = EVALUATION if again or part.half is None else ALL
        inherited = Reading(column=used.column if again else "")
        dataset = opened(with_reading(data, reading.over(Reading.of(data)[1]).over(inherited)), split=split)
        if not again or part.half is None:
            return dataset
        note = f"{part.name} was calibrated on: only its other half is evaluated, {dataset.record.samples:,} samples"
        return replace(dataset, notes=(note, *dataset.notes))
    if session.evaluation is not None and reading == AS_USUAL:
        return recorded(model, session.evaluation, samples=samples)
    if session.evaluation is not None:
        record = session.evaluation
        return opened(with_reading(record.path, reading), split=record.split, recorded=True)
    if calibration is not None:
        return opened(with_reading(calibration, reading), split=EVALUATION, recorded=True)
    path = bundled_data(model.summary.source.path)
    if path is None:
        raise MissingResultError(
            f"evaluating {model.summary.name} needs data: calibrate first, or give {KINDS}",
            command="workbench evaluate S.qwb --data DATA",
        )
    return opened(with_reading(path, reading), split=EVALUATION)


def evaluation_record(model: Model, calibration: DataRecord) -> DataRecord | None:
    """Return the record of the part of the calibration's data that is left for evaluation, None if nothing is."""
    try:
        return open_dataset(
            calibration.path, model, split=EVALUATION, seed=calibration.seed, usual_window=LONG_WINDOW, recorded=True
        ).record
    except DataError:
        return None


def text_of_tokens(model: Model) -> Decode | None:
    """Return the function that turns tokens into text, None where the model came without a tokenizer."""
    from workbench.models.data.samples import decoder

    return None if model.inputs.tokenizer is None else decoder(model.inputs)


def totals_of(session: Session, plan: Plan, metric: str) -> Totals:
    """Return the plan's totals, with its loss by the tables that go with ``metric`` where there are any."""
    return plan_totals(
        session.model, plan, session.table(metric), session.inputs_table(metric), session.cache_table(metric)
    )


def prices_all(session: Session, plan: Plan, metric: str) -> bool:
    """Return whether tables price all that a plan rounds beside weights: inputs, keys and values."""
    assignments = resolve(plan, session.model.layers)
    inputs, cache = quantized_inputs(session.model, assignments), cached_layers(session.model.layers, assignments)
    return not (inputs and session.inputs_table(metric) is None or cache and session.cache_table(metric) is None)


def recorded(model: Model, record: DataRecord, *, samples: int | None = None) -> Dataset:
    """Open the data of ``record`` again, or ``samples`` of it; DataError if it is gone or has changed since, or the
    model makes other embeddings of it."""
    _require_pooling(model, record)
    opened = partial(open_dataset, record.path, model, split=record.split, seed=record.seed, recorded=True)
    try:
        dataset = opened(samples=record.samples or None)
    except DataError as error:
        raise DataError(f"the session's {record.split} data {record.name} cannot be opened again: {error}") from error
    if dataset.record.content_hash != record.content_hash:
        raise DataError(
            f"the session's {record.split} data {record.path} has changed: {record.content_hash} was recorded, it has "
            f"{dataset.record.content_hash} now; put the old file back, or calibrate again"
        )
    return dataset if samples is None or samples == record.samples else opened(samples=samples)


def _require_pooling(model: Model, record: DataRecord) -> None:
    if record.pooling is not model.inputs.pooling:
        raise DataError(
            f"the session's {record.split} data {record.name} were run with {record.pooling} pooling, the model has "
            f"{model.inputs.pooling} pooling now (modules.json, or a GGUF file's pooling_type); calibrate again"
        )


def shown_inputs(model: Model, session: Session | None) -> Model:
    """Return ``model``; where it does not know what it takes, one that knows it from the calibration's data."""
    from workbench.models.execution.network import NetworkModel
    from workbench.models.tracing import probe

    if session is None or session.calibration is None or not isinstance(model, NetworkModel):
        return model
    with suppress(TransformError):
        probe(model)
        return model
    with suppress(DataError):  # gone or changed since: a guess is left
        data = recorded(model, session.calibration)
        return model.sampled_by(lambda count: probe(model, data, count))
    return model


def curvature_for(
    model: Model, session: Session, algorithms: Collection[str], metric: str = "", progress: Progress = silent
) -> Mapping[str, Curvature]:
    """Return the session's curvature, with whole second moments where these algorithms or the metric read them.

    They are collected from the calibration's data when a layer is reached; raises DataError if those have changed.
    """
    from workbench.measurement.second_moments import SecondMoments

    record = session.calibration
    if record is None or model.summary.cannot_run is not None or not reads_moments(algorithms, metric):
        return session.curvature
    return SecondMoments(model, recorded(model, record), session.curvature, seed=record.seed, progress=progress)


def last_data(session: Session, record: DataRecord | None) -> str:
    """Return the data that a form starts with: those of ``record``, else of the calibration, else what came with the
    model: the bundled set, or calibration data in its folder."""
    record, model = record or session.calibration, session.model.source.path
    return str(record.path) if record is not None else bundled_data(model) or data_beside(model)


def in_fields(options: O) -> O:
    """Return a step's options with what the path of their data says of column, window and stride in their fields."""
    place, said = Reading.of(getattr(options, "data", ""))
    known = {name: value for name, value in asdict(said).items() if value and hasattr(options, name)}
    rest = replace(said, **dict.fromkeys(known)).after(place)  # type: ignore[arg-type]  # blank, whatever its type
    return replace(options, data=rest, **known) if known else options  # type: ignore[type-var]


def data_beside(path: str) -> str:
    """Return the calibration data in the folder of the model at ``path``, such as calibration.npz; empty for none."""
    place = Path(path)
    folder = place if place.is_dir() else place.parent
    file = named_after(folder, CALIBRATION) if path and folder.is_dir() else None
    return "" if file is None else str(file)


def missing_data(session: Session, data: str, *, held: bool = False) -> Mapping[str, str]:
    """Return what a run on ``data`` lacks, as :attr:`Step.missing` does: data, where none are named and none came with
    the model; ``held``: a run on those of a calibration needs none named."""
    model = session.model
    known = data or model.cannot_run is not None or bundled_data(model.source.path)
    return {} if known or held and (session.calibration or session.evaluation) else {"data": KINDS}


def offered_data(model: ModelSummary) -> tuple[str, ...]:
    """Return the bundled data that a model of another maker can run on: text, where a tokenizer came with it and one
    text is a sample (an encoder-decoder takes pairs)."""
    place = Path(model.source.path)
    folder = place if place.is_dir() else place.parent
    reads_text = model.source.kind == "gguf" or (holds_tokenizer(folder) and not _takes_pairs(folder))
    return (BUNDLED_TEXT,) if reads_text and model.cannot_run is None else ()


def _takes_pairs(folder: Path) -> bool:
    """Return whether config.json beside a model says that it is an encoder-decoder; False where it cannot be read."""
    try:
        return read_json(folder / "config.json").get("is_encoder_decoder") is True
    except (OSError, ValueError, AttributeError):
        return False


def bundled_data(path: str) -> str | None:
    """Return the name of the data set that came with the bundled model at ``path``, None for any other model."""
    from workbench.models.sources.bundled import BUNDLED as BUNDLED_MODELS
    from workbench.models.sources.bundled import bundled_folder

    if path.startswith("demo:"):
        return path if path.removeprefix("demo:") in BUNDLED_MODELS else None
    for name in BUNDLED_MODELS:
        try:
            folder = bundled_folder(name)
        except NotAModelError:
            continue
        if _same(path, str(folder)):
            return f"demo:{name}"
    return None


def _same(path: str | Path, other: str | None) -> bool:
    if other is None or str(path) == other:
        return other is not None
    return os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)

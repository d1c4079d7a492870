"""Tasks from local files, run on two models; every figure with its interval over the task's documents."""

from __future__ import annotations

import hashlib
import math
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.errors import BackendUnavailableError, DataError, TrustRequiredError, WorkbenchError, first_line
from workbench.measurement.bootstrap import interval
from workbench.measurement.evaluation import Metric
from workbench.measurement.metrics import transform_of
from workbench.models.data.text import tokenizer_of
from workbench.models.model import Model
from workbench.models.summary import OutputKind
from workbench.progress import Progress, part_of, silent

SAME = 1e-6
"""A figure that differs more from the harness's own, relatively, is not a mean over documents and is left out."""


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """Task files and what is in them, as a hash."""

    name: str
    files: tuple[Path, ...]
    content_hash: str

    @staticmethod
    def at(path: str | Path, *, trust: bool = False) -> TaskFiles:
        """Return the task file at ``path``, or those of a folder (``*.yaml``).

        Raises DataError where there is none, TrustRequiredError without ``trust``: templates and functions of a task
        run as programs.
        """
        place = Path(path).absolute()
        files = sorted(place.glob("*.yaml")) if place.is_dir() else [place]
        if not files or not all(file.is_file() and file.suffix in (".yaml", ".yml") for file in files):
            raise DataError(f"there is no task file at {place}; give a .yaml file of lm-evaluation-harness or a folder "
                            "of them")  # fmt: skip
        if not trust:
            raise TrustRequiredError(
                f"the templates and functions of {place.name} run as programs; allow it (--trust) only if you know it",
                str(place),
            )
        content = hashlib.sha256()
        for file in files:
            content.update(file.read_bytes())
        return TaskFiles(place.name, tuple(files), f"sha256:{content.hexdigest()}")


def evaluate_tasks(
    reference: Model, candidate: Model, tasks: TaskFiles, *, samples: int | None = None, batch_size: int = 8,
    seed: int = 0, notes: list[str] | None = None, progress: Progress = silent,
) -> dict[str, Metric]:  # fmt: skip
    """Return every figure of the tasks that is a mean over documents, named ``task:metric``.

    ``samples`` bounds the documents of each task.  ``notes`` gets a sentence for figures that are left out.  Data sets
    of the hub are not fetched.  Raises BackendUnavailableError without lm-evaluation-harness, DataError for a model
    that generates no text and for tasks that cannot be read.
    """
    if reference.summary.output is not OutputKind.TOKEN_LOGITS or reference.inputs.has_decoder:
        raise DataError(f"{reference.summary.name} is not a causal language model, which tasks need")
    tokenizer, folder = tokenizer_of(reference.inputs, tasks.files[0]), reference.inputs.tokenizer
    assert folder is not None
    pair = [
        _run(model, tokenizer, folder, tasks, samples, batch_size, seed, part_of(progress, start, start + 0.5))
        for model, start in ((reference, 0.0), (candidate, 0.5))
    ]
    own = [_columns(each["samples"]) for each in pair]
    metrics: dict[str, Metric] = {}
    for (task, metric, way), (baselines, weights) in own[0].items():
        values = own[1].get((task, metric, way), (None, None))[0]
        name = f"{task}:{metric}" + ("" if way == "none" else f":{way}")
        figure = None if values is None else _figure(name, values, baselines, weights, pair, (task, metric, way), seed)
        if figure is not None:
            metrics[name] = figure
        elif notes is not None:
            notes.append(f"{name} is not a mean over documents, so there is no interval for it; it is left out")
    if not metrics:
        raise DataError(f"{tasks.name} gives no figure; its tasks need a metric that is a mean over documents, as acc")
    return metrics


Key = tuple[str, str, str]
"""Task, metric and filter."""


def _columns(samples: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[Key, tuple[np.ndarray, np.ndarray]]:
    """Return each figure's values and weights by document, float64; of log-likelihoods in a pair with lengths too."""
    outcomes: dict[Key, list[tuple[int, float, float]]] = defaultdict(list)
    for task, documents in samples.items():
        for document in documents:
            for metric in document["metrics"]:
                entry = _entry(metric, document[metric])
                if entry is not None:
                    outcomes[task, metric, document["filter"]].append((int(document["doc_id"]), *entry))
    columns = {}
    for key, rows in outcomes.items():
        table = np.array(sorted(rows), dtype=np.float64)
        columns[key] = table[:, 1], table[:, 2]
    return columns


def _entry(metric: str, value: Any) -> tuple[float, float] | None:
    """Return one document's mean value and its weight; None for what is neither a number nor a pair of them."""
    if isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(each, int | float) for each in value):
        likelihood, length = value
        return (-likelihood / length / (math.log(2) if metric == "bits_per_byte" else 1.0), length) if length else None
    if not isinstance(value, bool | int | float | np.number):
        return None
    return (-float(value) if metric.endswith("perplexity") else float(value)), 1.0


def _figure(
    name: str, values: np.ndarray, baselines: np.ndarray, weights: np.ndarray, pair: Sequence[Mapping[str, Any]],
    key: Key, seed: int,
) -> Metric | None:  # fmt: skip
    """Return a figure of both models, None unless the harness's own is the same."""
    task, metric, way = key
    if values.shape != baselines.shape:
        return None
    transform = transform_of(name)
    value, baseline = (float(transform(np.array(each @ weights / weights.sum()))) for each in (values, baselines))
    for own, result in ((baseline, pair[0]), (value, pair[1])):
        theirs = result["results"].get(task, {}).get(f"{metric},{way}")
        if not isinstance(theirs, int | float) or not math.isclose(own, theirs, rel_tol=SAME, abs_tol=SAME):
            return None
    low, high = interval(values, weights, seed=seed, transform=transform)
    better = bool(pair[0].get("higher_is_better", {}).get(task, {}).get(metric, True))
    return Metric(
        name=name, unit="", higher_is_better=better, value=value, baseline=baseline, low=low, high=high,
        samples=len(values), per_sample=values, baseline_per_sample=baselines, weights=weights,
    )  # fmt: skip


def _run(
    model: Model, tokenizer: Any, folder: Path, tasks: TaskFiles, samples: int | None, batch_size: int, seed: int,
    progress: Progress,
) -> Mapping[str, Any]:  # fmt: skip
    """Return the harness's results for one model."""
    try:
        with _offline():
            from lm_eval import simple_evaluate
            from lm_eval.tasks import TaskManager

            from workbench.measurement.harness.language_model import LanguageModel
    except ImportError as error:
        raise BackendUnavailableError(
            f"tasks need lm-evaluation-harness: pip install 'quantization-workbench[tasks]' ({first_line(error)})"
        ) from None
    answered = [0]

    def done(count: int) -> None:
        answered[0] += count
        progress(1.0 - 1.0 / (1.0 + answered[0] / 100), f"{answered[0]} questions answered")

    try:
        with _offline(), _within(tasks.files[0].parent):
            manager = TaskManager(include_path=str(tasks.files[0].parent), include_defaults=False)
            asked = LanguageModel(model, tokenizer, folder, batch_size, done)
            result: Mapping[str, Any] | None = simple_evaluate(
                model=asked, tasks=[str(file) for file in tasks.files],
                task_manager=manager, limit=samples, bootstrap_iters=0, log_samples=True, random_seed=seed,
                numpy_random_seed=seed, torch_random_seed=seed, fewshot_random_seed=seed,
            )  # fmt: skip
    except WorkbenchError:
        raise
    except Exception as error:  # templates and functions of a task may raise anything
        raise DataError(f"the task {tasks.name} cannot be run: {type(error).__name__}: {first_line(error)}") from error
    if result is None:
        raise DataError(f"the task {tasks.name} gives no result")
    return result


@contextmanager
def _within(folder: Path) -> Iterator[None]:
    """Read relative paths of data from ``folder`` meanwhile, and do not ask git, which complains outside of its own."""
    from lm_eval import evaluator

    before, commit = Path.cwd(), evaluator.get_git_commit_hash
    os.chdir(folder)
    evaluator.get_git_commit_hash = str
    try:
        yield
    finally:
        os.chdir(before)
        evaluator.get_git_commit_hash = commit


@contextmanager
def _offline() -> Iterator[None]:
    """Let nothing be fetched from the hub meanwhile."""
    names = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

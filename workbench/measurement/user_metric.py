"""A task's own metric: a function in the user's Python file, which runs only with the user's permission."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from workbench.errors import DataError, NotAModelError, TrustRequiredError, nearest
from workbench.measurement.metrics import BY_NAME, metric_title
from workbench.measurement.metrics.metric import EvaluationMetric, Outputs, Sums
from workbench.models.data.batches import samples_of
from workbench.models.model import Batch


def load_metric(path: str | Path, *, trust: bool = False) -> EvaluationMetric:
    """Return the metric of ``file.py`` (its function ``metric``) or of ``file.py:name``.

    ``function(outputs, batch)`` returns one number for each sample of the batch (a tensor, an array or a list).
    ``outputs`` is what the model returns (logits), ``batch`` the tensors it was run on, labels among them.  The
    function's attributes ``unit`` (text) and ``higher_is_better`` (default True) are what the result is shown with.
    Raises TrustRequiredError without ``trust``, DataError for a file that fails or lacks the function.
    """
    from workbench.models.sources.python_module import run_file

    text, _, name = str(path).partition(".py:")
    file = Path(f"{text}.py" if name else text).absolute()
    name = name or "metric"
    if file.suffix != ".py" or not file.is_file():
        raise DataError(f"there is no Python file {file}; give FILE.py or FILE.py:FUNCTION")
    if not trust:
        raise TrustRequiredError(
            f"taking a metric from {file} runs it as a Python program; allow it (--trust) only if you know it",
            str(file),
        )
    try:
        module = run_file(file)
    except NotAModelError as error:
        raise DataError(str(error)) from error
    function = getattr(module, name, None)
    if not callable(function):
        names = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise DataError(f"{file} has no function {name!r}{nearest(name, names)}; define {name}(outputs, batch)")
    if name in BY_NAME:
        raise DataError(f"a metric called {name} is computed already; give the function another name")
    return EvaluationMetric(
        name=name, title=metric_title(name), meaning=metric_title(name), unit=str(getattr(function, "unit", "")),
        higher_is_better=bool(getattr(function, "higher_is_better", True)), measure=partial(_measure, name, function),
    )  # fmt: skip


def _measure(name: str, function: Callable[..., Any], outputs: Outputs) -> Sums:
    both, batch = (outputs.quantized, outputs.reference), {key: each.cpu() for key, each in outputs.batch.items()}
    quantized, baseline = (_values(name, function, each.cpu(), batch) for each in both)
    return Sums(quantized, baseline, torch.ones_like(quantized))


def _values(name: str, function: Callable[..., Any], outputs: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return the function's value for each sample, float64 ``[samples]``; raises DataError for anything else."""
    try:
        values = torch.as_tensor(function(outputs, batch), dtype=torch.float64).detach().cpu()
    except Exception as error:  # the user's own code
        raise DataError(f"the metric {name} failed: {type(error).__name__}: {error}") from error
    if values.shape != (samples_of(batch),):
        raise DataError(
            f"the metric {name} returned the shape {tuple(values.shape)} for {samples_of(batch)} samples; it has to "
            "return one number for each sample"
        )
    return values

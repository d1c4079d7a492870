"""The quantized model beside the floating-point one on the same data: metrics with confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from workbench.errors import DataError
from workbench.measurement.bootstrap import interval, weighted_mean
from workbench.measurement.divergence import logit_divergence, sample_divergence
from workbench.measurement.evaluation import Metric
from workbench.measurement.finite import FiniteBatches
from workbench.measurement.user_metric import UserMetric
from workbench.measurement.worst import Worst
from workbench.models.data.batches import Data, require_data, token_mask
from workbench.models.model import Model
from workbench.models.summary import OutputKind
from workbench.progress import Progress, silent

if TYPE_CHECKING:
    from workbench.models.model import Batch


def evaluate(
    reference: Model,
    candidate: Model,
    dataset: Data,
    *,
    batch_size: int = 8,
    seed: int = 0,
    worst: Worst | None = None,
    user_metrics: Sequence[UserMetric] = (),
    notes: list[str] | None = None,
    progress: Progress = silent,
) -> dict[str, Metric]:
    """Run both models on ``dataset`` and return the metrics that the output allows, by name.

    Token logits: ``kl`` (nats per token), ``top1_agreement`` (% of tokens) and ``perplexity``, the exponential of the
    mean negative log-likelihood of tokens 1 to T - 1 of each window.  Class logits: ``kl`` (nats per sample),
    ``top1_agreement`` and, with labels, ``accuracy`` (%).  Embeddings: ``cosine`` to the reference; other outputs:
    ``relative_error`` and ``half_squared_distance``, which is what the prediction stands for.  ``user_metrics`` come
    under their own names; ``worst`` collects the most changed tokens or samples where the outputs are logits.  Batches
    on which the reference gives NaN or infinity are left out; ``notes`` gets a sentence for each, and one for labels
    that are missing.  Raises CannotRunError and DataError.
    """
    require_data(reference, dataset, "evaluation")
    kinds = {**_KINDS, **{own.name: _kind_of(own) for own in user_metrics}}
    sums, said = _Sums(worst=worst), [] if notes is None else notes
    finite = FiniteBatches(model=reference, notes=said)
    total = -(-len(dataset) // batch_size)
    for number, batch in enumerate(dataset.batches(batch_size)):
        progress(number / total, f"evaluating, batch {number + 1} of {total}")
        with torch.no_grad():
            base = reference.run(batch)
            if not finite.keeps(number, batch, base):
                if worst is not None:
                    worst.skip(batch)
                continue
            other = candidate.run(batch)
            _add(sums, base, other, batch, reference.summary.output)
            for own in user_metrics:
                values = own.of(other, batch)
                sums.add(own.name, values, own.of(base, batch), torch.ones_like(values))
    finite.require_any(dataset)
    if reference.summary.output is OutputKind.CLASS_LOGITS and "accuracy" not in sums.columns:
        said.append(f"{dataset.record.name} has no labels, so there is no accuracy; KL and agreement need none")
    progress(1.0, "evaluated")
    return {name: _metric(kinds[name], column, seed) for name, column in sums.columns.items()}


@dataclass(slots=True)
class _Column:
    """Sums over one sample's units for each sample: of the candidate, of the reference, and how many units."""

    values: list[np.ndarray] = field(default_factory=list)
    baselines: list[np.ndarray] = field(default_factory=list)
    weights: list[np.ndarray] = field(default_factory=list)


@dataclass(slots=True)
class _Sums:
    columns: dict[str, _Column] = field(default_factory=dict)
    worst: Worst | None = None

    def add(self, name: str, value: torch.Tensor, baseline: torch.Tensor, weight: torch.Tensor) -> None:
        column = self.columns.setdefault(name, _Column())
        for target, tensor in ((column.values, value), (column.baselines, baseline), (column.weights, weight)):
            target.append(tensor.double().cpu().numpy())


def _add(sums: _Sums, base: torch.Tensor, other: torch.Tensor, batch: Batch, kind: OutputKind) -> None:
    if kind is OutputKind.TOKEN_LOGITS:
        _add_tokens(sums, base, other, batch)
    elif kind is OutputKind.CLASS_LOGITS:
        _add_classes(sums, base, other, batch)
    else:
        _add_vectors(sums, base, other, kind)


def _add_tokens(sums: _Sums, base: torch.Tensor, other: torch.Tensor, batch: Batch) -> None:
    mask = token_mask(batch)
    real = torch.ones(base.shape[:2], dtype=torch.bool) if mask is None else mask
    tokens = real.sum(dim=1)
    each = torch.stack([logit_divergence(one, two) for one, two in zip(base, other, strict=True)]) * real
    sums.add("kl", each.sum(dim=1), torch.zeros(len(tokens)), tokens)
    if sums.worst is not None:
        sums.worst.add(each, base, other, batch)
    same = (base.argmax(-1) == other.argmax(-1)) & real
    sums.add("top1_agreement", 100.0 * same.sum(dim=1), 100.0 * tokens, tokens)
    ids = batch["input_ids"] if "input_ids" in batch else next(iter(batch.values()))
    if ids.shape[1] > 1:
        pairs = real[:, 1:] & real[:, :-1]
        sums.add("perplexity", _nll(other, ids, pairs), _nll(base, ids, pairs), pairs.sum(dim=1))


def _nll(logits: torch.Tensor, ids: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
    """Return each window's summed negative log-likelihood of the next tokens where ``pairs`` holds, float64."""
    sums = [
        torch.nn.functional.cross_entropy(row[:-1].double(), following[1:].long(), reduction="none")[keep].sum()
        for row, following, keep in zip(logits, ids, pairs, strict=True)
    ]
    return torch.stack(sums)


def _add_classes(sums: _Sums, base: torch.Tensor, other: torch.Tensor, batch: Batch) -> None:
    one = torch.ones(base.shape[0])
    each = sample_divergence(base, other, batch, OutputKind.CLASS_LOGITS)
    sums.add("kl", each, 0.0 * one, one)
    if sums.worst is not None and base.ndim == 2:
        sums.worst.add(each, base, other, batch)
    sums.add("top1_agreement", 100.0 * (base.argmax(-1) == other.argmax(-1)), 100.0 * one, one)
    if "labels" in batch:
        labels = batch["labels"]
        sums.add("accuracy", 100.0 * (other.argmax(-1) == labels), 100.0 * (base.argmax(-1) == labels), one)


def _add_vectors(sums: _Sums, base: torch.Tensor, other: torch.Tensor, kind: OutputKind) -> None:
    a, b = base.double().flatten(1), other.double().flatten(1)
    one = torch.ones(base.shape[0])
    if kind is OutputKind.EMBEDDING:
        sums.add("cosine", torch.nn.functional.cosine_similarity(a, b, dim=1), one, one)
    error = (b - a).square().sum(dim=1) / a.square().sum(dim=1).clamp_min(torch.finfo(torch.float64).tiny)
    sums.add("relative_error", error, 0.0 * one, one)
    sums.add("half_squared_distance", 0.5 * (b - a).square().sum(dim=1), 0.0 * one, one)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    name: str
    unit: str
    higher_is_better: bool
    transform: Callable[[np.ndarray], np.ndarray] = lambda mean: mean


_KINDS = {
    kind.name: kind
    for kind in (
        _Kind(name="kl", unit="nats", higher_is_better=False),
        _Kind(name="top1_agreement", unit="%", higher_is_better=True),
        _Kind(name="perplexity", unit="", higher_is_better=False, transform=np.exp),
        _Kind(name="accuracy", unit="%", higher_is_better=True),
        _Kind(name="cosine", unit="", higher_is_better=True),
        _Kind(name="relative_error", unit="relative squared error", higher_is_better=False),
        _Kind(name="half_squared_distance", unit="half squared distance", higher_is_better=False),
    )
}


def _kind_of(own: UserMetric) -> _Kind:
    if own.name in _KINDS:
        raise DataError(f"a metric called {own.name} is computed already; give the function another name")
    return _Kind(name=own.name, unit=own.unit, higher_is_better=own.higher_is_better)


def _metric(kind: _Kind, column: _Column, seed: int) -> Metric:
    sums, baselines, weights = (np.concatenate(part) for part in (column.values, column.baselines, column.weights))
    counted = weights > 0
    weights = weights[counted]
    values, base = sums[counted] / weights, baselines[counted] / weights
    low, high = interval(values, weights, seed=seed, transform=kind.transform)
    return Metric(
        name=kind.name, unit=kind.unit, higher_is_better=kind.higher_is_better, samples=int(values.size),
        value=float(kind.transform(np.array(weighted_mean(values, weights)))),
        baseline=float(kind.transform(np.array(weighted_mean(base, weights)))),
        low=low, high=high, per_sample=values, baseline_per_sample=base, weights=weights,
    )  # fmt: skip

"""Whether a model is more confident on the calibration data than elsewhere: then predicted losses are too low.

A predicted loss is a mean over the calibration data of what errors cost there, in proportion to the trace of the
output's Fisher information, the Gini impurity ``1 - sum p ** 2``.  Training images and easy text have less of it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import torch

from workbench.measurement.finite_batches import FiniteBatches
from workbench.measurement.gradients import fitting_batch
from workbench.measurement.reference.cache import NO_CACHE, ArrayCache
from workbench.measurement.reference.outputs import ReferenceOutputs, first_output, network_key
from workbench.models.data.batches import NOISE, Data, output_mask, token_ids
from workbench.models.model import Batch, Model
from workbench.models.summary import OutputKind
from workbench.numerics.detections import answers_of
from workbench.numerics.logits.rows import gini_impurities

MORE_CONFIDENT = 0.8
"""Calibration data with less than this share of the other data's impurity are reported."""

TOKENS, SAMPLES = 4096, 64
"""So many tokens, or samples of one answer each, are looked at at most."""

FEW, ERRORS = 512, 3.0
"""Tokens of the calibration data after which it is asked whether more are needed, and how plain it has to be."""


def impurities(
    model: Model, data: Data, batch_size: int = 8, cache: ArrayCache = NO_CACHE,
    enough: Callable[[np.ndarray], bool] = lambda means: False,
) -> np.ndarray:  # fmt: skip
    """Return ``1 - sum p ** 2`` of the first samples' answers, float64 ``[samples]``, means over a sample's tokens.

    ``cache`` keeps them; they are used again where the first sample has the same impurity as then.  Outputs that an
    evaluation has left there are not computed again.  No more samples are looked at once they are ``enough``.
    """
    batch_size = fitting_batch(batch_size, data, model, gradients=False)
    known = ReferenceOutputs(model=model, data=data, batch_size=batch_size, cache=cache, stores=False)
    stored = cache.load(_key(model, data), "impurities") or {}
    earlier, whole = stored.get("impurities", np.empty(0)), bool(stored.get("whole", False))
    if earlier.ndim == 1 and earlier.size and (whole or enough(earlier)):
        batch = next(iter(data.batches(batch_size)))
        first = {name: tensor[:1] for name, tensor in batch.items()}
        if known.compared:
            return earlier
        again = impurities_of(model, first_output(model, batch), first)[0]
        if abs(again - earlier[0]) <= NOISE * earlier[0]:
            return earlier
    means, positions, whole = list[float](), 0, True
    for _, batch, output in FiniteBatches(model=model).of(data, batch_size, known.run):
        means += impurities_of(model, output, batch)
        positions += output[..., 0].numel()
        if positions >= (TOKENS if output.ndim > 2 else SAMPLES):
            break
        if enough(np.array(means)):
            whole = False
            break
    if model.is_original:
        keep_impurities(model, data, np.array(means), cache, whole=whole)
    return np.array(means)


def keep_impurities(model: Model, data: Data, means: np.ndarray, cache: ArrayCache, *, whole: bool = True) -> None:
    """Store what :func:`impurities` uses again; ``whole``: there is no need to look at more samples, whoever asks."""
    cache.store(_key(model, data), "impurities", {"impurities": means, "whole": np.array(whole)})


def samples_run(model: Model, data: Data, cache: ArrayCache) -> int:
    """Return how many samples :func:`impurities` runs at most: one, to compare, where what it found before is kept."""
    if (cache.load(_key(model, data), "impurities") or {}).get("whole", False):
        return 1
    if not model.summary.output.per_token:
        return min(len(data), SAMPLES)
    ids = token_ids(next(iter(data.batches(1))))
    return min(len(data), -(-TOKENS // ids.shape[1])) if ids.ndim > 1 else len(data)


def _key(model: Model, data: Data) -> str:
    return json.dumps(["impurities", network_key(model), data.record.content_hash])


def impurities_of(model: Model, output: torch.Tensor, batch: Batch) -> list[float]:
    """Return the mean Gini impurity of each sample of a batch, whose logits are the ``output``."""
    objects = model.summary.output is OutputKind.DETECTIONS
    each = torch.stack([gini_impurities(row) for row in (answers_of(output) if objects else output)])
    mask = None if objects else output_mask(batch, output)
    counted = torch.ones_like(each) if mask is None or mask.shape != each.shape else mask.to(each)
    return [float((e * c).sum() / c.sum().clamp_min(1)) for e, c in zip(each, counted, strict=True)]


def _enough_samples(others: np.ndarray) -> Callable[[np.ndarray], bool]:
    """Return the function that says when impurities cannot be less than a share MORE_CONFIDENT of ``others`` by chance.

    That is where they are more by ERRORS standard errors, samples taken to scatter as the others do.
    """

    def enough(own: np.ndarray) -> bool:
        if own.size < 2 or others.size < 2:
            return False
        scatter = float(max(others.std(ddof=1), own.std(ddof=1)))
        error = scatter * math.sqrt(1 / own.size + MORE_CONFIDENT**2 / others.size)
        return bool(own.mean() - MORE_CONFIDENT * others.mean() > ERRORS * error)

    return enough


def _few(model: Model, data: Data, batch_size: int) -> int:
    """Return how many samples are looked at before it is asked whether they are enough: about FEW tokens' worth."""
    if not model.summary.output.per_token:
        return batch_size
    ids = token_ids(next(iter(data.batches(1))))
    return max(1, min(batch_size, FEW // ids.shape[1])) if ids.ndim > 1 else batch_size


def confidence_note(
    model: Model, calibration: Data, other: Data, batch_size: int = 8, cache: ArrayCache = NO_CACHE
) -> str:
    """State by how much more confident the model is on ``calibration``; empty where it is not, by two standard errors.

    Empty for outputs that are not logits.  Raises DataError for data on which nothing is finite.
    """
    if not model.summary.output.is_logits:
        return ""
    others = impurities(model, other, batch_size, cache)
    own = impurities(model, calibration, _few(model, calibration, batch_size), cache, _enough_samples(others))
    if min(own.size, others.size) < 2 or not own.mean() < MORE_CONFIDENT * others.mean():
        return ""
    error = math.hypot(*(float(x.std(ddof=1)) / math.sqrt(x.size) for x in (own, others)))
    if others.mean() - own.mean() < 2 * error:
        return ""
    return (
        f"the model is more confident on the calibration data than on {other.record.name} (mean Gini impurity of its "
        f"probabilities {own.mean():.3g} and {others.mean():.3g}), so predicted losses are too low, about "
        f"{own.mean() / others.mean():.2g} of what is measured here; calibrate on data like these"
    )

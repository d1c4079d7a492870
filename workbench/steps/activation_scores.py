"""The tables of what quantized inputs, keys and values would cost, as a session keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from workbench.models.data.record import DataRecord
from workbench.numerics.formats import parse_scheme
from workbench.progress import Progress, silent
from workbench.sensitivity.table import Sensitivity
from workbench.session.calibrated_ranges import ranges_in_force
from workbench.session.session import Session
from workbench.steps import session_data

if TYPE_CHECKING:
    from workbench.models.model import Model

DYNAMIC_SCHEMES = ("int8-token", "int6-token", "int4-token", "fp8-e4m3-token")
"""What is scored where nothing is asked for: schemes that need no calibrated range."""


def activation_table(
    session: Session, metric: str, model: Model, record: DataRecord, schemes: Sequence[str] | None = None, *,
    samples: int | None = None, batch_size: int = 8, seed: int = 0, notes: list[str] | None = None,
    progress: Progress = silent,
) -> Sensitivity:  # fmt: skip
    """Score the activations by ``metric`` (of ACTIVATION_METRICS) on the data of ``record``.

    ``schemes`` (default DYNAMIC_SCHEMES) are scored with the ranges now in force, so also again; other columns of an
    earlier table on the same data and seed are kept.  ``notes`` gets a sentence for each batch left out.  Raises
    MissingResultError for a static scheme without ranges, SchemeError, ModelError, DataError.
    """
    from workbench.sensitivity.score import score

    data = session_data.recorded(model, record, samples=samples)
    names = tuple(parse_scheme(name).name for name in schemes or DYNAMIC_SCHEMES)
    in_force = ranges_in_force(model.summary, session.plan, session.ranges, session.active_ranges)
    found = score(
        model, metric, names, dataset=data, ranges={**session.active_ranges, **in_force}, batch_size=batch_size,
        seed=seed, notes=notes, progress=progress,
    )  # fmt: skip
    return _beside(session.sensitivities.get(metric), found)


def _beside(earlier: Sensitivity | None, found: Sensitivity) -> Sensitivity:
    """Return ``found`` after the columns of ``earlier`` that it lacks, if both are of the same data."""
    same = ("layers", "samples", "seed", "data_hash")
    if earlier is None or any(getattr(earlier, name) != getattr(found, name) for name in same):
        return found
    kept = [name for name in earlier.schemes if name not in found.column]
    columns = [earlier.column[name] for name in kept]
    return replace(
        found, schemes=(*kept, *found.schemes), score=np.hstack([earlier.score[:, columns], found.score])
    )

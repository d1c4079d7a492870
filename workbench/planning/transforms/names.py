"""What the names of transforms alone say, for the window, which has no torch."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from workbench.models.summary import ModelSummary


def rotation_seed(name: str) -> int | None:
    """Return the seed of ``rotation`` (0) or ``rotation-7`` (7); None for any other name."""
    found = re.fullmatch(r"rotation(?:-(\d{1,9}))?", name)
    return int(found[1] or 0) if found else None


def planned_summary(summary: ModelSummary, transforms: Iterable[str]) -> ModelSummary:
    """Return the model's facts after ``transforms``: a rotation gives every tied layer a weight of its own."""
    if all(rotation_seed(name) is None for name in transforms):
        return summary
    return replace(summary, layers=tuple(replace(layer, tied_to=None) for layer in summary.layers))

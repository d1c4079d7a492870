"""What the names of transforms alone say, for the window, which has no torch."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from workbench.errors import PlanError, nearest
from workbench.models.summary import ModelSummary
from workbench.registry import entry_points

REWRITES = ("fold-norms", "equalize", "awq", "smoothquant", "rotation", "rotation-heads", "online-rotation")
"""Rewrites of the floating-point model, in the order in which a plan names them; the last one always comes last."""

CORRECTIONS = ("bias-correction", "norm-reestimation")
"""What is done with the kept tensors after rounding, likewise, wherever in the plan they stand."""

KNOWN = (*REWRITES, *CORRECTIONS)
GROUP = "workbench.transforms"
"""The entry points of third parties."""


def check_names(names: Iterable[str]) -> None:
    """Raise PlanError, naming the closest ones, for a name that is not a transform; third parties' count by name."""
    known = (*KNOWN, *(entry.name for entry in entry_points(group=GROUP)))
    for name in names:
        if name not in known and rotation_seed(name) is None:
            raise PlanError(f"there is no transform {name!r}{nearest(name, known)}; choose one of {', '.join(known)}")


def rotation_seed(name: str) -> int | None:
    """Return the seed of ``rotation-7``; None for any other name."""
    match = re.fullmatch(r"rotation-(\d{1,9})", name)
    return int(match[1]) if match else None


def planned_summary(summary: ModelSummary, transforms: Iterable[str]) -> ModelSummary:
    """Return the model's facts after ``transforms``: a rotation gives every tied layer a weight of its own."""
    if all(name != "rotation" and rotation_seed(name) is None for name in transforms):
        return summary
    return replace(summary, layers=tuple(replace(layer, tied_to=None) for layer in summary.layers))

"""The largest error of any weight, relative to the largest weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.sensitivity.metrics.metric import OpenCells, SensitivityMetric

if TYPE_CHECKING:
    from workbench.sensitivity.scoring import Scoring


def _fill(scoring: Scoring, cells: OpenCells) -> None:
    scoring.fill(((name, _errors(scoring, name, tuple(schemes))) for name, schemes in cells.items()), len(cells))


def _errors(scoring: Scoring, name: str, schemes: tuple[str, ...]) -> dict[str, float]:
    from workbench.numerics.rounding.round_weight import round_weight

    weight = scoring.model.weight(name).float()
    errors = {}
    for scheme in schemes:
        rounded = round_weight(name, weight, scheme, scoring.algorithm).values
        errors[scheme] = float((rounded - weight).abs().max() / weight.abs().max())
    return errors


LARGEST_ERROR = SensitivityMetric(
    name="largest_error", title="Largest error", unit="of the largest weight", needs_data=False, fill=_fill,
    meaning="The largest error of any weight over the largest weight; needs neither data nor a calibration",
)  # fmt: skip

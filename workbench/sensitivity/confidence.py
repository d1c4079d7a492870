"""How sure a predicted loss is, by how the samples behind it scatter: an interval, and a sentence when they are few."""

from __future__ import annotations

import math

NORMAL = 1.96
"""So many standard errors on either side hold 95 % of a normal distribution."""

FEW = 0.15
"""Samples that leave a prediction less certain than that are too few."""

MORE = 5
"""The sentence says what so many times the samples would do."""


def interval(predicted: float | None, error: float | None) -> tuple[float, float] | None:
    """Return the 95 % interval of a predicted loss with that standard error, both in its unit; None where not known.

    It is one of the logarithm: losses are positive, and a few samples carry most of them.
    """
    relative = relative_width(predicted, error)
    if relative is None or predicted is None:
        return None
    return predicted * math.exp(-relative), predicted * math.exp(relative)


def relative_width(predicted: float | None, error: float | None) -> float | None:
    """Return half the width of the interval as a share of the prediction, None where it is not known."""
    if predicted is None or error is None or not (math.isfinite(error) and math.isfinite(predicted) and predicted > 0):
        return None
    return min(NORMAL * error / predicted, 700.0)


def resolution(predicted: float | None, error: float | None, samples: int) -> str:
    """Return ``80 samples resolve this to ±30 %; 400 would to ±13 %``; empty where it is not known."""
    relative = relative_width(predicted, error)
    if relative is None or samples < 1:
        return ""
    text = f"{samples:,} samples resolve this to ±{_percent(relative)}"
    if relative <= FEW:
        return text
    return f"too few samples: {text}; {MORE * samples:,} would to ±{_percent(relative / math.sqrt(MORE))}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:,.0f} %"

"""How sure a predicted loss is, by how the samples behind it scatter: an interval, and a sentence when they are few."""

from __future__ import annotations

import math

NORMAL = 1.96
"""So many standard errors on either side hold 95 % of a normal distribution."""

FEW = 0.15
"""Samples that leave a prediction less certain than that are too few."""

HIGHER = 1.5
"""What a prediction of the second order may be off by, as the logarithm at 95 %, for each nat that it predicts: errors
of many layers at once cost more than their sum, and a model that is lost already loses less."""

LARGEST = 1.0
"""Beyond this it does not grow."""

MORE = 5
"""The sentence says what so many times the samples would do."""


def interval(predicted: float | None, error: float | None, doubt: float = 0.0) -> tuple[float, float] | None:
    """Return the 95 % interval of a predicted loss with that standard error, both in its unit; None where not known.

    It is one of the logarithm: losses are positive, and a few samples carry most of them.  ``doubt`` is what the form
    of the prediction may be wrong by, as a logarithm at 95 % (see :meth:`Sensitivity.doubt`).
    """
    relative = relative_width(predicted, error)
    if relative is None or predicted is None:
        return None
    relative = min(math.hypot(relative, doubt), 700.0)
    return predicted * math.exp(-relative), predicted * math.exp(relative)


def higher_orders(predicted: float) -> float:
    """Return what the orders beyond the second may make of a predicted divergence in nats, as a logarithm at 95 %."""
    return min(HIGHER * predicted, LARGEST)


def coarseness(predicted: float | None) -> str:
    """Return what to do about a predicted divergence that is too large to be predicted well; empty for others."""
    if predicted is None or not math.isfinite(predicted) or higher_orders(predicted) <= FEW:
        return ""
    return (
        f"a loss of {predicted:.2g} nats is beyond what the second order predicts well: evaluate or audit the plan "
        f"(range widened to -{_percent(1 - math.exp(-higher_orders(predicted)))}, "
        f"+{_percent(math.expm1(higher_orders(predicted)))})"
    )


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

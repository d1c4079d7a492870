"""Units of losses and errors, and which of them say how far a model's outputs moved."""

from __future__ import annotations

from workbench.models.summary import OutputKind

NATS = "nats"
HALF_SQUARED_DISTANCE = "half squared distance"
"""The unit of a loss where outputs are not logits: the KL between Gaussians of variance 1 around the two outputs."""

COSINE_DISTANCE = "1 - cosine"
"""The unit of the distance between a runtime's embeddings and ours."""

RELATIVE_SQUARED_ERROR = "relative squared error"
PERCENT = "%"

_SHORT = {NATS: "nats", HALF_SQUARED_DISTANCE: "½ d²", RELATIVE_SQUARED_ERROR: ""}


def loss_unit(output: OutputKind) -> str:
    """Return the unit of the distance between two models' outputs: nats for logits, else half the squared distance."""
    return HALF_SQUARED_DISTANCE if output is OutputKind.EMBEDDING else NATS


def runtime_unit(output: OutputKind) -> str:
    """Return the unit of the distance between a runtime's answers and ours."""
    return COSINE_DISTANCE if output is OutputKind.EMBEDDING else NATS


def is_divergence(unit: str) -> bool:
    """Return whether scores of a unit are distances between outputs, which an evaluation measures for whole plans."""
    return unit in (NATS, HALF_SQUARED_DISTANCE)


def short_unit(unit: str) -> str:
    """Return the unit where there is little room; empty where a title such as "Weight error" already says it."""
    return _SHORT.get(unit, "")

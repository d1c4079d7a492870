"""The contract of a transform: an equivalent rewrite of the floating-point model that makes rounding cost less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from workbench.models.data.batches import Data
from workbench.models.tracing import Trace
from workbench.planning.plan import Assignment
from workbench.quantization.transforms.rewrite import Draft
from workbench.readable import few


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Setting:
    """What a transform may look at: the recorded graph, what the plan gives each layer, and calibration data."""

    trace: Trace
    assignments: Mapping[str, Assignment]
    data: Data | None
    batch_size: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldReport:
    """What was done at one place.

    ``source`` produces the channels, ``layers`` take them.  ``alpha`` is the exponent that was chosen (None: nothing
    was scaled, or the method has none), ``before`` and ``after`` the transform's own measure of the outputs' error.
    """

    transform: str
    source: str
    layers: tuple[str, ...]
    alpha: float | None = None
    before: float | None = None
    after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one transform did, and in ``notes`` what it left alone and why."""

    changes: tuple[FoldReport, ...] = ()
    notes: tuple[str, ...] = ()


@runtime_checkable
class Transform(Protocol):
    """A frozen dataclass whose fields are its options."""

    @property
    def name(self) -> str:
        """As a plan writes it."""

    def rewrite(self, draft: Draft, setting: Setting) -> Outcome:
        """Change ``draft`` so that its outputs stay the same.

        Raises TransformError where the model's graph does not allow it, MissingResultError for what was not collected.
        """


def non_finite_note(tensor: str, transform: str, layers: tuple[str, ...]) -> str:
    """Return the note on layers that a transform leaves alone."""
    return f"{tensor} holds NaN or infinite values: {transform} left {few(layers)} alone"

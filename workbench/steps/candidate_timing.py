"""The window's request to time every scheme that a search may choose, so that plans can be compared by time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.measurement.evaluation import Timing
from workbench.progress import Progress
from workbench.session.session import Session
from workbench.steps.needs import without_results
from workbench.steps.timings import candidate_timings, with_timings

if TYPE_CHECKING:
    from workbench.engine.model_cache import ModelCache


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimeCandidates:
    """Time ``schemes`` at every shape of the model that lacks a timing at ``batch``."""

    session: Session
    schemes: tuple[str, ...]
    batch: int = 1
    repeats: int = 10

    @property
    def title(self) -> str:
        """What a person reads in the jobs panel."""
        return f"Time {len(self.schemes)} candidates at batch {self.batch}"

    def slim(self) -> TimeCandidates:
        """Keep the model's facts and the timings."""
        return replace(self, session=without_results(self.session, timings=self.session.timings))

    def run(self, models: ModelCache, progress: Progress) -> tuple[Timing, ...]:
        """Time; needs the shapes only, not the model's file."""
        return candidate_timings(
            self.session, self.schemes, batch=self.batch, repeats=self.repeats, progress=progress
        )  # fmt: skip

    def joined(self, current: Session, response: tuple[Timing, ...]) -> Session:
        """Add the timings, in place of earlier ones of the same layer, scheme, batch and device."""
        return replace(current, timings=with_timings(current.timings, response))

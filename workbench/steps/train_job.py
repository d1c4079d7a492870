"""Training as a job of the window: new weights on the grids of the plan, written in the form that was asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Literal

from workbench.engine.model_cache import ModelCache
from workbench.progress import Progress
from workbench.session.session import Session
from workbench.steps.needs import without_results


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainModel:
    """Quantization-aware training under the session's plan; the response is the paths written.

    The run is saved beside ``out`` every 50 steps and when it is cancelled: the same request goes on from there.
    ``data`` empty: the calibration's.
    """

    session: Session
    kind: str
    out: str
    data: str = ""
    steps: int = 1000
    learning_rate: float = 0.01
    batch_size: int | None = None
    loss: Literal["kl", "task"] = "kl"
    samples: int | None = None
    seed: int = 0
    trust: bool = False

    @property
    def title(self) -> str:
        return f"Train {self.session.plan.name} to {PurePath(self.out).name or self.out}"

    @property
    def checkpoint(self) -> str:
        """The file that an interrupted run goes on from."""
        return f"{self.out.rstrip('/')}.training"

    def slim(self) -> TrainModel:
        """Keep the plan, the active ranges and the record of the calibration's data."""
        return replace(self, session=without_results(self.session))

    def run(self, models: ModelCache, progress: Progress) -> tuple[str, ...]:
        """Train and export; raises what both raise, MissingResultError where there are no data."""
        from workbench.steps.training import train_and_export

        paths = train_and_export(
            self.session, self.kind, self.out, model=models.get(self.session.model, self.trust), trust=self.trust,
            progress=progress, data=self.data or None, steps=self.steps, learning_rate=self.learning_rate,
            batch_size=self.batch_size, loss=self.loss, samples=self.samples, seed=self.seed,
            checkpoint=self.checkpoint,
        )  # fmt: skip
        return tuple(str(path) for path in paths)

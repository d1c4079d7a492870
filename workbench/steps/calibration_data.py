"""What the window asks about the session's data: a page of samples, and whether the calibration data are enough."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.errors import MissingResultError
from workbench.measurement.data_quality import CalibrationQuality
from workbench.models.data.files import CALIBRATION, EVALUATION
from workbench.progress import Progress
from workbench.session.session import Session
from workbench.steps.needs import without_results

if TYPE_CHECKING:
    from workbench.engine.model_cache import ModelCache
    from workbench.models.data.samples import Sample
    from workbench.models.model import Model

PAGE = 48
"""Samples of one page."""

SPLITS = (CALIBRATION, EVALUATION)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SamplePage:
    """Samples ``start`` and following of ``total`` of the data set ``name``."""

    name: str
    split: str
    start: int
    total: int
    samples: tuple[Sample, ...]


def sample_page(
    session: Session, split: str = CALIBRATION, start: int = 0, count: int = PAGE, *, model: Model
) -> SamplePage:
    """Return a page of the session's ``calibration`` or ``evaluation`` data, as they were recorded.

    Raises MissingResultError where the session has none, DataError where they are gone or have changed.
    """
    from workbench.models.data.inputs import InputSpec
    from workbench.models.data.samples import read_samples
    from workbench.steps import session_data

    record = session.calibration if split == CALIBRATION else session.evaluation
    if record is None:
        raise MissingResultError(f"the session names no {split} data; calibrate first")
    dataset = session_data.recorded(model, record)
    spec: InputSpec = getattr(model, "inputs", InputSpec())
    samples = read_samples(dataset, spec, start, count)
    return SamplePage(name=record.name, split=split, start=start, total=len(dataset), samples=samples)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BrowseSamples:
    """Read a page of samples; the response is a SamplePage."""

    session: Session
    split: str = CALIBRATION
    start: int = 0
    count: int = PAGE
    trust: bool = False

    @property
    def title(self) -> str:
        """What a person reads in the jobs panel."""
        return f"Read {self.split} samples from {self.start + 1:,}"

    def slim(self) -> BrowseSamples:
        """Keep the model's facts and the data's records."""
        return replace(self, session=without_results(self.session))

    def run(self, models: ModelCache, progress: Progress) -> SamplePage:
        """Read them; raises MissingResultError, DataError and what opening the model raises."""
        model = models.get(self.session.model, self.trust)
        return sample_page(self.session, self.split, self.start, self.count, model=model)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgeCalibration:
    """Judge the calibration data against the evaluation data; the response is a CalibrationQuality."""

    session: Session
    samples: int | None = None
    batch_size: int = 8
    trust: bool = False

    @property
    def title(self) -> str:
        """What a person reads in the jobs panel."""
        return "Judge the calibration data"

    def slim(self) -> JudgeCalibration:
        """Keep the model's facts and the data's records."""
        return replace(self, session=without_results(self.session))

    def run(self, models: ModelCache, progress: Progress) -> CalibrationQuality:
        """Judge; raises MissingResultError before a calibration, CannotRunError, DataError."""
        from workbench.steps.audits import calibration_quality

        return calibration_quality(
            self.session, model=models.get(self.session.model, self.trust), samples=self.samples,
            batch_size=self.batch_size, trust=self.trust, progress=progress,
        )  # fmt: skip

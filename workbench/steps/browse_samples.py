"""Read a page of the session's calibration or evaluation samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.errors import MissingResultError
from workbench.models.data.files import CALIBRATION, EVALUATION
from workbench.steps import session_data
from workbench.steps.options import OptionInfo, choices_of, option
from workbench.steps.step import Context, Step

if TYPE_CHECKING:
    from workbench.models.data.samples import Sample

PAGE = 48
"""Samples of one page."""

SPLITS = (CALIBRATION, EVALUATION)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowseSamplesOptions:
    """Which samples."""

    split: str = option(CALIBRATION, OptionInfo(
        label="Data", choices=lambda: choices_of(SPLITS), help="which of the session's data"
    ))  # fmt: skip
    start: int = option(0, OptionInfo(
        label="Start", minimum=0, metavar="N", help="the number of the first sample, from 0"
    ))  # fmt: skip
    count: int = option(PAGE, OptionInfo(label="Count", minimum=1, maximum=1000, metavar="N", help="how many samples"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SamplePage:
    """Samples ``start`` and following of ``total`` of the data set ``name``."""

    name: str
    split: str
    start: int
    total: int
    samples: tuple[Sample, ...]


def _run(context: Context, options: BrowseSamplesOptions) -> SamplePage:
    """Read them as they were recorded; MissingResultError where there are none, DataError where they have changed."""
    from workbench.models.data.samples import read_samples

    session, model = context.session, context.model()
    record = session.calibration if options.split == CALIBRATION else session.evaluation
    if record is None:
        raise MissingResultError(f"the session names no {options.split} data; calibrate first")
    dataset = session_data.recorded(model, record)
    samples = read_samples(dataset, model.inputs, options.start, options.count)
    return SamplePage(name=record.name, split=options.split, start=options.start, total=len(dataset), samples=samples)


BROWSE_SAMPLES = Step(
    runs_model=True,
    name="browse-samples", title="Browse samples", options=BrowseSamplesOptions, run=_run,
    summary="Reads a page of the session's calibration or evaluation samples.",
    heading=lambda options, session: f"Read {options.split} samples from {options.start + 1:,}",
)  # fmt: skip

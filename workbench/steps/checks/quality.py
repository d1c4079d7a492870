"""Quality: are the calibration data enough, and do they stand for the evaluation data?"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.measurement.data_quality import CalibrationQuality, contents, coverage, distances, saturation
from workbench.progress import part_of
from workbench.steps import session_data
from workbench.steps.options import BATCH_SIZE, SAMPLES, option
from workbench.steps.requirements import CALIBRATED, RUNS
from workbench.steps.step import Context, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityOptions:
    """On how much of the data."""

    samples: int | None = option(None, SAMPLES)
    batch_size: int = option(8, BATCH_SIZE)


def _run(context: Context, options: QualityOptions) -> CalibrationQuality:
    from workbench.measurement.calibrate import calibrate
    from workbench.measurement.data_doublings import statistics_by_step

    session, model, size = context.session, context.model(), options.batch_size
    assert session.calibration is not None, "required"
    calibration = session_data.recorded(model, session.calibration, samples=options.samples)
    evaluation = session_data.for_evaluation(model, session, None, samples=options.samples, seed=0)
    steps = statistics_by_step(model, calibration, batch_size=size, progress=part_of(context.progress, 0.0, 0.6))
    observed = calibrate(
        model, evaluation, batch_size=size, curvature=False, progress=part_of(context.progress, 0.6, 1.0)
    ).statistics
    first, other = (contents(dataset.batches(size)) for dataset in (calibration, evaluation))
    return CalibrationQuality(
        calibration=first, evaluation=other, coverage=coverage(first, other), saturation=saturation(steps),
        distances=distances(steps[-1][1], observed),
    )  # fmt: skip


QUALITY = Step(
    runs_model=True, name="quality", title="Check the calibration data", options=QualityOptions,
    requires=(RUNS, CALIBRATED), run=_run,
    summary="Judges whether the calibration data are enough, and whether they resemble the evaluation data.",
)  # fmt: skip

"""``workbench bench``: time the kernels of a session's plan, or of bare shapes."""

from __future__ import annotations

import argparse

from workbench.console import flags
from workbench.console.command import Command, require_saved
from workbench.console.flags import flag
from workbench.console.report import Report
from workbench.errors import DataError
from workbench.measurement.evaluation import Timing
from workbench.progress import Progress, part_of
from workbench.session.shared_file import SharedFile
from workbench.steps.timing.kernels import TIME_KERNELS, TimeKernelsOptions, join_timings, time_kernels, time_shapes

OPTIONS = TimeKernelsOptions()


def _shape(text: str) -> tuple[int, int]:
    rows, _, columns = text.lower().partition("x")
    try:
        return flags.at_least(1)(rows), flags.at_least(1)(columns)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a shape; expected for example 4096x4096") from None


def _batches(text: str) -> tuple[int, ...]:
    try:
        return tuple(dict.fromkeys(flags.at_least(1)(part) for part in text.split(",")))
    except argparse.ArgumentTypeError:
        message = f"{text!r} is not a list of batch sizes; expected for example 1,4,16"
        raise argparse.ArgumentTypeError(message) from None


def _run(arguments: argparse.Namespace, progress: Progress) -> Report:
    from workbench.console.reports.timings import timed
    from workbench.insight.roofline import predicted

    timings: list[Timing] = []
    file = SharedFile.open(arguments.session) if arguments.session else None
    session = file.session if file else None
    if file is not None and not arguments.no_save:
        require_saved(file)
    if arguments.target:
        predicted(arguments.target, (), session)  # an unknown name is an error before anything is timed
    for number, batch in enumerate(arguments.batch):
        part = part_of(progress, number / len(arguments.batch), (number + 1) / len(arguments.batch))
        how = {"batch": batch, "repeats": arguments.repeats, "progress": part}
        if session is not None:
            timings += time_kernels(session, **how)
        else:
            timings += time_shapes(arguments.shape, arguments.schemes, **how)
    if not timings:
        raise DataError("the session's plan quantizes no layer, so there is nothing to time; make a plan first")
    if file is not None and not arguments.no_save:
        file.save(lambda now: join_timings(now, OPTIONS, timings))
    estimates = predicted(arguments.target, timings, session) if arguments.target else None
    return timed(timings, estimates, ncu=arguments.ncu)


BENCH = Command(
    name="bench", help=TIME_KERNELS.summary, example="bench --shape 4096x4096 --batch 1", run=_run,
    flags=(
        flag("session", nargs="?", metavar="S.qwb", help="time the layers of this session's plan"),
        flag("--shape", type=_shape, default=(4096, 4096), metavar="OxI",
             help="without a session: outputs x inputs (default 4096x4096)"),
        flag("--schemes", type=flags.schemes, default=("int8-channel", "int4-g32-asym"), metavar="A,B,...",
             help="without a session: these schemes (default int8-channel,int4-g32-asym)"),
        flag("--batch", type=_batches, default=(OPTIONS.batch,), metavar="N[,N...]",
             help=f"rows of the input (default {OPTIONS.batch}); several, such as 1,4,16,128, are swept"),
        flag("--repeats", type=flags.at_least(1), default=OPTIONS.repeats, metavar="N",
             help=f"timed runs of each kernel (default {OPTIONS.repeats})"),
        flag("--target", metavar="NAME", help="add the estimate from the data sheet of, say, nvidia-9.0"),
        flag("--no-save", action="store_true", help="do not add the timings to the session"),
        flag("--ncu", action="store_true", help="print the commands that profile the timed CUDA kernels"),
    ),
)  # fmt: skip

"""Commands that read what a session holds: ``info``, ``ranges``, ``outliers``, ``report``."""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.console import flags
from workbench.console.command import Command
from workbench.console.report import Report
from workbench.console.reports.models import summarized, written
from workbench.console.reports.outliers import outliers
from workbench.console.reports.tables import ranges
from workbench.errors import WorkbenchError
from workbench.progress import Progress
from workbench.session.calibrated_ranges import set_by_hand
from workbench.session.session import Session


def _info_flags(entry: argparse.ArgumentParser) -> None:
    flags.session(entry)
    flags.trust(entry)


def _info(arguments: argparse.Namespace, progress: Progress) -> Report:
    path = Path(arguments.session)
    if not path.exists():
        raise WorkbenchError(f"there is no file {path}; give the path of a session (.qwb)")
    return summarized(Session.load(path), path)


def _range_flags(entry: argparse.ArgumentParser) -> None:
    flags.session(entry)
    flags.layer(entry)
    flags.tap(entry)
    entry.add_argument(
        "--low", type=flags.finite, metavar="X",
        help="with --high: set the input range of the layer named by --layer by hand",
    )  # fmt: skip
    entry.add_argument("--high", type=flags.finite, metavar="Y", help="with --low")


def _ranges(arguments: argparse.Namespace, progress: Progress) -> Report:
    session = Session.load(arguments.session)
    if arguments.low is not None or arguments.high is not None:
        session = set_by_hand(session, arguments.layer, arguments.low, arguments.high)
        session.save(arguments.session)
    return ranges(session, arguments.layer, arguments.tap)


def _outlier_flags(entry: argparse.ArgumentParser) -> None:
    flags.session(entry)
    flags.layer(entry)
    entry.add_argument(
        "--tokens", type=flags.at_least(1), default=1, metavar="N", help="tokens of each tensor (default 1)"
    )
    flags.most("tensors")(entry)


def _outliers(arguments: argparse.Namespace, progress: Progress) -> Report:
    return outliers(Session.load(arguments.session), arguments.most, arguments.layer, arguments.tokens)


def _report_flags(entry: argparse.ArgumentParser) -> None:
    flags.session(entry)
    entry.add_argument("out", metavar="OUT.html", help="write the page here, figures and tables inside")


def _report(arguments: argparse.Namespace, progress: Progress) -> Report:
    from workbench.gui.screenshot import write_report

    return written((write_report(Path(arguments.session), Path(arguments.out)),))


INFO = Command(
    name="info", help="Says what a session holds.", example="info S.qwb", add_flags=_info_flags, run=_info
)  # fmt: skip
RANGES = Command(
    name="ranges", help="Lists the calibrated ranges, or sets one by hand.",
    example="ranges S.qwb --layer '*.down_proj'", add_flags=_range_flags, run=_ranges,
)  # fmt: skip
OUTLIERS = Command(
    name="outliers", help="Lists the tokens that carry massive values.", example="outliers S.qwb --most 20",
    add_flags=_outlier_flags, run=_outliers,
)  # fmt: skip
REPORT = Command(
    name="report", help="Writes a session's printable report.", example="report S.qwb report.html",
    add_flags=_report_flags, run=_report,
)  # fmt: skip

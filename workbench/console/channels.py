"""``workbench channels``: the channels of a tensor whose values are far larger than the others'."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from fnmatch import fnmatchcase

from workbench.console import flags
from workbench.console.command import Command
from workbench.console.report import Report, Table
from workbench.errors import MissingResultError
from workbench.insight.channels import FACTOR, outliers
from workbench.progress import Progress
from workbench.session.session import Session


def _add_flags(entry: argparse.ArgumentParser) -> None:
    flags.session(entry)
    flags.layer(entry)
    flags.tap(entry)
    entry.add_argument(
        "--factor", type=flags.finite, default=FACTOR, metavar="X",
        help=f"list channels that reach X times the median channel's largest magnitude (default {FACTOR:g})",
    )  # fmt: skip
    flags.most("channels")(entry)


def _run(arguments: argparse.Namespace, progress: Progress) -> Report:
    session = Session.load(arguments.session)
    tensors = {
        layer: statistics for (layer, tap), statistics in session.statistics.items()
        if tap == arguments.tap and fnmatchcase(layer, arguments.layer)
    }  # fmt: skip
    if not tensors:
        raise MissingResultError(
            f"the session holds no {arguments.tap} statistics of layers that match {arguments.layer!r}; calibrate it, "
            "or see workbench inspect for the names",
            command="workbench calibrate MODEL --data DATA --out S.qwb",
        )
    rows = [
        {"layer": layer, **asdict(channel), "channels": statistics.channel_absmax.size}
        for layer, statistics in tensors.items() for channel in outliers(statistics, arguments.factor)
    ]  # fmt: skip
    rows.sort(key=lambda row: -row["times"])
    shown = rows[: arguments.most]
    return Report(
        facts={"tap": arguments.tap, "factor": arguments.factor, "tensors": len(tensors), "channels_in_all": len(rows)},
        parts=[
            f"{len(shown)} of {len(rows)} channels that reach {arguments.factor:g} times the median channel's largest "
            f"magnitude, in {len(tensors)} {arguments.tap} tensors",
            Table(
                key="channels", rows=shown, columns="layer | number=channel | channels=of | low | high | times=x median"
            ),
        ],
    )


CHANNELS = Command(
    name="channels",
    help="Lists the channels whose values are far larger than the others'.",
    example="channels S.qwb --layer '*.down_proj'",
    add_flags=_add_flags,
    run=_run,
)

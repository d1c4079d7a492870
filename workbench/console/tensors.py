"""``workbench ranges``, ``outliers`` and ``channels``: what calibration collected of tensors."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from workbench.console.command import Command
from workbench.console.flags import LAYER, SESSION, TAP, at_least, finite, flag, most
from workbench.console.report import Report, Row, Table
from workbench.errors import MissingResultError, PlanError, nearest
from workbench.insight.channels import FACTOR, outliers
from workbench.numerics.ranges import REGISTRY
from workbench.numerics.statistics.outliers import SIGMAS, TokenOutliers
from workbench.planning.patterns import matching
from workbench.progress import Progress
from workbench.session.calibrated_ranges import ranges_of_plan, set_by_hand
from workbench.session.session import Session
from workbench.session.shared_file import SharedFile

CALIBRATE = "workbench calibrate MODEL --data DATA --out S.qwb"


def _ranges(arguments: argparse.Namespace, progress: Progress) -> Report:
    """Set a range by hand if asked for; return the range of every method and the one in force, for layers that match.

    Raises PlanError where the pattern matches nothing, MissingResultError where nothing was calibrated.
    """
    file, pattern, tap = SharedFile.open(arguments.session), arguments.layer, arguments.tap
    session = file.session
    if arguments.low is not None or arguments.high is not None:
        session = file.save(lambda now: set_by_hand(now, pattern, arguments.low, arguments.high))
    names = matching(pattern, session.model.by_name)
    if not names:
        raise PlanError(f"the pattern {pattern!r} matches no layer{nearest(pattern, session.model.by_name)}")
    in_force = ranges_of_plan(session, session.plan)
    layers: list[Row] = []
    rows: list[Row] = []
    for name in names:
        methods = [(name, tap, method) for method in REGISTRY.names()]
        entries = [asdict(session.ranges[key]) for key in methods if key in session.ranges]
        if entries:
            used = asdict(in_force[name, tap]) if (name, tap) in in_force else None
            layers.append({"layer": name, "ranges": entries, "in_force": used})
            shown = entries if used is None or used in entries else [*entries, used]
            rows += [{"layer": name, "used": entry == used, **entry} for entry in shown]
    if not layers:
        raise MissingResultError(f"no {tap} range of these layers was calibrated; calibrate first")
    return Report(
        facts={"tap": tap, "layers": layers},
        parts=[
            f"{tap} ranges; * is in force for static schemes, by the plan's method or set by hand",
            Table(rows=rows, columns="layer | used= | method | low | high | clipped"),
        ],
    )


def _channels(arguments: argparse.Namespace, progress: Progress) -> Report:
    """Return the channels that reach a factor times the median channel's magnitude, the largest first.

    Raises MissingResultError where no tensor of a layer that matches was observed.
    """
    session, pattern, tap = Session.load(arguments.session), arguments.layer, arguments.tap
    names = set(matching(pattern, session.model.by_name))
    tensors = {layer: each for (layer, where), each in session.statistics.items() if where == tap and layer in names}
    if not tensors:
        raise MissingResultError(
            f"the session holds no {tap} statistics of layers that match {pattern!r}; calibrate it, or see workbench "
            "inspect for the names",
            command=CALIBRATE,
        )
    rows = [
        {"layer": layer, **asdict(channel), "channels": statistics.channel_absmax.size}
        for layer, statistics in tensors.items() for channel in outliers(statistics, arguments.factor)
    ]  # fmt: skip
    rows.sort(key=lambda row: -row["times"])
    shown, factor = rows[: arguments.most], arguments.factor
    columns = "layer | number=channel | channels=of | low | high | times=x median"
    return Report(
        facts={"tap": tap, "factor": factor, "tensors": len(tensors), "channels_in_all": len(rows)},
        parts=[
            f"{len(shown)} of {len(rows)} channels that reach {factor:g} times the median channel's largest "
            f"magnitude, in {len(tensors)} {tap} tensors",
            Table(key="channels", rows=shown, columns=columns),
        ],
    )


def _outliers(arguments: argparse.Namespace, progress: Progress) -> Report:
    """Return the tensors of the largest values in standard deviations, each with its largest tokens.

    Raises MissingResultError where no calibration collected them, PlanError where the pattern matches no layer.
    """
    session, pattern = Session.load(arguments.session), arguments.layer
    if not session.outliers:
        raise MissingResultError(
            "the session holds no outlier tokens: it was calibrated without data or by an earlier version; "
            "calibrate it again",
            command=CALIBRATE,
        )
    matching = largest_tensors(session, pattern, arguments.tokens)
    if not matching:
        raise PlanError(f"{pattern!r} matches no layer that was observed; see workbench inspect for the names")
    tensors = matching[: arguments.most]
    blank = dict.fromkeys(("layer", "tap", "sigmas", "times_median", "above_share"), "")
    rows = [
        {**(blank if number else {**tensor, "above_share": tensor["share"]}), **token, "text": _token_text(token)}
        for tensor in tensors for number, token in enumerate(tensor["top"])
    ]  # fmt: skip
    columns = (
        f"layer | tap=tensor | sigmas=s.d. | times_median=x median | above_share=>= {SIGMAS:g} s.d. | value | "
        "channel | sample | place | text=token"
    )
    return Report(
        facts={"sigmas": SIGMAS, "tensors": tensors},
        parts=[
            "largest values in standard deviations of the tensor and over the median token's; the share of tokens that "
            f"reach {SIGMAS:g} standard deviations; the tokens that carry the largest",
            Table(rows=rows, columns=columns),
        ],
    )


def largest_tensors(session: Session, pattern: str, tokens: int) -> list[dict[str, Any]]:
    """Return the tensors of the layers that match, the largest values in standard deviations first."""
    names = set(matching(pattern, session.model.by_name))
    rows = [
        _tensor(session, layer, tap, peaks, tokens)
        for (layer, tap), peaks in session.outliers.items()
        if layer in names and (layer, tap) in session.statistics  # a repair may have lost these
    ]
    return sorted(rows, key=lambda row: -row["sigmas"])


def _tensor(session: Session, layer: str, tap: str, peaks: TokenOutliers, tokens: int) -> dict[str, Any]:
    spread, count = session.statistics[layer, tap].variance ** 0.5, peaks.count
    above = peaks.above(SIGMAS * spread)
    return {
        "layer": layer, "tap": tap, "largest": peaks.largest, "sigmas": peaks.largest / spread if spread else 0.0,
        "times_median": peaks.times_median if count else None, "tokens": count or None,
        "above": above if count else None, "share": above / count if count else None,
        "top": [_token(peaks, index) for index in range(min(tokens, peaks.value.size))],
    }  # fmt: skip


def _token(peaks: TokenOutliers, index: int) -> dict[str, Any]:
    numbers = {name: int(getattr(peaks, name)[index]) for name in ("sample", "position", "token")}
    return {
        "value": float(peaks.value[index]), "channel": int(peaks.channel[index]), "place": peaks.place(index),
        "text": peaks.text[index] if peaks.text else None,
        **{name: None if number < 0 else number for name, number in numbers.items()},
    }  # fmt: skip


def _token_text(row: dict[str, Any]) -> str:
    token = "-" if row["token"] is None else str(row["token"])
    return f"{row['text']!r} ({token})" if row["text"] else token


RANGES = Command(
    name="ranges", help="Lists the calibrated ranges, or sets one by hand.",
    example="ranges S.qwb --layer '*.down_proj'", run=_ranges,
    flags=(
        SESSION, LAYER, TAP,
        flag("--low", type=finite, metavar="X",
             help="with --high: set the input range of the layer named by --layer by hand"),
        flag("--high", type=finite, metavar="Y", help="with --low"),
    ),
)  # fmt: skip
OUTLIERS = Command(
    name="outliers", help="Lists the tokens that carry massive values.", example="outliers S.qwb --most 20",
    run=_outliers,
    flags=(
        SESSION, LAYER,
        flag("--tokens", type=at_least(1), default=1, metavar="N", help="tokens of each tensor (default 1)"),
        most("tensors"),
    ),
)  # fmt: skip
CHANNELS = Command(
    name="channels", help="Lists the channels whose values are far larger than the others'.",
    example="channels S.qwb --layer '*.down_proj'", run=_channels,
    flags=(
        SESSION, LAYER, TAP,
        flag("--factor", type=finite, default=FACTOR, metavar="X",
             help=f"list channels that reach X times the median channel's largest magnitude (default {FACTOR:g})"),
        most("channels"),
    ),
)  # fmt: skip

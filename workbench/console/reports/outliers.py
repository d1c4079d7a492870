"""The tokens with massive values."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from workbench.console.report import Report, Table
from workbench.errors import MissingResultError, PlanError
from workbench.numerics.statistics.outliers import SIGMAS, TokenOutliers
from workbench.session.session import Session


def outliers(session: Session, most: int, pattern: str = "*", tokens: int = 1) -> Report:
    """Return the ``most`` tensors of the largest values in standard deviations, each with its ``tokens`` largest.

    Raises MissingResultError where no calibration collected them, PlanError where ``pattern`` matches no layer.
    """
    if not session.outliers:
        raise MissingResultError(
            "the session holds no outlier tokens: it was not calibrated on data, or by an earlier version; "
            "calibrate it",
            command="workbench calibrate MODEL --data DATA --out S.qwb",
        )
    tensors = largest_tensors(session, pattern, tokens)
    if not tensors:
        raise PlanError(f"{pattern!r} matches no layer that was observed; see workbench inspect for the names")
    blank = dict.fromkeys(("layer", "tap", "sigmas", "times_median", "above_share"), "")
    rows = [
        {**(blank if number else {**tensor, "above_share": tensor["share"]}), **token, "text": _token_text(token)}
        for tensor in tensors[:most]
        for number, token in enumerate(tensor["top"])
    ]
    columns = (
        f"layer | tap=tensor | sigmas=s.d. | times_median=x median | above_share=>= {SIGMAS:g} s.d. | value | "
        "channel | sample | place | text=token"
    )
    return Report(
        facts={"sigmas": SIGMAS, "tensors": tensors[:most]},
        parts=[
            "largest values in standard deviations of the tensor and over the median token's; the share of tokens that "
            f"reach {SIGMAS:g} standard deviations; the tokens that carry the largest",
            Table(rows=rows, columns=columns),
        ],
    )


def largest_tensors(session: Session, pattern: str, tokens: int) -> list[dict[str, Any]]:
    """Return the tensors of the layers that match, the largest values in standard deviations first."""
    rows = [
        _tensor(session, layer, tap, peaks, tokens)
        for (layer, tap), peaks in session.outliers.items() if fnmatchcase(layer, pattern)
    ]  # fmt: skip
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
    def known(array: np.ndarray) -> int | None:
        return None if array[index] < 0 else int(array[index])

    return {
        "value": float(peaks.value[index]), "channel": int(peaks.channel[index]), "sample": known(peaks.sample),
        "position": known(peaks.position), "place": peaks.place(index), "token": known(peaks.token),
        "text": peaks.text[index] if peaks.text else None,
    }  # fmt: skip


def _token_text(row: dict[str, Any]) -> str:
    token = "-" if row["token"] is None else str(row["token"])
    return f"{row['text']!r} ({token})" if row["text"] else token

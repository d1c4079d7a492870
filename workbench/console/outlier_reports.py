"""The tokens with massive values, as the command line prints them."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from workbench.console.terminal import table
from workbench.errors import MissingResultError, PlanError
from workbench.numerics.statistics.outliers import SIGMAS, TokenOutliers

if TYPE_CHECKING:
    from workbench.session.session import Session

Result = dict[str, Any]


def outliers(session: Session, most: int, pattern: str = "*", tokens: int = 1) -> Result:
    """Return the ``most`` tensors of the largest values in standard deviations, each with its ``tokens`` largest.

    Raises MissingResultError where no calibration kept them, PlanError where ``pattern`` matches no layer.
    """
    if not session.outliers:
        raise MissingResultError(
            "the session knows of no outlier tokens: it was not calibrated on data, or by an earlier version; "
            "calibrate it",
            command="workbench calibrate MODEL --data DATA --out S.qwb",
        )
    rows = [_tensor(session, layer, tap, found, tokens) for (layer, tap), found in session.outliers.items()
            if fnmatchcase(layer, pattern)]  # fmt: skip
    if not rows:
        raise PlanError(f"{pattern!r} matches no layer that was observed; see workbench inspect for the names")
    rows.sort(key=lambda row: -row["sigmas"])
    return {"sigmas": SIGMAS, "tensors": rows[:most]}


def _tensor(session: Session, layer: str, tap: str, found: TokenOutliers, tokens: int) -> Result:
    spread = session.statistics[layer, tap].variance ** 0.5
    above = found.above(SIGMAS * spread)
    return {
        "layer": layer, "tap": tap, "largest": found.largest, "sigmas": found.largest / spread if spread else 0.0,
        "times_median": found.times_median if found.count else None, "tokens": found.count or None,
        "above": above if found.count else None, "share": above / found.count if found.count else None,
        "top": [_token(found, index) for index in range(min(tokens, found.value.size))],
    }  # fmt: skip


def _token(found: TokenOutliers, index: int) -> Result:
    def known(array: Any) -> int | None:
        return None if array[index] < 0 else int(array[index])

    return {
        "value": float(found.value[index]), "channel": int(found.channel[index]), "sample": known(found.sample),
        "position": known(found.position), "place": found.place(index), "token": known(found.token),
        "text": found.text[index] if found.text else None,
    }  # fmt: skip


def outliers_text(result: Result) -> str:
    """Return one line for each token; a tensor's own figures stand in its first."""
    rows = []
    for tensor in result["tensors"]:
        for number, token in enumerate(tensor["top"]):
            rows.append((*(("",) * 5 if number else _own(tensor)), *_cells(token)))
    share = f">= {result['sigmas']:g} s.d."
    head = ("layer", "tensor", "s.d.", "x median", share, "value", "channel", "sample", "place", "token")
    return (
        "largest values in standard deviations of the tensor and over the median token's; the share of tokens that "
        f"reach {result['sigmas']:g} standard deviations; the tokens that carry the largest\n\n" + table(rows, head)
    )


def _own(tensor: Result) -> tuple[str, ...]:
    share = "-" if tensor["share"] is None else f"{tensor['share']:.2%}"
    return tensor["layer"], tensor["tap"], _figure(tensor["sigmas"]), _figure(tensor["times_median"]), share


def _cells(token: Result) -> tuple[str, ...]:
    text = "-" if token["token"] is None else str(token["token"])
    if token["text"]:
        text = f"{token['text']!r} ({text})"
    sample = "-" if token["sample"] is None else str(token["sample"])
    return f"{token['value']:.4g}", str(token["channel"]), sample, token["place"], text


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"

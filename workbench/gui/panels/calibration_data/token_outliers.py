"""The tokens with massive values as records for a table."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from workbench.gui.tables.records import Field
from workbench.insight import quantities
from workbench.numerics.statistics.outliers import SIGMAS, TokenOutliers
from workbench.session.session import Session

MOST = 200
"""Tensors that are listed, one token each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow:
    """Kept token ``index`` of a tensor; ``sigmas`` are standard deviations of the tensor's values."""

    layer: str
    tap: str
    sigmas: float
    found: TokenOutliers
    index: int
    spread: float


FIELDS = (
    Field(title="Layer", text=lambda row: row.layer),
    Field(title="Tensor", text=lambda row: row.tap),
    Field(title="Value", text=lambda row: quantities.number(float(row.found.value[row.index])), numeric=True,
          key=lambda row: float(row.found.value[row.index])),
    Field(title="Std. dev.", text=lambda row: f"{row.sigmas:.1f}", numeric=True, key=lambda row: row.sigmas,
          tip="The value's magnitude in standard deviations of all the tensor's values"),
    Field(title="Token", text=lambda row: text_of(row.found, row.index),
          tip="The token's text (its id where there is no tokenizer), or the pixel"),
    Field(title="Place", text=lambda row: place_of(row.found, row.index),
          key=lambda row: (int(row.found.sample[row.index]), int(row.found.position[row.index])),
          tip="Sample of the calibration data, and the position in it, both from 0"),
    Field(title="Channel", text=lambda row: f"{int(row.found.channel[row.index]):,}", numeric=True,
          key=lambda row: int(row.found.channel[row.index])),
    Field(title=f"≥ {SIGMAS:g} s.d.",
          text=lambda row: quantities.share(share_of(row)) if row.found.count else quantities.NONE, numeric=True,
          key=lambda row: share_of(row),
          tip=f"Share of the tokens that reach {SIGMAS:g} standard deviations; images' pixels are not counted"),
)  # fmt: skip


def share_of(row: TokenRow) -> float:
    """Return the share of the tensor's tokens that reach SIGMAS standard deviations; -1 where none was counted."""
    return row.found.above(SIGMAS * row.spread) / row.found.count if row.found.count else -1.0


def text_of(found: TokenOutliers, index: int) -> str:
    """Return what is read of a token: its text, its id, or nothing for a pixel."""
    if found.text:
        return repr(found.text[index])
    return quantities.NONE if found.token[index] < 0 else str(int(found.token[index]))


def place_of(found: TokenOutliers, index: int) -> str:
    """Return sample and position in words."""
    sample = int(found.sample[index])
    return f"sample {sample}, {found.place(index)}" if sample >= 0 else quantities.NONE


def rows_of(session: Session, layers: tuple[str, ...]) -> tuple[TokenRow, ...]:
    """Return all kept tokens of ``layers``; without layers the largest token of each of the MOST extreme tensors."""
    chosen = set(layers)
    tensors = []
    for (layer, tap), found in session.outliers.items():
        statistics = session.statistics.get((layer, tap))
        if statistics is not None and found.value.size and (not chosen or layer in chosen):
            spread = statistics.variance**0.5
            tensors.append((found.largest / spread if spread else 0.0, layer, tap, found, spread))
    if not chosen:
        tensors = heapq.nlargest(MOST, tensors, key=lambda one: one[0])
    return tuple(
        TokenRow(
            layer=layer, tap=tap, found=found, index=index, spread=spread,
            sigmas=abs(float(found.value[index])) / spread if spread else 0.0,
        )
        for _, layer, tap, found, spread in tensors for index in range(found.value.size if chosen else 1)
    )  # fmt: skip

"""The tokens with massive values."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from workbench.insight import quantities
from workbench.numerics.statistics.outliers import SIGMAS, TokenOutliers
from workbench.session.session import TAPS, Session

MOST = 200
"""Tensors that are listed, one token each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow:
    """Recorded token ``index`` of a tensor; ``sigmas`` are standard deviations of the tensor's values."""

    layer: str
    tap: str
    sigmas: float
    outliers: TokenOutliers
    index: int
    spread: float

    @property
    def value(self) -> float:
        """The token's value."""
        return float(self.outliers.value[self.index])

    @property
    def channel(self) -> int:
        """The channel that the value is in."""
        return int(self.outliers.channel[self.index])

    @property
    def share(self) -> float:
        """The share of the tensor's tokens that reach SIGMAS standard deviations; -1 where none was counted."""
        count = self.outliers.count
        return self.outliers.above(SIGMAS * self.spread) / count if count else -1.0

    @property
    def token(self) -> str:
        """What is read of the token: its text, its id, or nothing for a pixel."""
        if self.outliers.text:
            return repr(self.outliers.text[self.index])
        return quantities.NONE if self.outliers.token[self.index] < 0 else str(int(self.outliers.token[self.index]))

    @property
    def place(self) -> tuple[int, int]:
        """Sample and position, both from 0."""
        return int(self.outliers.sample[self.index]), int(self.outliers.position[self.index])

    @property
    def place_in_words(self) -> str:
        """Sample and position in words, both from 1 as in the list of samples."""
        sample = self.place[0]
        return f"sample {sample + 1}, {self.outliers.place(self.index, 1)}" if sample >= 0 else quantities.NONE


def token_rows(session: Session, layers: tuple[str, ...]) -> tuple[TokenRow, ...]:
    """Return all recorded tokens of ``layers``; without layers the largest of each of the MOST extreme tensors."""
    chosen = set(layers)
    tensors = []
    for (layer, tap), outliers in session.outliers.items():
        statistics = session.statistics.get((layer, tap))
        if statistics is not None and outliers.value.size and (not chosen or layer in chosen):
            spread = statistics.variance**0.5
            tensors.append((outliers.largest / spread if spread else 0.0, layer, tap, outliers, spread))
    if chosen:
        position = {layer.name: number for number, layer in enumerate(session.model.layers)}
        tensors.sort(key=lambda row: (position[row[1]], TAPS.index(row[2])))
    else:
        tensors = heapq.nlargest(MOST, tensors, key=lambda row: row[0])
    return tuple(
        TokenRow(
            layer=layer, tap=tap, outliers=outliers, index=index, spread=spread,
            sigmas=abs(float(outliers.value[index])) / spread if spread else 0.0,
        )
        for _, layer, tap, outliers, spread in tensors for index in range(outliers.value.size if chosen else 1)
    )  # fmt: skip

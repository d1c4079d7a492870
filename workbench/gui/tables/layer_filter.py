"""What the user types to see some layers: words, ``kind:linear``, ``scheme:int4``, ``re:expression``, ``worst 10``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from workbench.models.layer import Layer

HINT = "Words that name, kind or scheme hold; kind:linear; scheme:int4; re:layers\\.[0-3]\\.; worst 10 (by loss)"


class FilterError(ValueError):
    """The filter makes no sense; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """All parts must hold; ``worst`` then keeps that many of the greatest loss, greatest first."""

    words: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    expression: str = ""
    worst: int = 0

    @property
    def narrows(self) -> bool:
        """Whether anything is filtered at all."""
        return self != Filter()

    @property
    def ranked(self) -> bool:
        """Whether the order is by loss."""
        return bool(self.worst)

    @property
    def of_plan(self) -> bool:
        """Whether an edit of the plan can change what is shown."""
        return bool(self.words or self.schemes or self.worst)

    def of(
        self, layers: Iterable[Layer], scheme: Callable[[Layer], str], loss: Callable[[Layer], float]
    ) -> list[Layer]:
        """Return the layers that are wanted."""
        if not self.narrows:
            return list(layers)
        search = re.compile(self.expression, re.IGNORECASE).search if self.expression else None
        wanted = [layer for layer in layers if self._holds(layer, scheme) and (not search or search(layer.name))]
        if self.worst:
            known = [(loss(layer), layer) for layer in wanted if not math.isnan(loss(layer))]
            known.sort(key=lambda pair: -pair[0])
            return [layer for _, layer in known[: self.worst]]
        return wanted

    def _holds(self, layer: Layer, scheme: Callable[[Layer], str]) -> bool:
        if not (self.words or self.kinds or self.schemes):
            return True
        held = scheme(layer).lower()
        hay = f"{layer.name} {layer.kind} {held}".lower()
        return (
            all(word in hay for word in self.words)
            and all(kind in str(layer.kind) for kind in self.kinds)
            and all(name in held for name in self.schemes)
        )


def parse(text: str) -> Filter:
    """Return the filter that ``text`` means; raises FilterError."""
    worst = re.search(r"\bworst\s+(\d+)\b", text, re.IGNORECASE)
    if worst:
        text = text[: worst.start()] + text[worst.end() :]
    head, mark, expression = text.partition("re:")
    parts = head.lower().split()
    if mark:
        try:
            re.compile(expression.strip())
        except re.error as error:
            raise FilterError(f"no valid regular expression: {error}") from None
    return Filter(
        words=tuple(part for part in parts if not part.startswith(("kind:", "scheme:"))),
        kinds=tuple(part[5:] for part in parts if part.startswith("kind:")),
        schemes=tuple(part[7:] for part in parts if part.startswith("scheme:")),
        expression=expression.strip(), worst=int(worst[1]) if worst else 0,
    )  # fmt: skip

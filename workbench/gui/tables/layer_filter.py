"""The filter of the layers: words, ``kind:linear``, ``scheme:int4``, ``re:expression``, ``worst 10``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from workbench.errors import PlanError
from workbench.models.layer import Layer
from workbench.planning.patterns import EXPRESSION, compiled, encodable

HINT = "Words of the name, kind or scheme; kind:linear; scheme:int4; re:layers\\.[0-3]\\.; worst 10 (by loss)"


class FilterError(ValueError):
    """The filter is not valid; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """All parts must match; ``worst`` then limits the layers to that many of the greatest loss, greatest first; 0 lists
    none, None all of them."""

    words: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    expression: str = ""
    worst: int | None = None

    @property
    def narrows(self) -> bool:
        """Whether anything is filtered at all."""
        return self != Filter()

    @property
    def of_plan(self) -> bool:
        """Whether an edit of the plan can change which layers match."""
        return bool(self.words or self.schemes) or self.worst is not None

    def of(
        self, layers: Iterable[Layer], scheme: Callable[[Layer], str], loss: Callable[[Layer], float]
    ) -> list[Layer]:
        """Return the layers that match."""
        if not self.narrows:
            return list(layers)
        matching = list(layers)
        if self.expression:
            search = _searched(self.expression)
            matching = [layer for layer in matching if search(encodable(layer.name))]
        if self.words or self.kinds or self.schemes:
            matching = [layer for layer in matching if self._matches(layer, scheme(layer))]
        if self.worst is None:
            return matching
        losses = [(value, layer) for layer in matching if not math.isnan(value := loss(layer))]
        return [layer for _, layer in sorted(losses, key=lambda pair: -pair[0])[: self.worst]]

    def _matches(self, layer: Layer, scheme: str) -> bool:
        text = f"{layer.name} {layer.kind} {scheme}".lower()
        for word in self.words:
            if word not in text:
                return False
        return all(term in layer.kind for term in self.kinds) and all(term in scheme.lower() for term in self.schemes)


def _searched(expression: str) -> Callable[[str], object]:
    """Return what searches an expression, of either case, in a name, in linear time; raises PlanError."""
    return compiled(f"{EXPRESSION}(?i){expression}").search if expression else lambda name: True


def parse(text: str) -> Filter:
    """Return the filter that ``text`` means; raises FilterError."""
    worst = re.search(r"\bworst\s+(\d{1,18})\b", text, re.IGNORECASE)
    if worst:
        text = text[: worst.start()] + text[worst.end() :]
    head, _, expression = text.partition("re:")
    terms = head.lower().split()
    try:
        _searched(expression.strip())
    except PlanError as error:
        raise FilterError(f"not a valid regular expression: {str(error).rpartition('expression: ')[2]}") from None
    return Filter(
        words=tuple(term for term in terms if not term.startswith(("kind:", "scheme:"))),
        kinds=tuple(term[5:] for term in terms if term.startswith("kind:")),
        schemes=tuple(term[7:] for term in terms if term.startswith("scheme:")),
        expression=expression.strip(), worst=int(worst[1]) if worst else None,
    )  # fmt: skip

"""Answers about single layers that the engine is asked for once, kept until what they are about changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from workbench.gui.desk import Desk, Refused, in_log
from workbench.session.session import Session

MOST = 64
"""Answers that are kept."""

Answer = TypeVar("Answer")


class Answers(Generic[Answer]):
    """Keeps an answer for each layer; ``changed`` is called when one has come.

    ``request(session, layer)`` asks the engine; ``about(session)`` is a tuple of what of the session the answers depend
    on, compared by identity.  A request that failed or was cancelled is not made again by itself; ``refused``
    is given why.
    """

    def __init__(
        self, desk: Desk, request: Callable[[Session, str], Any], about: Callable[[Session], tuple[object, ...]],
        changed: Callable[[], None], *, refused: Refused = in_log,
    ) -> None:  # fmt: skip
        self._refused = refused
        self._desk, self._request, self._about, self._changed = desk, request, about, changed
        self._held: dict[str, Answer | None] = {}
        self._of: tuple[object, ...] = ()
        self._asked = ""

    def of(self, layer: str) -> Answer | None:
        """Return what is known of the layer; None where that is nothing (yet)."""
        self._forget_others()
        return self._held.get(layer)

    def awaits(self, layer: str) -> bool:
        """Tell whether an answer about the layer is on its way."""
        return bool(layer) and self._asked == layer

    def ask(self, layer: str, again: bool = False) -> None:
        """Ask the engine for a layer, unless that was done or an answer is awaited; ``again``: also after a failure."""
        self._forget_others()
        known = layer in self._held and not (again and self._held[layer] is None)
        if layer and not known and not self._asked and self._desk.workspace.state.session is not None:
            self._asked = layer
            self._desk.start(self._asking(layer))

    def keep(self, layer: str, found: Answer | None) -> None:
        """Keep an answer about the present session."""
        self._forget_others()
        self._held = {**dict(list(self._held.items())[-MOST + 1 :]), layer: found}

    def _forget_others(self) -> None:
        session = self._desk.workspace.state.session
        of = () if session is None else self._about(session)
        if len(of) != len(self._of) or any(a is not b for a, b in zip(of, self._of, strict=True)):
            self._of = of
            self._held = {}

    async def _asking(self, layer: str) -> None:
        from workbench.steps.requests import slim

        session = self._desk.workspace.state.session
        try:
            if session is None:
                return
            self._forget_others()
            of = self._of
            request = slim(self._request(session, layer))
            found = await self._desk.run(request, lambda: self.ask(layer, again=True), refused=self._refused)
            self._forget_others()
            if of is self._of:
                self.keep(layer, found)
        finally:
            self._asked = ""
        self._changed()

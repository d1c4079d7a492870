"""Answers about single layers that the engine is asked for once: before and after, and what an input error costs."""

from __future__ import annotations

from collections.abc import Callable

from workbench.gui.desk import Desk
from workbench.runtime.before_after import BeforeAfter, ShowAfter, WeighInput

MOST = 64
"""Answers that are kept."""


class AfterCache:
    """Keeps each layer's picture after the plan; ``changed`` is called when one has come."""

    def __init__(self, desk: Desk, changed: Callable[[], None]) -> None:
        self._desk = desk
        self._changed = changed
        self._held: dict[str, BeforeAfter] = {}
        self._of: object = None
        self._asked = ""

    def of(self, layer: str) -> BeforeAfter | None:
        """Return what is known of the layer under the present plan; None where nothing was asked yet."""
        self._forget_others()
        return self._held.get(layer)

    def ask(self, layer: str) -> None:
        """Ask the engine for a layer, unless that is known or an answer is awaited."""
        self._forget_others()
        if layer and layer not in self._held and not self._asked:
            self._asked = layer
            self._desk.start(self._asking(layer))

    def keep(self, found: BeforeAfter) -> None:
        """Keep an answer about the present plan."""
        self._forget_others()
        self._held = {**dict(list(self._held.items())[-MOST + 1 :]), found.layer: found}

    def _forget_others(self) -> None:
        session = self._desk.workspace.state.session
        plan = None if session is None else (session.plan, session.model, session.calibration)
        if plan != self._of:
            self._of = plan
            self._held.clear()

    async def _asking(self, layer: str) -> None:
        session = self._desk.workspace.state.session
        try:
            if session is None:
                return
            found = await self._desk.run(ShowAfter(session=session, layer=layer).slim(), lambda: self.ask(layer))
            now = self._desk.workspace.state.session
            if found is not None and now is not None and now.plan is session.plan:
                self.keep(found)
        finally:
            self._asked = ""
        self._changed()


class GainCache:
    """Keeps what an error in each layer's input costs; ``changed`` is called when an answer has come."""

    def __init__(self, desk: Desk, changed: Callable[[], None]) -> None:
        self._desk = desk
        self._changed = changed
        self._held: dict[str, float | None] = {}
        self._of: object = None
        self._asked = ""

    def of(self, layer: str) -> float | None:
        """Return nats per token and mean square, None where that is not known (yet)."""
        self._forget_others()
        return self._held.get(layer)

    def ask(self, layer: str) -> None:
        """Ask the engine for a layer that has a curvature, unless that is known or an answer is awaited."""
        self._forget_others()
        session = self._desk.workspace.state.session
        if session is not None and layer in session.curvature and layer not in self._held and not self._asked:
            self._asked = layer
            self._desk.start(self._asking(layer))

    def _forget_others(self) -> None:
        session = self._desk.workspace.state.session
        curvature = None if session is None else session.curvature
        if curvature is not self._of:
            self._of = curvature
            self._held.clear()

    async def _asking(self, layer: str) -> None:
        session = self._desk.workspace.state.session
        try:
            if session is None:
                return
            found = await self._desk.run(WeighInput(session=session, layer=layer).slim(), lambda: None)
            if session.curvature is self._of:
                self._held[layer] = found
        finally:
            self._asked = ""
        self._changed()

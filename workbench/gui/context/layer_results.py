"""A cache of results about single layers, which the engine computes on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from workbench.gui.context.context import Context
from workbench.gui.context.runner import ErrorHandler, log_only
from workbench.planning.latest import same_objects
from workbench.session.session import Session
from workbench.steps.step import Request

CAPACITY = 64
"""Layers in the cache."""

Result = TypeVar("Result")


class LayerResults(Generic[Result]):
    """Holds one result for each layer until the parts of the session that it depends on change.

    ``request(session, layer)`` is what the engine is asked; ``depends_on(session)`` returns the parts of the session
    that the results depend on, compared by identity.  A request that failed or was cancelled is not repeated by itself;
    ``on_error`` gets its error.
    """

    def __init__(
        self, context: Context, request: Callable[[Session, str], Request[Any, Any]],
        depends_on: Callable[[Session], tuple[object, ...]], changed: Callable[[], None], *,
        on_error: ErrorHandler = log_only,
    ) -> None:  # fmt: skip
        self._context, self._make_request, self._depends_on = context, request, depends_on
        self._changed, self._on_error = changed, on_error
        self._results: dict[str, Result | None] = {}
        self._basis: tuple[object, ...] = ()
        self._pending = ""

    def get(self, layer: str) -> Result | None:
        """Return the result of a layer, None where there is none (yet)."""
        self._drop_outdated()
        return self._results.get(layer)

    def is_pending(self, layer: str) -> bool:
        """Whether the engine computes the layer's result now."""
        return bool(layer) and self._pending == layer

    def request(self, layer: str, retry: bool = False) -> None:
        """Have a layer's result computed unless it is known or another is pending; ``retry``: also after a failure."""
        self._drop_outdated()
        known = layer in self._results and not (retry and self._results[layer] is None)
        if layer and not known and not self._pending and self._context.workspace.state.session is not None:
            self._pending = layer
            self._context.tasks.start(self._compute(layer))

    def store(self, layer: str, result: Result | None) -> None:
        """Keep a result about the present session."""
        self._drop_outdated()
        self._results = {**dict(list(self._results.items())[-CAPACITY + 1 :]), layer: result}

    def _drop_outdated(self) -> None:
        session = self._context.workspace.state.session
        basis = () if session is None else self._depends_on(session)
        if not same_objects(basis, self._basis):
            self._basis = basis
            self._results = {}

    async def _compute(self, layer: str) -> None:
        session = self._context.workspace.state.session
        try:
            if session is None:
                return
            self._drop_outdated()
            basis = self._basis
            request = self._make_request(session, layer).reduced()
            result: Result | None = await self._context.runner.run(
                request, lambda: self.request(layer, retry=True), on_error=self._on_error
            )
            self._drop_outdated()
            if basis is self._basis:
                self.store(layer, result)
        finally:
            self._pending = ""
        self._changed()

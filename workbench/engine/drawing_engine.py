"""Where reports are drawn: a process for each, since Qt draws on one thread, and here that is the window's."""

from __future__ import annotations

from workbench.engine import engine_process as wire
from workbench.engine.engine import Engine
from workbench.engine.request import OnProgress, Request, Response


class _Drawing(Engine):
    role = wire.DRAWING


class DrawingEngine:
    """Starts a process with each request and ends it after that: a second is short beside what drawing takes."""

    def __init__(self) -> None:
        self._process: Engine | None = None

    async def run(self, job: int, request: Request[Response], on_progress: OnProgress | None = None) -> Response:
        """Run ``request``; raises what :meth:`Engine.run` raises."""
        self._process = _Drawing()
        try:
            return await self._process.run(job, request, on_progress)
        finally:
            await self.close()

    def cancel(self, job: int, *, insist: bool = True) -> None:
        """Ask the running ``job`` to stop; if it does not within 2 s the process is terminated."""
        if self._process is not None:
            self._process.cancel(job, insist=insist)

    async def close(self) -> None:
        """End the process, if there is one, and wait until it is gone."""
        if self._process is not None:
            await self._process.close()

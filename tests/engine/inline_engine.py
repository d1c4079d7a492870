"""The engine's interface on a thread of this process: for tests."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from workbench.engine.failure import portable
from workbench.engine.request import EngineListener, OnProgress, Request, Response
from workbench.errors import CancelledError

if TYPE_CHECKING:
    from workbench.engine.model_cache import ModelCache


class InlineEngine:
    """Runs each request on one worker thread.  A job that ignores its cancellation cannot be stopped here."""

    pid: int | None = None

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._models: ModelCache | None = None
        self._listeners: list[EngineListener] = []
        self._flags: dict[int, threading.Event] = {}

    @property
    def alive(self) -> bool:
        """Whether it was started and not closed."""
        return self._pool is not None

    def subscribe(self, listener: EngineListener) -> Callable[[], None]:
        """Call ``listener("started", text)``; returns the function that ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def start(self) -> None:
        """Make the worker thread."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="inline-engine")
            for listener in tuple(self._listeners):
                listener("started", "in this process")

    async def ready(self) -> None:
        """Start; there is nothing to wait for."""
        await self.start()

    async def run(self, job: int, request: Request[Response], on_progress: OnProgress | None = None) -> Response:
        """Run ``request`` on the worker thread; raises what :meth:`workbench.engine.engine.Engine.run` raises."""
        await self.start()
        assert self._pool is not None
        flag = self._flags[job] = threading.Event()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._pool, self._work, request, flag, on_progress)
        except asyncio.CancelledError:
            flag.set()
            raise
        finally:
            self._flags.pop(job, None)

    def cancel(self, job: int, *, insist: bool = True) -> None:
        """Ask the running ``job`` to stop."""
        if job in self._flags:
            self._flags[job].set()

    async def close(self) -> None:
        """Stop the running job at its next report and end the thread."""
        for flag in tuple(self._flags.values()):
            flag.set()
        pool, self._pool = self._pool, None
        if pool is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.get_running_loop().run_in_executor(pool, lambda: None)
            pool.shutdown()

    def _work(self, request: Request[Response], flag: threading.Event, on_progress: OnProgress | None) -> Response:
        from workbench.engine.model_cache import ModelCache

        def progress(fraction: float, text: str, partial: object = None) -> None:
            if flag.is_set():
                raise CancelledError(f"{request.title}: cancelled")
            if on_progress is not None:
                on_progress(fraction, text, partial)

        if self._models is None:
            self._models = ModelCache()
        try:
            progress(0.0, "")
            return request.run(self._models, progress)
        except Exception as error:
            raise portable(error, request.title) from error

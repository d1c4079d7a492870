"""Where the document is written: a process of its own, so that saving never waits for a job and always goes on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading

from workbench.engine import engine_process as wire
from workbench.engine.engine import Engine
from workbench.engine.failure import portable
from workbench.engine.model_cache import ModelCache
from workbench.engine.request import OnProgress, Request, Response
from workbench.errors import EngineDiedError, WorkbenchError
from workbench.progress import silent

log = logging.getLogger(__name__)


class FilesEngine(Engine):
    """Starts its process with the first request.  Where none can be started, or it dies, a thread does the work."""

    role = wire.FILES

    async def run(self, job: int, request: Request[Response], on_progress: OnProgress | None = None) -> Response:
        """Run ``request``; raises what it raises as a WorkbenchError, and CancelledError."""
        try:
            return await super().run(job, request, on_progress)
        except EngineDiedError as error:
            log.warning("%s; a thread goes on: %s", error, request.title)
        return await _in_thread(request)


async def _in_thread(request: Request[Response]) -> Response:
    """Run a request on a thread of its own, which also ends if nobody waits for it any more."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Response] = loop.create_future()

    def settle(response: Response | None, error: WorkbenchError | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(response)  # type: ignore[arg-type]  # there is one where there is no error

    def work() -> None:
        response, failure = None, None
        try:
            response = request.run(ModelCache(), silent)
        except BaseException as error:
            failure = portable(error, request.title)
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, response, failure)

    threading.Thread(target=work, name="files").start()
    return await future

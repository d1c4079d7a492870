"""Where the document is read and written: a process of its own, so that neither waits for a job, or for torch, and
saving always goes on."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from workbench.engine import engine_process as wire
from workbench.engine.engine import Engine
from workbench.engine.failure import portable
from workbench.engine.model_cache import ModelCache
from workbench.engine.request import OnProgress, Request, Response
from workbench.errors import EngineDiedError
from workbench.progress import silent

log = logging.getLogger(__name__)


class FilesEngine(Engine):
    """Starts its process with the first request.  Where none can be started, or it dies, a thread saves."""

    role = wire.FILES

    async def run(self, job: int, request: Request[Response], on_progress: OnProgress | None = None) -> Response:
        """Run ``request``; raises what it raises as a WorkbenchError, and CancelledError."""
        try:
            return await super().run(job, request, on_progress)
        except EngineDiedError as error:
            if getattr(request, "session", None) is None:  # what a file did to that process it does not do to this one
                raise
            log.warning("%s; a thread goes on: %s", error, request.title)
        return await _in_thread(request)


async def _in_thread(request: Request[Response]) -> Response:
    """Run a request on a thread of its own, which goes on even if nobody waits for it any more."""

    def work() -> Response:
        try:
            return request.run(ModelCache(), silent)
        except BaseException as error:
            raise portable(error, request.title) from None

    thread = ThreadPoolExecutor(1, "files")
    try:
        return await asyncio.wrap_future(thread.submit(work))
    finally:
        thread.shutdown(wait=False)

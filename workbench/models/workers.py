"""Other processes, here or on other machines, that run pieces of a step; each opens the model itself.

A piece is a function of this package and what it needs beside the model.  Results come back in the order of the pieces,
so that what adds them up gets the bits of a run in one process.  The first result of every other machine is computed
here, too: one with a broken device or other libraries is named instead of trusted.
"""

from __future__ import annotations

import os
import pickle
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from workbench.errors import CannotRunError, WorkbenchError, WorkerError, first_line
from workbench.models.model import Model
from workbench.models.placement import Placement
from workbench.models.spot_check import agree
from workbench.models.summary import ModelSource
from workbench.version import VERSION

P = TypeVar("P")
R = TypeVar("R")

AHEAD = 2
"""How many pieces are submitted for each worker at once."""

LOST = 3
"""How often workers may be lost before a step gives up."""

BEAT = 0.2
"""Seconds after which a step that waits for a result says that it still does."""

MODELS = "WORKBENCH_MODELS"
"""The environment variable with a worker's own folder of models, by name or by fingerprint."""

_current: ContextVar[Workers | None] = ContextVar("workers", default=None)
_opened: dict[Need, Model] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a piece needs of the process that runs it: versions, threads (sums depend on their number), the model."""

    version: str
    torch: str
    threads: int
    source: ModelSource
    fingerprint: str
    placement: Placement
    trust: bool


@dataclass(slots=True, kw_only=True)
class Workers:
    """``count`` processes behind the executor that ``start`` makes, which replaces a process that ends.

    The workers open models where ``placement`` says; ``trust`` lets them run the user's own Python file.  ``beat`` is
    called while a step waits for a result, and may raise.  ``stop`` ends an executor in the middle of its pieces,
    ``end`` is called when no workers are needed any more.
    """

    start: Callable[[], Executor]
    count: int
    placement: Placement = field(default_factory=Placement)
    trust: bool = False
    beat: Callable[[], object] = lambda: None
    stop: Callable[[Any], object] = lambda executor: executor.shutdown()
    end: Callable[[], object] = lambda: None
    _executor: Executor | None = None
    _lost: int = 0
    _checked: set[str] = field(default_factory=set)

    def map(self, model: Model, function: Callable[[Model, P], R], pieces: Iterable[P]) -> Iterator[R]:
        """Yield ``function(model, piece)`` of each piece, in order; ``model`` is as it was opened.

        A lost worker's pieces are run again.  Raises WorkbenchError as the function does, with the worker's name, and
        WorkerError, also for a machine whose first result is not what this one computes.
        """
        need, left = self._need(model), iter(pieces)
        waiting: deque[tuple[P, Future[bytes]]] = deque()
        try:
            while True:
                while len(waiting) < AHEAD * self.count and (piece := next(left, None)) is not None:
                    waiting.append((piece, self._submit(need, function, piece)))
                if not waiting:
                    return
                while not wait([waiting[0][1]], BEAT).done:
                    self.beat()
                try:
                    result = waiting[0][1].result()
                except BrokenExecutor as error:
                    self._count_lost(error)
                    waiting[0] = waiting[0][0], self._submit(need, function, waiting[0][0])
                    continue
                except WorkbenchError:
                    raise
                except Exception as error:
                    raise WorkerError(f"a worker failed: {first_line(error) or type(error).__name__}") from error
                piece, _ = waiting.popleft()
                (host, dtype), computed = pickle.loads(result)
                if host not in {machine(), *self._checked} and dtype == _dtype(model):
                    self._check(host, computed, function(model, piece))
                yield computed
        finally:
            for _, future in waiting:
                future.cancel()

    def close(self, *, at_once: bool = False) -> None:
        """End the workers that were started here, ``at_once`` or after the pieces that they have begun."""
        if self._executor is not None and at_once:
            self.stop(self._executor)
        elif self._executor is not None:
            self._executor.shutdown()
        self._executor = None
        self.end()

    def _need(self, model: Model) -> Need:
        import torch

        if not model.is_original:
            raise CannotRunError(
                f"{model.summary.name} runs with changed weights or inputs (transforms), which workers cannot open; "
                "run this step without a cluster (--cluster)"
            )
        return Need(
            version=VERSION, torch=torch.__version__, threads=torch.get_num_threads(), source=model.summary.source,
            fingerprint=model.summary.fingerprint, placement=self.placement, trust=self.trust,
        )  # fmt: skip

    def _submit(self, need: Need, function: Callable[[Model, P], R], piece: P) -> Future[bytes]:
        # bytes: an executor sends a tensor as a file in memory, which stays where the worker dies before it takes it
        if self._executor is None:
            self._executor = self.start()
        return self._executor.submit(run_piece, need, function, pickle.dumps(piece))

    def _check(self, host: str, computed: object, expected: object) -> None:
        if not agree(computed, expected):
            raise WorkerError(
                f"worker {host} computes something else than this machine from the same model and data; look for a "
                "broken device or other libraries there, and take it out of the cluster until then"
            )
        self._checked.add(host)

    def _count_lost(self, error: BrokenExecutor) -> None:
        self._lost += 1
        if self._lost > LOST:
            raise WorkerError(
                f"workers were lost {self._lost} times ({first_line(error)}); a worker may have too little memory: use "
                "fewer workers, fewer samples or a smaller batch"
            ) from error


def current() -> Workers | None:
    """Return the workers that steps use in this context, None where they run in this process."""
    return _current.get()


@contextmanager
def using(workers: Workers) -> Iterator[Workers]:
    """Let steps use these workers meanwhile, and end them; after an error or a cancel in the middle of their pieces."""
    token, ended = _current.set(workers), False
    try:
        yield workers
        ended = True
    finally:
        _current.reset(token)
        workers.close(at_once=not ended)


def machine() -> str:
    """Return the name of the machine that this runs on."""
    return socket.gethostname()


def _dtype(model: Model) -> str:
    return str(getattr(model, "dtype", ""))


def run_piece(need: Need, function: Callable[[Model, P], R], piece: bytes) -> bytes:
    """Run a pickled piece in a worker; returns ``(machine, dtype), result``, pickled.

    Every WorkbenchError names the machine.
    """
    try:
        model = _model(need)
        return pickle.dumps(((machine(), _dtype(model)), function(model, pickle.loads(piece))))
    except WorkbenchError as error:
        raise type(error)(f"worker {machine()}: {error}") from None


def _model(need: Need) -> Model:
    """Return the model, opened once in this process."""
    import torch

    for what, here, there in (("the workbench", VERSION, need.version), ("torch", torch.__version__, need.torch)):
        if here != there:
            raise WorkerError(f"it has {what} {here}, the step was started with {there}; install the same version")
    torch.set_num_threads(need.threads)
    if need not in _opened:
        _opened.clear()  # one model at a time
        _opened[need] = _open(need)
    return _opened[need]


def _open(need: Need) -> Model:
    """Open the model at its path, or in this machine's folder of models."""
    from workbench.models.sources import open_model

    source = need.source
    own = Path(source.path)
    places = [own]
    names = own.name, need.fingerprint.removeprefix("sha256:") + own.suffix
    if folder := os.environ.get(MODELS):
        places += [Path(folder) / name for name in names]
    path = next((place for place in places if place.exists()), None)
    if path is None and not source.path.startswith("demo:"):
        raise WorkerError(
            f"{source.path} does not exist there; share the folder, or put the model into the folder that {MODELS} "
            f"names, as {' or '.join(names)}"
        )
    model = open_model(
        source.path if path is None else str(path), factory=source.factory, weights=source.weights, trust=need.trust,
        placement=need.placement,
    )  # fmt: skip
    model.summary.require_fingerprint(need.fingerprint, "the step")
    return model

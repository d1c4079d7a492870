"""What the engine runs: anything with a title and a function of the open models and a progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from workbench.progress import Progress

if TYPE_CHECKING:
    from workbench.engine.model_cache import ModelCache

Response = TypeVar("Response")
Result = TypeVar("Result", covariant=True)

OnProgress = Callable[[float | None, str, object], None]
"""``(fraction, text, partial)``; a partial result comes by itself, with fraction None."""

EngineListener = Callable[[str, str], object]
"""``("started" | "died" | "restarted" | "failed", text)``."""


class Request(Protocol[Result]):
    """A frozen, picklable request.

    ``title`` is what the user reads in the jobs panel; ``listed``: the job stands there; ``keeps_partial``: the partial
    result of a cancelled run is of use; ``aside`` is the role of the process that runs it beside other jobs, ``files``
    or ``drawing``; empty: the engine.
    """

    @property
    def title(self) -> str: ...

    @property
    def listed(self) -> bool: ...

    @property
    def keeps_partial(self) -> bool: ...

    @property
    def aside(self) -> str: ...

    def run(self, models: ModelCache, progress: Progress) -> Result:
        """Compute the response; called in the engine."""
        ...

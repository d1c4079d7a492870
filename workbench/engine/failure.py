"""How an error crosses a process: by class name and message, and as one of ours whatever it was."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field

from workbench import errors
from workbench.errors import WorkbenchError


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """``kind`` names a class of :mod:`workbench.errors`; ``attributes`` are its further texts (a file to trust);
    ``trace`` the traceback for the log, empty for errors raised on purpose."""

    kind: str
    message: str
    attributes: dict[str, str] = field(default_factory=dict)
    trace: str = ""

    @staticmethod
    def of(error: BaseException, doing: str) -> Failure:
        """Describe ``error``, which ended what ``doing`` says."""
        if isinstance(error, WorkbenchError):
            texts = {name: value for name, value in vars(error).items() if isinstance(value, str)}
            return Failure(kind=_nearest_class(type(error)), message=str(error), attributes=texts)
        trace = "".join(traceback.format_exception(error))
        if out_of_memory(error):
            return Failure(
                kind="WorkbenchError", trace=trace,
                message=f"{doing}: the memory ran out; use fewer samples or a smaller batch, or close other programs"
                + (f" ({_first_line(error)})" if str(error) else ""),
            )  # fmt: skip
        return Failure(
            kind="WorkbenchError", trace=trace,
            message=f"{doing} failed with {type(error).__name__}: {_first_line(error) or 'no further message'}",
        )  # fmt: skip

    def error(self) -> WorkbenchError:
        """Make the error again: the same class, message and texts; the traceback is attached as a note."""
        kind = getattr(errors, self.kind, WorkbenchError)
        result: WorkbenchError = kind.__new__(kind)
        Exception.__init__(result, self.message)
        for name, value in self.attributes.items():
            setattr(result, name, value)
        if self.trace:
            result.add_note(self.trace)
        return result


def out_of_memory(error: BaseException) -> bool:
    """Tell whether ``error`` says that memory ran out: Python's, torch's allocator's or CUDA's."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and "allocate memory" in str(error)


def _nearest_class(kind: type[BaseException]) -> str:
    """Return the name of the first class in the error's ancestry that :mod:`workbench.errors` defines."""
    names = (base.__name__ for base in kind.__mro__ if getattr(errors, base.__name__, None) is base)
    return next(names, "WorkbenchError")


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:500]

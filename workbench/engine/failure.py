"""How an error crosses a process: as a class of :mod:`workbench.errors`, whatever it was."""

from __future__ import annotations

import traceback

from workbench import errors
from workbench.errors import MemoryLimitError, WorkbenchError, out_of_memory


def portable(error: BaseException, doing: str) -> WorkbenchError:
    """Return ``error``, which ended what ``doing`` says, as an error that the other process can unpickle.

    One of the workbench's own keeps its message, its texts (a file to trust) and the nearest class in its ancestry that
    :mod:`workbench.errors` defines.  Any other becomes a WorkbenchError with the traceback as a note.
    """
    if isinstance(error, WorkbenchError):
        kind = next(base for base in type(error).__mro__ if getattr(errors, base.__name__, None) is base)
        copy: WorkbenchError = kind(str(error))
        vars(copy).update({name: value for name, value in vars(error).items() if isinstance(value, str)})
        return copy
    reason = str(error).strip().partition("\n")[0][:500]
    if out_of_memory(error):
        message = f"{doing}: the memory ran out; use fewer samples or a smaller batch, or close other programs"
        failure: WorkbenchError = MemoryLimitError(f"{message} ({reason})" if reason else message)
    else:
        failure = WorkbenchError(f"{doing} failed with {type(error).__name__}: {reason or 'no further message'}")
    failure.add_note("".join(traceback.format_exception(error)))
    return failure

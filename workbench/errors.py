"""Every error that the workbench raises on purpose, as one tree.

A message says what came, what was expected and what to do about it.  The command line prints it as one line, the
window shows it as a dialog or as a line in the jobs panel; neither ever shows a traceback for one of these.
"""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from workbench.readable import readable

LONGEST = 4000
"""Characters of a message; of a longer one the middle is left out."""

COMPARED, LONGEST_COMPARED = 5000, 200
"""Names that a wrong one is compared with, and their characters: an untrusted file may have many long ones."""

NO_MEMORY = ("allocate memory", "can't start new thread")
"""What torch's allocator and Python say where there is no memory."""


class WorkbenchError(Exception):
    """The root: anything that a user can understand and act upon.

    The message is one line of at most LONGEST characters without control characters, whatever names of an untrusted
    file are in it.  ``command`` is what to type in a terminal to follow the advice of the message; only the command
    line shows it.
    """

    command: str = ""

    def __init__(self, *arguments: object, command: str = "") -> None:
        super().__init__(*map(_one_line, arguments))
        if command:
            self.command = command


def _one_line(text: object) -> object:
    if not isinstance(text, str) or (text.isprintable() and len(text) <= LONGEST):
        return text
    return readable(" ".join(text.split()), LONGEST)


class ModelError(WorkbenchError):
    """Something about the model that was opened."""


class NotAModelError(ModelError):
    """The path holds nothing that a model source can open, or a damaged file."""


class UnsafeModelError(ModelError):
    """Opening the file would run code that it contains (a pickle); it is refused."""


class TrustRequiredError(ModelError):
    """Opening the model runs the user's own Python file, which the user must allow first."""

    def __init__(self, message: str, file: str = "") -> None:
        super().__init__(message)
        self.file = file


class ModelTooLargeError(ModelError):
    """The model does not fit into this machine's memory; the numbers are in the message."""


class MemoryLimitError(WorkbenchError):
    """The work does not fit into the memory that it may take, or what is beyond it not onto the disk."""


class CannotRunError(ModelError):
    """The model has weights only; the action needs to run it."""


class NonFiniteError(ModelError):
    """A tensor holds NaN or infinite values; the layer is named."""


class DataError(WorkbenchError):
    """A data set that is missing, empty, damaged or of the wrong kind."""


class SchemeError(WorkbenchError):
    """A number format that does not exist or cannot hold a tensor."""


class RangeError(WorkbenchError):
    """A calibrated range that cannot be formed."""


class AlgorithmError(WorkbenchError):
    """A rounding algorithm that cannot serve a scheme or a layer."""


class PlanError(WorkbenchError):
    """A plan that does not fit the model, or cannot be met."""


class UnmatchedRuleError(PlanError):
    """A rule's pattern matches no layer."""


class FingerprintMismatchError(PlanError):
    """The plan was made for another model; both fingerprints are named."""


class TransformError(PlanError):
    """A rewrite of the model that its graph does not allow; the message says why."""


class BudgetError(PlanError):
    """No plan meets the budget; the message names the smallest possible one.

    ``smallest`` is its number, in bits per weight, bytes, nats or microseconds as the budget is (empty: not known).
    """

    smallest: str = ""


class MissingResultError(WorkbenchError):
    """An action needs a result (statistics, a sensitivity table) that the session does not hold yet."""


class SessionError(WorkbenchError):
    """A session file that cannot be read or written; the old file is whole."""


class ChangedSessionError(SessionError):
    """A session file that another program has written since it was read, and that is not to be replaced unasked."""


class DamagedSessionError(SessionError):
    """A session file of which a repair may save what is whole."""


class ExportError(WorkbenchError):
    """A plan or a model that the target cannot hold."""


class BackendUnavailableError(WorkbenchError):
    """A device, a library or a kernel that this machine lacks; the reason is named."""


class DeviceError(WorkbenchError):
    """A device that ran out of memory, failed or computed wrongly in the middle of a job; the reason is named."""


class DeviceLostError(DeviceError):
    """A device that failed: no later job of this process can use it, those of a new one can."""


class EngineDiedError(WorkbenchError):
    """The engine process ended in the middle of a job; the window and the session live on.

    ``partial`` is what the job had by then, where its request keeps that.
    """

    partial: object = None


class WorkerError(WorkbenchError):
    """A worker of a cluster cannot run its piece of a step; the message names the machine and what it lacks."""


class CancelledError(WorkbenchError):
    """The user cancelled the job; ``partial`` is what it had by then, where its request keeps that."""

    partial: object = None


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, with the next where it announces that; else its type's name.

    Objects are named without their address.
    """
    if isinstance(error, MemoryError):
        return "the memory ran out"
    if isinstance(error, UnicodeEncodeError) and error.reason.startswith("surrogates"):
        return "a library takes names and texts in UTF-8 alone, which this is not; rename it"
    if isinstance(error, KeyError) and len(error.args) == 1 and " " not in str(error):
        return f"there is no {error}"
    lines = str(error).strip().splitlines() or [type(error).__name__]
    line = " ".join(line.strip() for line in lines[: 2 if lines[0].endswith(":") else 1])
    return re.sub(r"<(?:[\w.]+\.)?(\w+) object at 0x[0-9a-f]+>", r"<\1>", line).replace("<BytesIO>", "its bytes")


def out_of_memory(error: BaseException | None) -> bool:
    """Return whether ``error``, or what it was raised for, says that memory ran out: Python's, torch's, CUDA's."""
    return memory_error(error) is not None


def memory_error(error: BaseException | None) -> BaseException | None:
    """Return the error that says that memory ran out, of ``error`` and what it was raised for; None where none does."""
    while error is not None:
        if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
            return error
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            return error
        if isinstance(error, RuntimeError) and any(words in str(error) for words in NO_MEMORY):
            return error
        error = error.__cause__ or error.__context__
    return None


UNFORESEEN = "is damaged, or holds what its reader does not expect; if other programs open it, please report that"


@contextmanager
def naming_damage(place: Path, kind: type[WorkbenchError]) -> Iterator[None]:
    """Raise ``kind`` for what no reader of the file at ``place`` foresaw: an untrusted file, or a mistake of ours that
    it shows."""
    try:
        yield
    except (WorkbenchError, OSError):
        raise
    except Exception as error:
        if out_of_memory(error):
            raise
        raise kind(f"{place} {UNFORESEEN} ({type(error).__name__}: {first_line(error)})") from error


def nearest(name: str, known: Iterable[str], limit: int = 3) -> str:
    """Return ``name``'s closest spellings among ``known`` as readable text, or an empty string."""
    compared = [each for each in islice(known, COMPARED) if len(each) <= LONGEST_COMPARED]
    matches = difflib.get_close_matches(name[:LONGEST_COMPARED], compared, n=limit, cutoff=0.4)
    return f"; the closest are {', '.join(matches)}" if matches else ""

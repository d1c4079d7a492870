"""Write the session to a file."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.session.session import Session
from workbench.steps.needs import everything
from workbench.steps.options import OptionInfo
from workbench.steps.step import SESSION_LINE, Context, Step, short

PATH = OptionInfo(label="File", path="save", metavar="S.qwb", positional=True, help="the file to write")


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveSessionOptions:
    """Where to."""

    path: str = field(metadata=PATH.metadata)


def _run(context: Context, options: SaveSessionOptions) -> str:
    """Write it, atomically, and return its path; raises SessionError."""
    context.session.save(options.path)
    return options.path


def _heading(options: SaveSessionOptions, session: Session | None) -> str:
    return f"Save {short(options.path)}"


def _python(options: SaveSessionOptions, session: Session | None) -> str:
    return f"\n{SESSION_LINE}session.save({options.path!r})"


SAVE_SESSION = Step(
    name="save-session",
    title="Save the session",
    summary="Writes the session to a file; the old file stays whole if anything fails.",
    options=SaveSessionOptions,
    run=_run,
    heading=_heading,
    needs=everything,
    python=_python,
)

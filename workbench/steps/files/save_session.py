"""Write the session to a file."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.steps.options import OptionInfo
from workbench.steps.step import SESSION_LINE, Context, Step, short


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveSessionOptions:
    """Where to."""

    path: str = field(metadata=OptionInfo(
        label="File", path="save", metavar="S.qwb", positional=True, help="the file to write"
    ).metadata)  # fmt: skip


def _run(context: Context, options: SaveSessionOptions) -> str:
    """Write it, atomically, and return its path; raises SessionError."""
    context.session.save(options.path)
    return options.path


SAVE_SESSION = Step(
    name="save-session", title="Save the session", options=SaveSessionOptions, run=_run,
    summary="Writes the session to a file; the old file stays whole if anything fails.",
    heading=lambda options, session: f"Save {short(options.path)}",
    needs=lambda session, options: session, aside="files",
    python=lambda request: f"{SESSION_LINE}session.save({request.options.path!r})",
)  # fmt: skip

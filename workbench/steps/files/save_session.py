"""Write the session to a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from workbench.errors import ChangedSessionError
from workbench.session.shared_file import Stamp, stamp_of, writing
from workbench.steps.options import OptionInfo, option
from workbench.steps.step import SESSION_LINE, Context, Step, short


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveSessionOptions:
    """Where to."""

    path: str = field(metadata=OptionInfo(
        label="File", path="save", metavar="S.qwb", positional=True, help="the file to write"
    ).metadata)  # fmt: skip
    read: Stamp = option((), OptionInfo(
        label="Version", empty="any", form=False, command=False,
        help="the version of the file that may be replaced: the one that was read",
    ))  # fmt: skip


def _run(context: Context, options: SaveSessionOptions) -> Stamp:
    """Write it, atomically, while nobody else writes it, and return which version of the file that is.

    Raises SessionError: ChangedSessionError where the file is not the version that may be replaced.
    """
    path = Path(options.path)
    with writing(path):
        if options.read and stamp_of(path) not in ((), options.read):
            raise ChangedSessionError(
                f"another window or program has changed {path} since it was read; choose another name, or replace it"
            )
        context.session.save(path)
        return stamp_of(path)


SAVE_SESSION = Step(
    name="save-session", title="Save the session", options=SaveSessionOptions, run=_run,
    summary="Writes the session to a file; the old file stays whole if anything fails.",
    heading=lambda options, session: f"Save {short(options.path)}",
    needs=lambda session, options: session, aside="files",
    python=lambda request: f"{SESSION_LINE}session.save({request.options.path!r})",
)  # fmt: skip

"""Keep a recovery copy of what was not saved yet; the engine writes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from workbench.session.session import Session
from workbench.steps.needs import everything
from workbench.steps.options import OptionInfo, option
from workbench.steps.step import Context, Step

FOLDER = OptionInfo(label="Folder", path="folder", help="the folder of the window's recovery copies")
PATH = OptionInfo(label="File", path="file", empty="never saved", help="the session's own file")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepRecoveryOptions:
    """Into which ``folder`` the copy goes, and the file ``path`` that it belongs to (None: never saved)."""

    folder: str = field(metadata=FOLDER.metadata)
    path: str | None = option(None, PATH)


def _run(context: Context, options: KeepRecoveryOptions) -> str:
    """Write it, atomically, and return the file's path; raises SessionError."""
    from workbench.session.autosave import write_recovery

    path = None if options.path is None else Path(options.path)
    return str(write_recovery(context.session, path, Path(options.folder)))


def _heading(options: KeepRecoveryOptions, session: Session | None) -> str:
    return "Keep a recovery copy"


KEEP_RECOVERY = Step(
    name="keep-recovery",
    title="Keep a recovery copy",
    summary="Copies unsaved work aside, to be offered after a crash.",
    options=KeepRecoveryOptions,
    run=_run,
    heading=_heading,
    needs=everything,
    listed=False,
)

"""Keep a recovery copy of what was not saved yet; the engine writes it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from workbench.session.session import Session
from workbench.session.shared_file import Stamp
from workbench.steps.options import OptionInfo, option
from workbench.steps.requirements import without_results
from workbench.steps.step import Context, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepRecoveryOptions:
    """Into which ``folder`` the copy goes, and the file ``path`` that it belongs to (None: never saved).

    ``base``: without results, as what the journal of edits begins with.
    """

    folder: str = field(metadata=OptionInfo(
        label="Folder", path="folder", help="the folder of the window's recovery copies"
    ).metadata)  # fmt: skip
    path: str | None = option(None, OptionInfo(
        label="File", path="file", empty="never saved", help="the session's own file"
    ))  # fmt: skip
    read: Stamp = option((), OptionInfo(
        label="Version", empty="not known", help="the version of the session's own file that was read or saved last"
    ))  # fmt: skip
    base: bool = option(False, OptionInfo(label="Base only", help="copy the session without its results"))


def _run(context: Context, options: KeepRecoveryOptions) -> str:
    """Write it, atomically, and return the file's path; raises SessionError."""
    from workbench.session.autosave import write_recovery

    path = None if options.path is None else Path(options.path)
    folder = Path(options.folder)
    return str(write_recovery(context.session, path, folder, base=options.base, read=options.read))


def _needed(session: Session, options: KeepRecoveryOptions) -> Session:
    return replace(without_results(session), plans=session.plans, statistics={}) if options.base else session


KEEP_RECOVERY = Step(
    name="keep-recovery", title="Keep a recovery copy", options=KeepRecoveryOptions, run=_run, listed=False,
    summary="Copies unsaved work aside, to be offered after a crash.",
    needs=_needed, aside="files",
)  # fmt: skip

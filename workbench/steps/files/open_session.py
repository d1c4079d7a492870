"""Read a session file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from workbench.session.session import Session
from workbench.steps.options import OptionInfo, option
from workbench.steps.step import Context, Step, short

LOST = "lost in the damaged file: "
"""Begins a note on a part that a repair left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSessionOptions:
    """Which file."""

    path: str = field(metadata=OptionInfo(
        label="Session", path="file", metavar="S.qwb", positional=True, help="a session file"
    ).metadata)  # fmt: skip
    repair: bool = option(False, OptionInfo(label="Repair", help="open what is whole of a damaged session"))


def _run(context: Context, options: OpenSessionOptions) -> Session:
    """Read it; a repair says in the notes what was lost.  Raises SessionError."""
    if not options.repair:
        return Session.load(options.path)
    from workbench.session.file.hdf5 import repair_session

    session, lost = repair_session(Path(options.path), Session)
    return replace(session, notes=(*session.notes, *(f"{LOST}{line}" for line in lost)))


def losses(session: Session) -> str:
    """Return the parts of its file that a repair left out, by their groups; empty for none."""
    lost = (note.removeprefix(LOST).lstrip("/") for note in session.notes if note.startswith(LOST))
    return ", ".join(sorted({re.split("[/:]", part)[0] for part in lost}))


OPEN_SESSION: Step[OpenSessionOptions, Session] = Step(
    name="open-session", title="Open a session", options=OpenSessionOptions, document=False, aside="files",
    summary="Reads a session file.",
    run=_run,
    heading=lambda options, session: f"Open {short(options.path)}",
    python=lambda request: f"session = wb.Session.load({request.options.path!r})",
)  # fmt: skip

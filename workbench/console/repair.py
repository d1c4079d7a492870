"""The command ``repair``: what is whole of a damaged session, as a new session."""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.console.command import Command
from workbench.console.flags import SESSION, flag
from workbench.console.report import Report
from workbench.errors import SessionError
from workbench.progress import Progress
from workbench.session.session import Session


def _run(arguments: argparse.Namespace, progress: Progress) -> Report:
    from workbench.session.file.hdf5 import repair_session

    source, out = Path(arguments.session), Path(arguments.out)
    if out.exists():
        raise SessionError(f"{out} exists already; choose another name")
    session, lost = repair_session(source, Session)
    session.save(out)
    text = f"{out} holds the undamaged parts of {source}; {len(lost)} part{'' if len(lost) == 1 else 's'} lost"
    return Report(facts={"out": str(out), "lost": list(lost)}, parts=[text, *(f"lost: {line}" for line in lost)])


REPAIR = Command(
    name="repair", run=_run, example="repair S.qwb --out REPAIRED.qwb",
    help="Saves the undamaged parts of a damaged session as a new one.",
    flags=(SESSION, flag("--out", metavar="S2.qwb", required=True, help="write the new session here (required)")),
)  # fmt: skip

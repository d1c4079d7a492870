"""Read a session file."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.session.session import Session
from workbench.steps.options import OptionInfo
from workbench.steps.step import Step, short


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSessionOptions:
    """Which file."""

    path: str = field(metadata=OptionInfo(
        label="Session", path="file", metavar="S.qwb", positional=True, help="a session file"
    ).metadata)  # fmt: skip


OPEN_SESSION: Step[OpenSessionOptions, Session] = Step(
    name="open-session", title="Open a session", options=OpenSessionOptions, document=False,
    summary="Reads a session file.",
    run=lambda context, options: Session.load(options.path),
    heading=lambda options, session: f"Open {short(options.path)}",
    python=lambda options, session: f"\nsession = wb.Session.load({options.path!r})",
)  # fmt: skip

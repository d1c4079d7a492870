"""Read a session file."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.session.session import Session
from workbench.steps.options import OptionInfo
from workbench.steps.step import Context, Step, short

PATH = OptionInfo(label="Session", path="file", metavar="S.qwb", positional=True, help="a session file")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSessionOptions:
    """Which file."""

    path: str = field(metadata=PATH.metadata)


def _run(context: Context, options: OpenSessionOptions) -> Session:
    return Session.load(options.path)


def _heading(options: OpenSessionOptions, session: Session | None) -> str:
    return f"Open {short(options.path)}"


def _python(options: OpenSessionOptions, session: Session | None) -> str:
    return f"\nsession = wb.Session.load({options.path!r})"


OPEN_SESSION = Step(
    name="open-session",
    title="Open a session",
    summary="Reads a session file.",
    options=OpenSessionOptions,
    run=_run,
    heading=_heading,
    document=False,
    python=_python,
)

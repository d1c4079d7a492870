"""Compare: two sessions side by side, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.insight.compare import SessionComparison, compare_sessions
from workbench.session.session import Session
from workbench.steps.needs import everything
from workbench.steps.options import OptionInfo
from workbench.steps.step import Context, Step, short

OTHER = OptionInfo(
    label="Other session", path="file", metavar="B.qwb", positional=True, help="another session file"
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """With which session."""

    other: str = field(metadata=OTHER.metadata)


def _run(context: Context, options: CompareOptions) -> SessionComparison:
    """Compare; raises SessionError for a file that cannot be read."""
    return compare_sessions(context.session, Session.load(options.other))


def _heading(options: CompareOptions, session: Session | None) -> str:
    return f"Compare with {short(options.other)}"


COMPARE = Step(
    name="compare",
    title="Compare with a session",
    summary="Shows two sessions side by side: what each was made from, gives every layer, and measured.",
    options=CompareOptions,
    run=_run,
    heading=_heading,
    needs=everything,
)

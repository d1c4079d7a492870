"""Compare: two sessions side by side, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.insight.compare import SessionComparison, compare_sessions
from workbench.session.session import Session
from workbench.steps.options import OptionInfo
from workbench.steps.step import Step, short


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """With which session."""

    other: str = field(metadata=OptionInfo(
        label="Other session", path="file", metavar="B.qwb", positional=True, help="another session file"
    ).metadata)  # fmt: skip


COMPARE: Step[CompareOptions, SessionComparison] = Step(
    name="compare", title="Compare with a session", options=CompareOptions, needs=lambda session, options: session,
    summary="Shows two sessions side by side: what each was made from, gives every layer, and measured.",
    run=lambda context, options: compare_sessions(context.session, Session.load(options.other)),
    heading=lambda options, session: f"Compare with {short(options.other)}",
)  # fmt: skip

"""The step that writes the report: in a process of its own, so that the window answers while pictures are drawn."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.session.workspace import State
from workbench.steps.step import SESSION_LINE, Context, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """Where the report goes (the suffix says whether it is a page or a PDF), and what is shown beside the session."""

    path: str
    view: State


def _run(context: Context, options: ReportOptions) -> str:
    """Draw and write it, in a process without a window, and return the file's path; raises ExportError."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from PySide6.QtWidgets import QApplication

    from workbench.gui.report import report
    from workbench.gui.shell import theme

    app = QApplication(["workbench"])
    theme.apply(app, theme.LIGHT)
    report.write(replace(options.view, session=context.session), Path(options.path), context.progress)
    return options.path


WRITE_REPORT = Step(
    name="write-report", title="Save the report", options=ReportOptions, run=_run, aside="drawing",
    summary="Writes everything about the session as one page or PDF.", needs=lambda session, options: session,
    python=lambda request: (
        "from workbench.gui.screenshot import write_report\n\n"
        f"{SESSION_LINE}write_report(session, {request.options.path!r})"
    ),
)  # fmt: skip

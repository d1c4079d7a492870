"""The printable report of a session: drawn in the light palette from the state alone, as one HTML file."""

from __future__ import annotations

import time
from pathlib import Path

from workbench.atomic import replacing
from workbench.errors import ExportError
from workbench.gui.report.page import page
from workbench.session.workspace import State


def html(state: State) -> str:
    """Return the report of the open session; raises ExportError without one."""
    from workbench.gui.report.sections import SECTIONS  # pyqtgraph is loaded when there is something to draw

    session = state.session
    if session is None:
        raise ExportError("there is nothing to report; open a model or a session first")
    sections = [section for make in SECTIONS if (section := make(session, state)) is not None]
    made = time.strftime("%Y-%m-%d %H:%M")
    return page(f"Quantization of {session.model.name}", f"{session.plan.name}, {made}", sections)


def write(state: State, path: Path) -> None:
    """Write the report; raises ExportError."""
    text = html(state)
    with replacing(path, ExportError, "the report") as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


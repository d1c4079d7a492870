"""The report of a session file, without a window: ``python -m workbench.gui.report_file S.qwb out.html``."""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def write_from_file(session: Path, out: Path) -> Path:
    """Write the report of the session file ``session`` to ``out``; raises SessionError, ExportError."""
    if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from workbench.gui.app import application
    from workbench.gui.report import report
    from workbench.gui.screenshot import worst_layer
    from workbench.gui.shell import theme
    from workbench.session.session import Session
    from workbench.session.workspace import Workspace

    theme.apply(application(), theme.LIGHT)
    workspace = Workspace()
    workspace.open(Session.load(session), session)
    workspace.select((worst_layer(workspace.state),))
    report.write(workspace.state, out)
    return out


def main() -> None:
    """Read the command line and write."""
    parser = argparse.ArgumentParser(description="Write a session's printable report.")
    parser.add_argument("session", help="a .qwb file")
    parser.add_argument("out", help="the HTML file to write")
    options = parser.parse_args()
    write_from_file(Path(options.session), Path(options.out))


if __name__ == "__main__":
    main()

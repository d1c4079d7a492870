"""A session as a picture of the real window (``python -m workbench.gui.screenshot S.qwb out.png``), and its report."""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path

from workbench.session.session import Session
from workbench.session.workspace import State, Workspace

SIZE = 1600, 1000
SETTLING = 5
"""Turns of the event loop after which layouts and plots have settled."""


def screenshot(session: Path, out: Path) -> None:
    """Draw the window with all its panels filled into ``out`` (PNG).

    Raises SessionError where the session cannot be read, OSError where the picture cannot be written.
    """
    _draw_offscreen()
    from workbench.gui.app import application
    from workbench.gui.context.context import Context
    from workbench.gui.shell import theme
    from workbench.gui.window import Window

    app = application()
    theme.apply(app, theme.LIGHT)
    context = Context(Workspace())
    window = Window(context, theme.LIGHT, keep_layout=False)
    try:
        window.resize(*SIZE)
        window.show()
        context.workspace.open(Session.load(session), session)
        context.workspace.select((worst_layer(context.workspace.state),))
        app.processEvents()
        while not window.is_drawn:
            app.processEvents()
        for _ in range(SETTLING):
            app.processEvents()
        if not window.grab().save(str(out)):
            raise OSError(f"the picture {out} could not be written")
    finally:
        window.dispose()
        app.processEvents()


def write_report(session: Session | str | Path, out: str | Path) -> Path:
    """Write the report of a session, or of the file of one, to ``out``; raises SessionError, ExportError."""
    _draw_offscreen()
    from workbench.gui.app import application
    from workbench.gui.report import report
    from workbench.gui.shell import theme

    theme.apply(application(), theme.LIGHT)
    workspace = Workspace()
    if isinstance(session, Session):
        workspace.open(session, None)
    else:
        workspace.open(Session.load(session), Path(session))
    workspace.select((worst_layer(workspace.state),))
    report.write(workspace.state, Path(out))
    return Path(out)


def _draw_offscreen() -> None:
    """Use Qt's offscreen platform where there is no display."""
    if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


def worst_layer(state: State) -> str:
    """Return the layer that costs most under the plan; the first one where nothing is known."""
    assert state.session is not None
    names, table = [layer.name for layer in state.session.model.layers], state.session.table(state.metric)
    if table is None:
        return names[0] if names else ""
    losses = {name: table.of(name, state.assignments[name].weights) for name in names}
    return max(names, key=lambda name: -math.inf if math.isnan(losses[name]) else losses[name], default="")


def main() -> None:
    """Read the command line and draw."""
    parser = argparse.ArgumentParser(description="Draw the window with a session in it.")
    parser.add_argument("session", help="a .qwb file")
    parser.add_argument("out", help="the PNG to write")
    options = parser.parse_args()
    screenshot(Path(options.session), Path(options.out))


if __name__ == "__main__":
    main()

"""A session as a picture of the real window (``python -m workbench.gui.screenshot S.qwb out.png``), and its report."""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path

from workbench.session.session import Session
from workbench.session.workspace import State

SIZE = (1600, 1000)
SETTLING = 5
"""Turns of the event loop after which layouts and plots have settled."""


def screenshot(
    session: Session | str | Path, out: str | Path, size: tuple[int, int] = SIZE, *, dark: bool = False, front: str = ""
) -> Path:
    """Draw the window with all its panels filled into ``out`` (PNG) and return its path.

    ``front`` names panels to bring forward, separated by commas.  Raises SessionError where the session cannot be read,
    OSError where the picture cannot be written.  Where there is no display, Qt's offscreen platform is used.
    """
    _draw_offscreen()
    from workbench.gui.app import application
    from workbench.gui.context.context import Context
    from workbench.gui.context.runner import NoJobs
    from workbench.gui.shell import theme
    from workbench.gui.window import Window
    from workbench.session.workspace import Workspace

    path = None if isinstance(session, Session) else Path(session)
    document = session if isinstance(session, Session) else Session.load(session)
    app = application()
    colours = theme.DARK if dark else theme.LIGHT
    theme.apply(app, colours)
    context = Context(Workspace(), NoJobs())
    window = Window(context, colours, keep_layout=False)
    try:
        window.resize(*size)
        window.show()
        context.workspace.open(document, path)
        context.workspace.select((worst_layer(context.workspace.state),))
        for name in filter(None, front.split(",")):
            window.reveal(name)
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
    return Path(out)


def write_report(session: Path, out: Path) -> Path:
    """Write the report of the session file ``session`` to ``out``; raises SessionError, ExportError."""
    _draw_offscreen()
    from workbench.gui.app import application
    from workbench.gui.report import report
    from workbench.gui.shell import theme
    from workbench.session.workspace import Workspace

    theme.apply(application(), theme.LIGHT)
    workspace = Workspace()
    workspace.open(Session.load(session), session)
    workspace.select((worst_layer(workspace.state),))
    report.write(workspace.state, out)
    return out


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
    parser.add_argument("--size", default=f"{SIZE[0]}x{SIZE[1]}", help="width x height, for example 1280x720")
    parser.add_argument("--dark", action="store_true", help="the dark palette")
    parser.add_argument("--front", default="", help="panels to bring forward, separated by commas")
    options = parser.parse_args()
    width, height = (int(part) for part in options.size.split("x"))
    screenshot(options.session, options.out, (width, height), dark=options.dark, front=options.front)


if __name__ == "__main__":
    main()

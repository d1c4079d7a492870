"""Prints what is cut off in the window at 1280 x 720, one line each: ``python -m tests.gui.cut_widgets``.

Run with QT_SCALE_FACTOR to see other scalings; used by test_scaling.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

SIZE = (1280, 720)
SLACK = 1
"""Pixels of rounding at scalings that are no whole numbers."""


def _screen() -> None:
    file = Path(tempfile.mkdtemp(prefix="workbench-screen-")) / "screen.json"
    size = {"x": 0, "y": 0, "width": 4096, "height": 2400}
    screen = {"name": "s", **size, "logicalDpi": 96, "logicalBaseDpi": 96, "dpr": 1}
    file.write_text(json.dumps({"synchronousWindowSystemEvents": False, "screens": [screen]}))
    os.environ["QT_QPA_PLATFORM"] = f"offscreen:configfile={file}"


def main() -> None:
    """Open a full session, go through every panel and every form, print what does not fit."""
    _screen()
    from PySide6.QtCore import QSettings

    folder = tempfile.mkdtemp(prefix="workbench-settings-")
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, folder)
    from PySide6.QtWidgets import QWidget

    from tests.gui import sessions
    from workbench.gui import options, theme
    from workbench.gui.app import application
    from workbench.gui.desk import Desk, NoJobs
    from workbench.gui.dialogs import FormDialog
    from workbench.gui.forms import Form
    from workbench.gui.panels import PANELS
    from workbench.gui.window import Window
    from workbench.runtime.workspace import Workspace

    app = application()
    theme.apply(app, theme.LIGHT)
    desk = Desk(Workspace(), NoJobs())
    window = Window(desk, theme.LIGHT, keep_layout=False)
    window.resize(*SIZE)
    window.show()
    desk.workspace.open(sessions.full(3), None)
    desk.workspace.show_target("vllm")
    desk.workspace.select([window.desk.workspace.state.session.model.layers[1].name])  # type: ignore[union-attr]

    def settle() -> None:
        for _ in range(5):
            app.processEvents()
        while not window.is_drawn:
            app.processEvents()

    found = []
    settle()
    if window.width() > SIZE[0] + SLACK or window.height() > SIZE[1] + SLACK:
        found.append(f"the window needs {window.width()} x {window.height()}")
    for spec in PANELS:
        window.show_panel(spec.id)
        settle()
        found += [f"{spec.id}: {text}" for text in cut(window.panels[spec.id])]
    tabs = window.panels["plan"].tabs
    for page in range(tabs.count()):
        tabs.setCurrentIndex(page)
        settle()
        found += [f"plan, {tabs.tabText(page)}: {text}" for text in cut(tabs.currentWidget())]
    if len(sys.argv) > 1:
        window.grab().save(sys.argv[1])
    forms: tuple[QWidget, ...] = tuple(
        FormDialog(window, "Title", "Words that explain.", Form(given), "Start")
        for given in (options.CalibrateOptions(), options.EvaluateOptions(), options.ScoreOptions(),
                      options.TrainOptions(), options.TimeOptions(), options.ExportOptions())
    )  # fmt: skip
    for dialog in forms:
        dialog.show()
        settle()
        name = type(dialog).__name__
        found += [f"{name}: {text}" for text in cut(dialog)]
        if dialog.width() > SIZE[0] or dialog.height() > SIZE[1]:
            found.append(f"{name} needs {dialog.width()} x {dialog.height()}")
        dialog.close()
    print("\n".join(found))


def cut(root: object) -> list[str]:
    """Return the buttons, boxes, fields and labels under ``root`` that get less room than they ask for."""
    from PySide6.QtWidgets import QAbstractButton, QAbstractSpinBox, QComboBox, QLabel, QSizePolicy, QWidget

    assert isinstance(root, QWidget)
    found = []
    for kind in (QAbstractButton, QComboBox, QAbstractSpinBox, QLabel):
        for widget in root.findChildren(kind):
            if not widget.isVisible() or widget.visibleRegion().isEmpty() or widget.objectName().startswith("qt_"):
                continue
            wanted, policy = widget.minimumSizeHint(), widget.sizePolicy().horizontalPolicy()
            if isinstance(widget, QLabel) and (widget.wordWrap() or policy == QSizePolicy.Policy.Ignored):
                continue
            wide = policy != QSizePolicy.Policy.Ignored and widget.width() + SLACK < wanted.width()
            if wide or widget.height() + SLACK < min(wanted.height(), widget.sizeHint().height()):
                name = widget.accessibleName() or getattr(widget, "text", lambda: "")() or type(widget).__name__
                has, asks = (widget.width(), widget.height()), (wanted.width(), wanted.height())
                found.append(f"{name!r} has {has} of {asks}")
    return found


if __name__ == "__main__":
    main()

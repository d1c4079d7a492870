"""Prints what is cut off in the window, one line each: ``python -m tests.gui.cut_widgets 1280x720 en [PICTURE]``.

Run with QT_SCALE_FACTOR to see other scalings; used by test_scaling.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.gui.window import Window

ARROW = 28
"""Pixels of a list beside its text."""

ELIDED = 150
"""Pixels of a text that are enough to tell what it is."""

SLACK = 1
"""Pixels of rounding at scalings that are no whole numbers."""


def _screen() -> None:
    file = Path(tempfile.mkdtemp(prefix="workbench-screen-")) / "screen.json"
    size = {"x": 0, "y": 0, "width": 4096, "height": 2400}
    screen = {"name": "s", **size, "logicalDpi": 96, "logicalBaseDpi": 96, "dpr": 1}
    file.write_text(json.dumps({"synchronousWindowSystemEvents": False, "screens": [screen]}))
    os.environ["QT_QPA_PLATFORM"] = f"offscreen:configfile={file}"


def main(size: str, language: str, picture: str = "") -> None:
    """Open a full session, go through every panel and every form, print what does not fit."""
    _screen()
    width, height = map(int, size.split("x"))
    window = _opened(width, height, language)
    _settled(window)
    result = []
    if window.width() > width + SLACK or window.height() > height + SLACK:
        result.append(f"the window needs {window.width()} x {window.height()}")
    result += [*_in_panels(window), *_in_forms(window, width, height)]
    if picture:
        window.grab().save(picture)
    print("\n".join(result))


def _opened(width: int, height: int, language: str) -> Window:
    from PySide6.QtCore import QSettings

    folder = tempfile.mkdtemp(prefix="workbench-settings-")
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, folder)
    from tests.gui import sessions
    from workbench.gui.app import application
    from workbench.gui.context.context import Context
    from workbench.gui.shell import theme, words
    from workbench.gui.window import Window
    from workbench.session.workspace import Workspace

    app = application()
    theme.apply(app, theme.LIGHT)
    words.install(app, language)
    context = Context(Workspace())
    window = Window(context, theme.LIGHT, keep_layout=False)
    window.resize(width, height)
    window.show()
    session = sessions.full(3)
    context.workspace.open(session, None)
    context.workspace.show_target("vllm")
    context.workspace.select([session.model.layers[1].name])
    return window


def _settled(window: Window) -> None:
    """Wait until everything is drawn."""
    from PySide6.QtWidgets import QApplication

    for _ in range(5):
        QApplication.processEvents()
    while not window.is_drawn:
        QApplication.processEvents()


def _in_panels(window: Window) -> list[str]:
    from workbench.gui.panels import PANELS

    result = []
    for spec in PANELS:
        window.reveal(spec.id)
        _settled(window)
        result += [f"{spec.id}: {text}" for text in cut(window.panels[spec.id])]
    tabs = window.panels["plan"].tabs
    for page in range(tabs.count()):
        tabs.setCurrentIndex(page)
        _settled(window)
        result += [f"plan, {tabs.tabText(page)}: {text}" for text in cut(tabs.currentWidget())]
    return result


def _in_forms(window: Window, width: int, height: int) -> list[str]:
    from workbench.gui.shell.dialogs import FormDialog
    from workbench.gui.shell.forms import Form
    from workbench.steps.calibrate import CALIBRATE
    from workbench.steps.checks.audit import AUDIT
    from workbench.steps.checks.refine import REFINE
    from workbench.steps.evaluate import EVALUATE
    from workbench.steps.files.export import EXPORT
    from workbench.steps.score import SCORE
    from workbench.steps.timing.kernels import TIME_KERNELS
    from workbench.steps.train import TRAIN

    result = []
    for step in (CALIBRATE, EVALUATE, SCORE, TRAIN, TIME_KERNELS, EXPORT, AUDIT, REFINE):
        name = step.name
        options = step.options() if step.first is None else step.first(window.context.workspace.state.session)
        dialog = FormDialog(window, step.title, step.summary, Form(options), "Start")
        across = min(dialog.sizeHint().width(), width * 2 // 3)  # as Qt does on a screen of that size
        dialog.resize(across, dialog.layout().totalHeightForWidth(across))
        dialog.show()
        _settled(window)
        result += [f"{name}: {text}" for text in cut(dialog)]
        if dialog.width() > width or dialog.height() > height:
            result.append(f"{name} needs {dialog.width()} x {dialog.height()}")
        dialog.close()
    return result


def cut(root: object) -> list[str]:
    """Return the buttons, boxes, fields and labels under ``root`` that get less room than they ask for."""
    from PySide6.QtWidgets import QAbstractButton, QAbstractSpinBox, QComboBox, QLabel, QSizePolicy, QWidget

    assert isinstance(root, QWidget)
    result = []
    for kind in (QAbstractButton, QComboBox, QAbstractSpinBox, QLabel):
        for widget in root.findChildren(kind):
            if not widget.isVisible() or widget.visibleRegion().isEmpty() or widget.objectName().startswith("qt_"):
                continue
            expected, policy = widget.minimumSizeHint(), widget.sizePolicy().horizontalPolicy()
            if isinstance(widget, QComboBox):  # its list is as wide as it must be, and a long text ends with dots
                needed = widget.fontMetrics().horizontalAdvance(widget.currentText()) + ARROW
                expected.setWidth(min(expected.width(), needed, ELIDED))
            if isinstance(widget, QLabel) and (widget.wordWrap() or policy == QSizePolicy.Policy.Ignored):
                continue
            wide = policy != QSizePolicy.Policy.Ignored and widget.width() + SLACK < expected.width()
            if wide or widget.height() + SLACK < min(expected.height(), widget.sizeHint().height()):
                name = widget.accessibleName() or getattr(widget, "text", lambda: "")() or type(widget).__name__
                has, asks = (widget.width(), widget.height()), (expected.width(), expected.height())
                result.append(f"{name!r} has {has} of {asks}")
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])

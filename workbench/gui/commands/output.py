"""Pictures, tables and the report of what the window shows, as files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QAbstractItemView, QApplication, QFileDialog, QTableView, QTreeView, QWidget

from workbench.errors import WorkbenchError
from workbench.gui.commands.command_group import CommandGroup
from workbench.gui.panels.panel import Panel
from workbench.gui.shell import dialogs
from workbench.gui.tables.files import save_csv

TABLES = (QTableView, QTreeView)


class OutputCommands(CommandGroup):
    """What is written of the window: a plot, a table, everything."""

    def save_picture(self) -> None:
        """Save the plot that has the keyboard, or the first one of its panel, as PNG or SVG."""
        from workbench.gui.plots.heatmap import Heatmap
        from workbench.gui.plots.multiples import Multiples
        from workbench.gui.plots.plot import Plot
        from workbench.gui.report.pictures import save_picture  # pyqtgraph is loaded when there is a plot, not before

        widget = self._wanted((Plot, Heatmap, Multiples))
        if widget is None:
            self.context.messages.say(
                "Save the picture: not now", "No plot is shown; go to a panel that has one", "warning"
            )
            return
        filters = "Portable pictures (*.png);;Drawings (*.svg)"
        self.context.tasks.start(self._saving("Save the picture", widget, filters, "png", save_picture))

    def save_table(self) -> None:
        """Save the table that has the keyboard, or the first one of its panel, as comma-separated values."""
        widget = self._wanted(TABLES)
        if not isinstance(widget, QAbstractItemView):
            self.context.messages.say(
                "Save the table: not now", "No table is shown; go to a panel that has one", "warning"
            )
            return
        model = widget.model()
        self.context.tasks.start(
            self._saving("Save the table", widget, "Tables (*.csv)", "csv", lambda _, path: save_csv(model, path))
        )

    def report(self) -> None:
        """Save everything as one HTML file, and open it in the browser."""
        self.context.tasks.start(self._reporting())

    def compare(self) -> None:
        """Choose another session to compare the open one with."""
        self.window.show_panel("compare")
        self.window.panels["compare"].choose()

    async def _reporting(self) -> None:
        from workbench.gui.report import report

        path = await self._place("Save the report", "Pages (*.html)", "report", "html")
        if path is None:
            return
        try:
            report.write(self.context, self.window.panels, path)
        except WorkbenchError as error:
            self.context.messages.report("Report", error)
            return
        self.context.messages.say("Report saved", str(path))
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))

    async def _saving(
        self, title: str, widget: QWidget, filters: str, suffix: str, save: Callable[[QWidget, Path], None]
    ) -> None:
        path = await self._place(title, filters, widget.accessibleName() or "window", suffix)
        if path is None:
            return
        try:
            save(widget, path)
        except WorkbenchError as error:
            self.context.messages.report(title, error)
            return
        self.context.messages.say(f"Saved {path.name}", str(path))

    async def _place(self, title: str, filters: str, name: str, suffix: str) -> Path | None:
        start = f"{'-'.join(name.lower().split())[:48]}.{suffix}"
        chosen = await dialogs.ask_path(
            self.window, title, mode=QFileDialog.FileMode.AnyFile, filters=filters, save=True, start=start,
            suffix=suffix,
        )  # fmt: skip
        return None if chosen is None else Path(chosen)

    def _wanted(self, kinds: tuple[type[QWidget], ...]) -> QWidget | None:
        """Return the widget of a kind that has the keyboard, else the first that is seen in its panel, else any."""
        focus = QApplication.focusWidget()
        while focus is not None and not isinstance(focus, kinds):
            if isinstance(focus, Panel):
                break
            focus = focus.parentWidget()
        if isinstance(focus, kinds):
            return focus
        panels = [focus] if isinstance(focus, Panel) else []
        for panel in [*panels, *self.window.panels.values()]:
            for widget in panel.findChildren(QWidget):
                if isinstance(widget, kinds) and not widget.visibleRegion().isEmpty():
                    return widget
        return None

"""What the actions do, one method for each: edits and the view here, files and jobs in their own files.  No drawing."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt
from shiboken6 import isValid

from workbench.gui.commands.checks import CheckCommands
from workbench.gui.commands.files import FileCommands
from workbench.gui.commands.output import OutputCommands
from workbench.gui.commands.work import WorkCommands
from workbench.gui.context import edits
from workbench.gui.panels.plan import target as plan_target
from workbench.gui.shell.help import About, Guide
from workbench.insight import legality, schemes
from workbench.planning.plan import KEEP
from workbench.session.session import Session
from workbench.steps.devices import ListDevices


class Commands(FileCommands, WorkCommands, CheckCommands, OutputCommands):
    """Every action's method."""

    # ---------------------------------------------------------------- edits

    def undo(self) -> None:
        """Take back the last edit."""
        self.context.workspace.undo()

    def redo(self) -> None:
        """Do the last undone edit again."""
        self.context.workspace.redo()

    def keep(self) -> None:
        """Keep the selected layers in floating point."""
        edits.assign(self.context.workspace, self.context.workspace.state.selection, weights=KEEP)

    def set_scheme(self) -> None:
        """Open the menu of schemes."""
        self.window.show_panel("layers")
        self.window.panels["layers"].choose_scheme()

    def more_bits(self) -> None:
        """Give the selected layers the next larger scheme."""
        self._step(1)

    def fewer_bits(self) -> None:
        """Give the selected layers the next smaller scheme."""
        self._step(-1)

    def lock(self) -> None:
        """Lock the selected layers, or unlock them if all are locked."""
        names = self.context.workspace.state.selection
        edits.lock(self.context.workspace, names, not set(names) <= self._session.locked)

    def repair(self) -> None:
        """Give what the target cannot run the nearest scheme that it runs."""
        plan_target.repair(self.context)

    def select_all(self) -> None:
        """Select every layer."""
        self.context.workspace.select(layer.name for layer in self._session.model.layers)

    def select_similar(self) -> None:
        """Select the layers that are like the selected ones."""
        self.window.panels["layers"].select_similar(self.context.workspace.state.selection)

    def columns(self) -> None:
        """Open the menu of the layers' columns."""
        self.window.show_panel("layers")
        self.window.panels["layers"].choose_columns()

    def find(self) -> None:
        """Go to the filter."""
        self.window.show_panel("layers")
        self.window.panels["layers"].filter.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _step(self, direction: int) -> None:
        state = self.context.workspace.state
        choices = legality.weight_choices(state.session, state.assignments, metric=state.metric)
        changes: dict[str, list[str]] = {}
        for name in state.selection:
            new = schemes.neighbour(state.assignments[name].weights, choices, direction)
            if new is not None:
                changes.setdefault(new, []).append(name)
        if not changes:
            return
        count = sum(len(names) for names in changes.values())
        title = f"{'More' if direction > 0 else 'Fewer'} bits for {count} layer{'' if count == 1 else 's'}"

        def change(session: Session) -> Session:
            plan = session.plan
            for scheme, names in changes.items():
                plan = plan.assign(names, weights=scheme)
            return replace(session, plan=plan)

        self.context.workspace.edit(title, change)

    # ---------------------------------------------------------------- view and help

    def palette(self) -> None:
        """Open the list of all commands."""
        self.window.show_palette()

    def switch_colours(self) -> None:
        """Switch between light and dark."""
        self.window.switch_colours()

    def system_colours(self) -> None:
        """Follow the desktop's colours again."""
        self.window.follow_system()

    def reset_layout(self) -> None:
        """Put the docks where they were at first."""
        self.window.reset_layout()

    def guide(self) -> None:
        """Open the user guide."""
        Guide(self.window).show()

    def tour(self) -> None:
        """Take the tour again."""
        self.window.show_tour()

    def about(self) -> None:
        """Show versions, and the devices once the engine has named them."""
        session = self.context.workspace.state.session
        line = ""
        if session is not None:
            made = session.environment
            line = f"This session: workbench {made.workbench}, Python {made.python}, torch {made.torch}, {made.device}"
        dialog = About(self.window, line)
        dialog.open()
        self.context.tasks.start(self._show_devices(dialog))

    async def _show_devices(self, dialog: About) -> None:
        request = ListDevices()
        lines = await self.context.runner.run(request, self.about)
        if isValid(dialog):
            dialog.show_devices(lines or ("Devices: the engine did not answer",))

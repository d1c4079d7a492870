"""The menus View and Help."""

from __future__ import annotations

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from shiboken6 import isValid

from workbench import log
from workbench.gui.commands.command import Command
from workbench.gui.shell import settings, theme
from workbench.gui.shell.help import About
from workbench.steps.devices import DEVICES, DevicesOptions


def switch_colours(command: Command) -> None:
    """Switch between light and dark, and remember it."""
    chosen = theme.LIGHT if command.window.colours.dark else theme.DARK
    settings.set_theme("dark" if chosen.dark else "light")
    command.window.recolour(chosen)


def system_colours(command: Command) -> None:
    """Follow the desktop's colours, now and whenever they change, and remember it."""
    settings.set_theme("system")
    command.window.recolour(theme.choose("system"))


def show_log(command: Command) -> None:
    """Open the folder of the log files."""
    folder = log.folder()
    folder.mkdir(parents=True, exist_ok=True)
    command.context.messages.say("The log files are in", str(folder))
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))


def about(command: Command) -> None:
    """Show versions, and the devices once the engine has named them."""
    session = command.context.workspace.state.session
    line = ""
    if session is not None:
        used = session.environment
        line = f"This session: workbench {used.workbench}, Python {used.python}, torch {used.torch}, {used.device}"
    dialog = About(command.window.widget, line)
    dialog.open()
    command.context.tasks.start(_show_devices(command, dialog))


async def _show_devices(command: Command, dialog: About) -> None:
    lines = await command.context.runner.run(DEVICES.request(None, DevicesOptions()), lambda: about(command))
    if isValid(dialog):
        dialog.show_devices(lines or ("Devices: the engine did not answer",))

"""The menu File: opening, saving and closing."""

from __future__ import annotations

from PySide6.QtWidgets import QFileDialog

from workbench.gui.commands.command import Command
from workbench.gui.commands.document import MODEL_FILES, SESSIONS

DEMO = "demo:language-model"


def open_file(command: Command) -> None:
    """Choose a model's file and open it."""
    command.document.choose("Open a model file", QFileDialog.FileMode.ExistingFile, MODEL_FILES)


def open_folder(command: Command) -> None:
    """Choose a model's folder and open it."""
    command.document.choose("Open a model folder", QFileDialog.FileMode.Directory)


def open_session(command: Command) -> None:
    """Choose a session and open it."""
    command.document.choose("Open a session", QFileDialog.FileMode.ExistingFile, SESSIONS)


def open_demo(command: Command) -> None:
    """Open the bundled language model."""
    command.document.open_path(DEMO)


def save(command: Command) -> None:
    """Save to the session's file; ask for one if it has none."""
    command.document.start_saving()


def save_as(command: Command) -> None:
    """Ask for a file and save to it."""
    command.document.start_saving(ask=True)


async def close(command: Command) -> None:
    """Close the document."""
    await command.document.close()


def quit(command: Command) -> None:
    """Close the window."""
    command.window.close()

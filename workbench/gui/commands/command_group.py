"""What every group of commands has: the context, the window for dialogs, forms that remember what was typed last."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from PySide6.QtWidgets import QDialog

from workbench.gui.context.context import Context
from workbench.gui.shell import dialogs
from workbench.gui.shell.forms import Form
from workbench.session.session import Session

if TYPE_CHECKING:
    from workbench.gui.window import Window


class CommandGroup:
    """One method for each action.  The window is only asked for dialogs' parent and for focus."""

    def __init__(self, context: Context, window: Window) -> None:
        self.context = context
        self.window = window
        self._options: dict[type, Any] = {}

    @property
    def _session(self) -> Session:
        session = self.context.workspace.state.session
        assert session is not None, "the action is disabled without a session"
        return session

    def _remembered(self, given: Any) -> Any:
        """Return the options with the numbers that the person used last time."""
        last = self._options.get(type(given))
        if last is None:
            return given
        keep = {name: getattr(last, name) for name in ("samples", "batch_size", "seed", "batch", "repeats", "metric")
                if hasattr(last, name)}  # fmt: skip
        return replace(given, **keep)

    async def _ask(self, given: Any, title: str, text: str, start: str, choices: dict[str, Any] | None = None) -> Any:
        form = Form(given, choices)
        code = await dialogs.finished(dialogs.FormDialog(self.window, title, text, form, start))
        if code != QDialog.DialogCode.Accepted:
            return None
        self._options[type(given)] = form.value()
        return form.value()


def fields_of(form: Any) -> dict[str, Any]:
    return {name: getattr(form, name) for name in type(form).__dataclass_fields__}

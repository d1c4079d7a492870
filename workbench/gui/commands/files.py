"""Opening, saving, closing and exporting."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtWidgets import QFileDialog

from workbench.errors import PlanError, WorkbenchError
from workbench.gui.commands.command_group import CommandGroup
from workbench.gui.context import edits
from workbench.gui.shell import dialogs, options, settings
from workbench.models.layer import LayerKind
from workbench.planning.plan import Plan, resolve
from workbench.planning.plan_document import TYPE
from workbench.session.session import Session
from workbench.session.workspace import State
from workbench.steps import requests
from workbench.steps.files.first_look import STILL_LOADING, is_first_look

if TYPE_CHECKING:
    from workbench.gui.context.context import Context
    from workbench.gui.window import Window

MODEL_FILES = "Models and sessions (*.safetensors *.pt2 *.py *.json *.gguf *.onnx *.pt *.pth *.qwb);;All files (*)"
SESSIONS = "Sessions (*.qwb)"
DEMO = "demo:language-model"


Stamp = tuple[int, int]
"""When a file was written, in nanoseconds, and its bytes."""

HEAD = 1000
"""Characters in which a plan says what it is."""


class FileCommands(CommandGroup):
    """What the menu File does."""

    def __init__(self, context: Context, window: Window) -> None:
        super().__init__(context, window)
        self._stamps: dict[Path, Stamp] = {}

    def open_file(self) -> None:
        """Choose a model's file and open it."""
        self._choose("Open a model file", QFileDialog.FileMode.ExistingFile, MODEL_FILES)

    def open_folder(self) -> None:
        """Choose a model's folder and open it."""
        self._choose("Open a model folder", QFileDialog.FileMode.Directory)

    def open_session(self) -> None:
        """Choose a session and open it."""
        self._choose("Open a session", QFileDialog.FileMode.ExistingFile, SESSIONS)

    def open_demo(self) -> None:
        """Open the bundled language model."""
        self.open_path(DEMO)

    def open_path(self, path: str, **how: Any) -> None:
        """Open a model or a session by its path, after asking about unsaved work; a plan becomes the current plan."""
        if is_plan(path):
            self.open_plan(path)
        else:
            self.context.tasks.start(self.opening(path, **how))

    def open_plan(self, path: str) -> None:
        """Make the plan in a JSON file the current one, as one undoable step."""
        session = self.context.workspace.state.session
        try:
            plan = Plan.load(path)
            if session is None:
                raise PlanError(f"{Path(path).name} is a plan; open the model that it is for first")
            if plan.fingerprint is not None:
                session.model.require_fingerprint(plan.fingerprint, f"the plan {plan.name!r}")
            resolve(plan, session.model.layers)
        except WorkbenchError as error:
            self.context.messages.report("The plan cannot be opened", error)
            return
        edits.set_plan(self.context.workspace, f"Open the plan {plan.name}", plan)
        self.context.messages.say(f"Opened the plan {plan.name}")

    async def opening(self, path: str, **how: Any) -> bool:
        """Open; returns whether the document is now the one at ``path``."""
        if not await self.may_discard():
            return False
        session_file = Path(path).suffix == ".qwb"
        stamp = stamp_of(Path(path))
        request = requests.OpenSession(path=path) if session_file else requests.OpenModel(path=path, **how)
        session = await self.context.runner.run(request, lambda: self.open_path(path, **how))
        looked = self.context.workspace.state
        if session is None:
            if is_first_look(looked.session):
                self.context.workspace.close()
            return False
        self.context.workspace.open(session, Path(path) if session_file else None)
        self._stamps = {Path(path): stamp} if stamp is not None else {}
        self.context.workspace.select(_first(session))
        if is_first_look(looked.session):
            self._go_on(looked)
        if not path.startswith("demo:"):
            settings.remember(path)
        self.context.messages.say(f"Opened {session.model.name}", _facts(session))
        if session.model.non_finite:
            self.context.messages.say("NaN or infinite weights", f"in {', '.join(session.model.non_finite)}", "warning")
        return True

    def show_first_look(self, look: Session) -> None:
        """Show the weights of the model that is being opened, where nothing else is shown."""
        if self.context.workspace.state.session is None:
            self.context.workspace.open(look, None)
            self.context.workspace.select(_first(look))

    def _go_on(self, looked: State) -> None:
        """Take over what the person selected and edited while only the weights were shown."""
        session, look = self._session, looked.session
        assert look is not None
        names = [name for name in looked.selection if name in session.model.by_name]
        if names:
            self.context.workspace.select(names)
        if not look.plan.rules and not look.locked:
            return
        plan, known = replace(session.plan, rules=look.plan.rules), frozenset(session.model.by_name)
        try:
            resolve(plan, session.model.layers)
        except WorkbenchError as error:
            self.context.messages.say("Edits made while the model was loading are lost", str(error), "warning")
            return
        self.context.workspace.edit(
            "Edits made while the model was loading",
            lambda now: replace(now, plan=plan, locked=look.locked & known),
        )

    def save(self) -> None:
        """Save to the session's file; ask for one if it has none."""
        self.context.tasks.start(self.saving())

    def save_as(self) -> None:
        """Ask for a file and save to it."""
        self.context.tasks.start(self.saving(ask=True))

    async def saving(self, ask: bool = False) -> bool:
        """Save; returns whether the session as it was is on disk."""
        session, path = self._session, self.context.workspace.state.path
        if path is not None and not ask and self._is_changed(path):
            answer = await dialogs.ask_replace(self.window, path.name)
            if answer == "cancel":
                return False
            ask = answer == "save_as"
        if is_first_look(session):
            self.context.messages.say("Nothing to save yet", STILL_LOADING, "warning")
            return False
        if ask or path is None:
            start = str(path) if path else f"{_file_name(session.model.name)}.qwb"
            chosen = await dialogs.ask_path(
                self.window, "Save the session", mode=QFileDialog.FileMode.AnyFile, filters=SESSIONS,
                save=True, start=start, suffix="qwb",
            )  # fmt: skip
            if chosen is None:
                return False
            path = Path(chosen)
        request = requests.SaveSession(session=session, path=str(path))
        if await self.context.runner.run(request, self.save) is None:
            return False
        self.context.workspace.saved(path, session)
        stamp = stamp_of(path)
        self._stamps = {path: stamp} if stamp is not None else {}
        settings.remember(path)
        self.context.messages.say(f"Saved {path.name}")
        return True

    def _is_changed(self, path: Path) -> bool:
        """Whether somebody else has written the session's file since it was read or saved here."""
        known, now = self._stamps.get(path), stamp_of(path)
        return known is not None and now is not None and known != now

    async def may_discard(self) -> bool:
        """Ask about unsaved work; returns whether the document may go."""
        state = self.context.workspace.state
        if state.session is None or not state.dirty:
            return True
        name = state.path.name if state.path else state.session.model.name
        answer = await dialogs.ask_unsaved(self.window, name)
        return await self.saving() if answer == "save" else answer == "discard"

    def close(self) -> None:
        """Close the document."""
        self.context.tasks.start(self._closing())

    async def _closing(self) -> None:
        if await self.may_discard():
            self.context.workspace.close()

    def quit(self) -> None:
        """Close the window."""
        self.window.close()

    def export(self) -> None:
        """Ask for a kind and a place, and export the plan."""
        self.context.tasks.start(self._exporting())

    async def _exporting(self) -> None:
        kinds = options.exporters()
        given = options.ExportOptions(kind=kinds[0][0])
        form = await self._ask(given, "Export", options.EXPORT_TEXT, "Export", {"kind": kinds})
        if form is None:
            return
        if not form.out.strip():
            self.context.messages.show_error("Export", "Enter where to write the file.", "")
            return
        request = requests.Export(session=self._session, kind=form.kind, out=form.out)
        paths = await self.context.runner.work(request)
        if paths:
            self.context.messages.say("Exported", ", ".join(paths))

    def _choose(self, title: str, mode: QFileDialog.FileMode, filters: str = "") -> None:
        async def choosing() -> None:
            path = await dialogs.ask_path(self.window, title, mode=mode, filters=filters)
            if path is not None:
                self.open_path(path)

        self.context.tasks.start(choosing())


def stamp_of(path: Path) -> Stamp | None:
    """Return what tells a file from what stood there before; None where there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def is_plan(path: str) -> bool:
    """Tell whether a file says that it is a plan; it is looked into only where it is a JSON file."""
    if Path(path).suffix != ".json":
        return False
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return f'"{TYPE}"' in file.read(HEAD)
    except OSError:
        return False


def _first(session: Session) -> tuple[str, ...]:
    """Return the layer to look at first: one that has inputs."""
    layers = session.model.layers
    named = [layer.name for layer in layers if layer.kind is not LayerKind.EMBEDDING] or [one.name for one in layers]
    return tuple(named[:1])


def _facts(session: Session) -> str:
    from workbench.insight import quantities

    model = session.model
    reason = f"; {model.cannot_run}" if model.cannot_run else ""
    return (
        f"{quantities.plural(len(model.layers), 'layer')}, {quantities.count(model.parameters)} parameters, "
        f"{quantities.data_size(model.nbytes)}{reason}"
    )


def _file_name(name: str) -> str:
    return "".join(character if character.isalnum() or character in "-_." else "-" for character in name) or "session"

"""Opening, saving and closing the document, and what is asked before unsaved work is lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QWidget

from workbench.errors import PlanError, WorkbenchError
from workbench.gui.context import edits
from workbench.gui.context.context import Context
from workbench.gui.shell import dialogs, settings
from workbench.insight import quantities
from workbench.models.layer import LayerKind
from workbench.planning.plan import Plan, resolve
from workbench.planning.plan_document import TYPE
from workbench.session.session import Session
from workbench.session.workspace import State
from workbench.steps.files.first_look import STILL_LOADING, is_first_look
from workbench.steps.files.open_model import OPEN, OpenModelOptions
from workbench.steps.files.open_session import OPEN_SESSION, OpenSessionOptions
from workbench.steps.files.save_session import SAVE_SESSION, SaveSessionOptions

MODEL_FILES = "Models and sessions (*.safetensors *.pt2 *.py *.json *.gguf *.onnx *.pt *.pth *.qwb);;All files (*)"
SESSIONS = "Sessions (*.qwb)"

Stamp = tuple[int, int]
"""When a file was written, in nanoseconds, and its bytes."""

HEAD = 1000
"""Characters in which a plan says that it is one."""


class Document:
    """The files of the document; ``parent`` is the parent of dialogs."""

    def __init__(self, context: Context, parent: QWidget) -> None:
        self._context, self._parent = context, parent
        self._stamps: dict[Path, Stamp] = {}

    # ---------------------------------------------------------------- open

    def choose(self, title: str, mode: QFileDialog.FileMode, filters: str = "") -> None:
        """Let the user choose a file or folder, and open it."""

        async def choosing() -> None:
            path = await dialogs.ask_path(self._parent, title, mode=mode, filters=filters)
            if path is not None:
                self.open_path(path)

        self._context.tasks.start(choosing())

    def open_path(
        self, path: str, *, factory: str | None = None, weights: str | None = None, trust: bool = False
    ) -> None:
        """Open a model or a session by its path, after asking about unsaved work; a plan becomes the current plan."""
        if is_plan(path):
            self.open_plan(path)
        else:
            self._context.tasks.start(self.open(path, factory=factory, weights=weights, trust=trust))

    def open_plan(self, path: str) -> None:
        """Make the plan in a JSON file the current one, as one undoable step."""
        session = self._context.workspace.state.session
        try:
            plan = Plan.load(path)
            if session is None:
                raise PlanError(f"{Path(path).name} is a plan; open the model that it is for first")
            if plan.fingerprint is not None:
                session.model.require_fingerprint(plan.fingerprint, f"the plan {plan.name!r}")
            resolve(plan, session.model.layers)
        except WorkbenchError as error:
            self._context.messages.report("The plan cannot be opened", error)
            return
        edits.set_plan(self._context.workspace, f"Open the plan {plan.name}", plan)
        self._context.messages.say(f"Opened the plan {plan.name}")

    async def open(
        self, path: str, *, factory: str | None = None, weights: str | None = None, trust: bool = False
    ) -> bool:
        """Open a model or session; returns whether the document is now the one at ``path``."""
        if not await self.may_discard():
            return False
        workspace, is_session = self._context.workspace, Path(path).suffix == ".qwb"
        stamp = stamp_of(Path(path))
        run = self._context.runner.run

        def again() -> None:
            self.open_path(path, factory=factory, weights=weights, trust=trust)

        if is_session:
            session = await run(OPEN_SESSION.request(None, OpenSessionOptions(path=path)), again)
        else:
            options = OpenModelOptions(path=path, factory=factory, weights=weights)
            session = await run(OPEN.request(None, options, trust=trust), again)
        before = workspace.state
        if session is None:
            if is_first_look(before.session):
                workspace.close()
            return False
        workspace.open(session, Path(path) if is_session else None)
        self._stamps = {Path(path): stamp} if stamp is not None else {}
        workspace.select(_first(session))
        if is_first_look(before.session):
            self._carry_over(before, session)
        if not path.startswith("demo:"):
            settings.remember(path)
        self._context.messages.say(f"Opened {session.model.name}", _facts(session))
        if session.model.non_finite:
            names = ", ".join(session.model.non_finite)
            self._context.messages.say("NaN or infinite weights", f"in {names}", "warning")
        return True

    def show_first_look(self, look: Session) -> None:
        """Show the weights of the model that is being opened, where nothing else is shown."""
        if self._context.workspace.state.session is None:
            self._context.workspace.open(look, None)
            self._context.workspace.select(_first(look))

    def _carry_over(self, before: State, session: Session) -> None:
        """Carry over what the user selected and edited while only the weights were shown."""
        workspace, look = self._context.workspace, before.session
        assert look is not None
        names = [name for name in before.selection if name in session.model.by_name]
        if names:
            workspace.select(names)
        if not look.plan.rules and not look.locked:
            return
        plan, known = replace(session.plan, rules=look.plan.rules), frozenset(session.model.by_name)
        try:
            resolve(plan, session.model.layers)
        except WorkbenchError as error:
            self._context.messages.say("Edits made while the model was loading are lost", str(error), "warning")
            return
        workspace.edit(
            "Edits made while the model was loading",
            lambda session: replace(session, plan=plan, locked=look.locked & known),
        )

    # ---------------------------------------------------------------- save and close

    async def save(self, ask: bool = False) -> bool:
        """Save to the session's file, or to one that the user chooses; returns whether the session is on disk."""
        state = self._context.workspace.state
        session, path = state.session, state.path
        assert session is not None, "the action is greyed without a session"
        if path is not None and not ask and self._is_changed(path):
            answer = await dialogs.ask_replace(self._parent, path.name)
            if answer == "cancel":
                return False
            ask = answer == "save_as"
        if is_first_look(session):
            self._context.messages.say("Nothing to save yet", STILL_LOADING, "warning")
            return False
        if ask or path is None:
            start = str(path) if path else f"{_file_name(session.model.name)}.qwb"
            path = await dialogs.ask_save_path(self._parent, "Save the session", SESSIONS, start, "qwb")
            if path is None:
                return False
        request = SAVE_SESSION.request(session, SaveSessionOptions(path=str(path)))
        if await self._context.runner.run(request, self.start_saving) is None:
            return False
        self._context.workspace.saved(path, session)
        stamp = stamp_of(path)
        self._stamps = {path: stamp} if stamp is not None else {}
        settings.remember(path)
        self._context.messages.say(f"Saved {path.name}")
        return True

    def start_saving(self, ask: bool = False) -> None:
        """Save in the background."""
        self._context.tasks.start(self.save(ask))

    def _is_changed(self, path: Path) -> bool:
        """Whether somebody else has written the session's file since it was read or saved here."""
        known, now = self._stamps.get(path), stamp_of(path)
        return known is not None and now is not None and known != now

    async def may_discard(self) -> bool:
        """Ask about unsaved work; returns whether the document may go."""
        state = self._context.workspace.state
        if state.session is None or not state.dirty:
            return True
        name = state.path.name if state.path else state.session.model.name
        answer = await dialogs.ask_unsaved(self._parent, name)
        return await self.save() if answer == "save" else answer == "discard"

    async def close(self) -> None:
        """Close the document, after asking about unsaved work."""
        if await self.may_discard():
            self._context.workspace.close()


def stamp_of(path: Path) -> Stamp | None:
    """Return what tells a file from an earlier one of its name; None where there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def is_plan(path: str) -> bool:
    """Whether a file says that it is a plan; only JSON files are read."""
    if Path(path).suffix != ".json":
        return False
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return f'"{TYPE}"' in file.read(HEAD)
    except OSError:
        return False


def _first(session: Session) -> tuple[str, ...]:
    """Return the layer to look at first: one that has inputs."""
    names = [layer.name for layer in session.model.layers if layer.kind is not LayerKind.EMBEDDING]
    return tuple((names or [layer.name for layer in session.model.layers])[:1])


def _facts(session: Session) -> str:
    model = session.model
    reason = f"; {model.cannot_run}" if model.cannot_run else ""
    return (
        f"{quantities.plural(len(model.layers), 'layer')}, {quantities.count(model.parameters)} parameters, "
        f"{quantities.data_size(model.nbytes)}{reason}"
    )


def _file_name(name: str) -> str:
    return "".join(character if character.isalnum() or character in "-_." else "-" for character in name) or "session"

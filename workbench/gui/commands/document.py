"""Opening, saving and closing the document, and what is asked before unsaved work is lost."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtWidgets import QDialog, QFileDialog, QWidget

from workbench.errors import ChangedSessionError, DamagedSessionError, PlanError, WorkbenchError
from workbench.gui.context import edits
from workbench.gui.context.context import Context
from workbench.gui.context.runner import ErrorHandler
from workbench.gui.shell import dialogs, settings
from workbench.gui.shell.forms import Form
from workbench.gui.shell.words import tr
from workbench.insight import quantities
from workbench.insight.sums import note_in_words
from workbench.models.layer import LayerKind
from workbench.plain_file import opened
from workbench.planning.plan import Plan, resolve
from workbench.planning.plan_document import TYPE
from workbench.session.session import Session
from workbench.session.shared_file import Stamp, stamp_of
from workbench.session.workspace import State
from workbench.steps.files.first_session import STILL_LOADING, is_first_look
from workbench.steps.files.open_model import OPEN, OpenModelOptions, folder_of_weights, whole
from workbench.steps.files.open_session import OPEN_SESSION, OpenSessionOptions, losses
from workbench.steps.files.save_session import SAVE_SESSION, SaveSessionOptions

MODEL_FILES = (
    "Models, sessions and plans (*.safetensors *.pt2 *.py *.json *.gguf *.onnx *.pt *.pth *.qwb);;All files (*)"
)
PYTHON_FILE = (
    "A function of the file builds the network. Its weights come from the file that you give, from one beside it "
    "(weights.safetensors, model.pt, ...), or from the function itself."
)

SESSIONS = "Sessions (*.qwb)"

HEAD = 1000
"""Characters within which a plan file names its type."""


class Document:
    """The files of the document; ``parent`` is the parent of dialogs."""

    def __init__(self, context: Context, parent: QWidget) -> None:
        self._context, self._parent = context, parent
        self._saving: asyncio.Task[bool] | None = None

    # ---------------------------------------------------------------- open

    def choose(self, title: str, mode: QFileDialog.FileMode, filters: str = "") -> None:
        """Let the user choose a file or folder, and open it."""

        async def choosing() -> None:
            last = settings.last_folder()
            path = await dialogs.ask_path(self._parent, title, mode=mode, filters=filters, folder=last)
            if path is not None:
                self.open_path(path)

        self._context.tasks.start(choosing())

    def open_path(self, path: str, *, trust: bool = False, **options: str | None) -> None:
        """Open a model or session after asking about unsaved work, or make a plan the current one.

        ``options`` are those of :class:`OpenModelOptions`.
        """
        path = whole(path)
        if is_plan(path):
            self.open_plan(path)
        elif (folder := folder_of_weights(path)) is not None:
            self._context.tasks.start(self._ask_what(path, folder))
        elif Path(path).suffix == ".py" and not (trust or options):
            self._context.tasks.start(self._ask_how(path))
        else:
            self._context.tasks.start(self.open(path, trust=trust, **options))

    async def _ask_what(self, path: str, folder: str) -> None:
        """Ask whether the model in a folder is meant, of which a file of weights was chosen; open it, or that file."""
        text = tr("{} belongs to the model in {}. Its weights alone can be planned, but not run.")
        buttons = (("model", "Open the &Model"), ("weights", "Only the &Weights"), ("cancel", "&Cancel"))
        files = text.format(Path(path).name, folder)
        answer = await dialogs.ask(self._parent, "Open the whole model?", files, buttons, "model")
        if answer != "cancel":
            await self.open(folder if answer == "model" else path)

    async def _ask_how(self, path: str) -> None:
        """Ask which function of a Python file builds the model, and for its weights."""
        form = Form(OpenModelOptions(path=path))
        dialog = dialogs.FormDialog(self._parent, OPEN.title, PYTHON_FILE, form, "Open")
        if await dialogs.finished(dialog) == QDialog.DialogCode.Accepted:
            answer = form.value()
            await self.open(answer.path, factory=answer.factory, weights=answer.weights)

    def open_plan(self, path: str) -> None:
        """Make the plan in a JSON file the current one, as an undoable edit."""
        session = self._context.workspace.state.session
        try:
            plan = Plan.load(path)
            if session is None:
                raise PlanError(f"{Path(path).name} is a plan; open its model first")
            plan.require_model(session.model)
            resolve(plan, session.model.layers)
        except WorkbenchError as error:
            self._context.messages.report("The plan cannot be opened", error)
            return
        edits.set_plan(self._context.workspace, f"Open the plan {plan.name}", plan)
        self._context.messages.say(tr("Opened the plan {}").format(plan.name))

    async def open(self, path: str, *, trust: bool = False, **options: str | None) -> bool:
        """Open a model or session; returns whether the document is now the one at ``path``."""
        if not await self.may_discard():
            return False
        workspace, is_session = self._context.workspace, Path(path).suffix == ".qwb" and not os.path.isdir(path)
        asked_about = workspace.state.session
        stamp = stamp_of(Path(path))
        repaired, run, again = False, self._context.runner.run, partial(self.open_path, path, trust=trust, **options)
        if is_session:
            session, repaired = await self._read_session(path, again)
        else:
            session = await run(OPEN.request(None, OpenModelOptions(path=path, **options), trust=trust), again)
        before = workspace.state
        if session is None:
            if is_first_look(before.session):
                workspace.close()
            return False
        if not is_first_look(before.session) and before.session is not asked_about:  # edited while the other was read
            if not await self.may_discard():
                return False
            before = workspace.state
        found = before.session
        if found is not None and not is_session and _is_moved(found, session):
            source = session.model.source
            workspace.update(lambda now: replace(now, model=replace(now.model, source=source)))
            self._context.messages.say("Found the model again", f"{path}; the open session goes on with it")
            return True
        file = Path(path) if is_session and not repaired else None
        workspace.open(session, file, unsaved=repaired, read=stamp if file else ())
        workspace.select(first_layer(session))
        if is_first_look(before.session):
            self._carry_over(before, session)
        if not path.startswith("demo:"):
            settings.remember(path)
        self._context.messages.say(tr("Opened {}").format(session.model.name), _facts(session))
        for note in session.notes if repaired or not is_session else ():
            title = "Repaired" if repaired else "Note on the model"
            self._context.messages.say(title, note_in_words(session, note), "warning")
        if repaired and (lost := losses(session)):  # the last of many lines would hide what they come to
            text = f"lost in part or whole: {lost}; Jobs lists why"
            self._context.messages.say(f"Repaired {Path(path).name}", text, "warning")
        return True

    async def _read_session(self, path: str, again: Callable[[], object]) -> tuple[Session | None, bool]:
        """Read a session, or what is whole of a damaged one if the user wants that; returns whether it was repaired."""
        damaged: list[WorkbenchError] = []

        def noted(error: WorkbenchError) -> bool:
            damaged.extend([error] if isinstance(error, DamagedSessionError) else [])
            return bool(damaged)

        request = OPEN_SESSION.request(None, OpenSessionOptions(path=path))
        session = await self._context.runner.run(request, again, on_error=noted)
        if not damaged:
            return session, False
        reason = str(damaged[0]).partition("; ")[0]
        text = tr(
            "{}. A repair opens the undamaged parts as a new session, lists what is lost, and does not change the file."
        ).format(tr(reason))
        buttons = ("repair", "&Repair"), ("cancel", "&Cancel")
        if await dialogs.ask(self._parent, "Repair the session?", text, buttons, "repair") != "repair":
            return None, False
        request = OPEN_SESSION.request(None, OpenSessionOptions(path=path, repair=True))
        return await self._context.runner.run(request, again), True

    def show_first_look(self, look: Session) -> None:
        """Show the weights of a model while it loads, unless a document is open."""
        if self._context.workspace.state.session is None:
            self._context.workspace.open(look, None)
            self._context.workspace.select(first_layer(look))

    def _carry_over(self, before: State, session: Session) -> None:
        """Keep the selection and the edits that the user made on the first look."""
        workspace, look = self._context.workspace, before.session
        assert look is not None
        names = [name for name in before.selection if name in session.model.by_name]
        if names and before.selection != first_layer(look):
            workspace.select(names)
        if not look.plan.rules and not look.locked:
            return
        plan, known = replace(session.plan, rules=look.plan.rules), frozenset(session.model.by_name)
        try:
            resolve(plan, session.model.layers)
        except WorkbenchError as error:
            self._context.messages.say("Edits during loading are lost", str(error), "warning")
            return
        workspace.edit("Edits during loading", lambda session: replace(session, plan=plan, locked=look.locked & known))

    # ---------------------------------------------------------------- save and close

    async def save(self, ask: bool = False) -> bool:
        """Save to the session's file, or to one that the user chooses; returns whether the session is on disk."""
        workspace, state = self._context.workspace, self._context.workspace.state
        session, document = state.session, workspace.document
        assert session is not None, "the action is disabled without a session"
        if is_first_look(session):
            self._context.messages.say("Nothing to save yet", STILL_LOADING, "warning")
            return False
        written = await self._write(session, None if ask else state.path, workspace.read, state.path)
        if written is None:
            return False
        if workspace.document == document:  # else the file is not that of the one that is open now
            workspace.saved(written[0], session, written[1])
            settings.remember(written[0])
            self._context.messages.say(tr("Saved {}").format(written[0].name))
        return True

    async def _write(
        self, session: Session, path: Path | None, read: Stamp, proposed: Path | None
    ) -> tuple[Path, Stamp] | None:
        """Write a session to ``path`` (None: where the user chooses); return where it is, and which version that makes.

        The version ``read`` may be replaced unasked.  None where the user stops it, and for an error, which is said.
        """
        changed: list[WorkbenchError] = []
        while True:
            if path is not None and read and (now := stamp_of(path)) and (changed or now != read):
                answer = await dialogs.ask_replace(self._parent, path.name)
                if answer == "cancel":
                    return None
                path, read = (path if answer == "replace" else None), now
            if path is None:
                plain = "".join(each if each.isalnum() or each in "-_." else "-" for each in session.model.name)
                start = str(proposed) if proposed else f"{plain or 'session'}.qwb"
                path, read = await dialogs.ask_save_path(self._parent, "Save the session", SESSIONS, start, "qwb"), ()
                if path is None:
                    return None
            changed.clear()
            request = SAVE_SESSION.request(session, SaveSessionOptions(path=str(path), read=read))
            written = await self._context.runner.run(request, self.start_saving, on_error=_noting_changes(changed))
            if written is not None:
                return path, written
            if not changed:
                return None

    def start_saving(self, ask: bool = False) -> None:
        """Save in the background."""
        saving = self._saving = self._context.tasks.start(self.save(ask))
        saving.add_done_callback(self._saving_ended)

    def _saving_ended(self, saving: asyncio.Task[bool]) -> None:
        if self._saving is saving:
            self._saving = None

    async def may_discard(self) -> bool:
        """Ask about unsaved work; returns whether the document may go."""
        while self._saving is not None:
            await asyncio.wait({self._saving})
        state = self._context.workspace.state
        if state.session is None or not state.dirty:
            return True
        name = state.path.name if state.path else state.session.model.name
        answer = await dialogs.ask_unsaved(self._parent, name)
        return await self.save() if answer == "save" else answer == "discard"

    async def close(self) -> None:
        """Close the document, after asking about unsaved work."""
        session = self._context.workspace.state.session
        if await self.may_discard():
            self._context.workspace.close()
            if session is not None:  # else the line goes on about what is gone
                self._context.messages.say(f"Closed {session.model.name}")


def _is_moved(session: Session, opened: Session) -> bool:
    """Whether the model of a session is gone from its place and ``opened`` is the same one, at another."""
    place = session.model.source.path
    return (
        os.path.isabs(place) and not os.path.exists(place) and not is_first_look(session)
        and session.model.fingerprint == opened.model.fingerprint
    )  # fmt: skip


def _noting_changes(changed: list[WorkbenchError]) -> ErrorHandler:
    """Return what notes the error of a file that was changed while it was about to be saved: the user is asked."""

    def noted(error: WorkbenchError) -> bool:
        changed.extend([error] if isinstance(error, ChangedSessionError) else [])
        return bool(changed)

    return noted


def is_plan(path: str) -> bool:
    """Whether a JSON file is a plan."""
    if Path(path).suffix != ".json":
        return False
    try:
        with opened(Path(path)) as file:
            return f'"{TYPE}"'.encode() in file.read(HEAD)
    except OSError:
        return False


def first_layer(session: Session) -> tuple[str, ...]:
    """Return the layer to select first: one that has inputs."""
    names = [layer.name for layer in session.model.layers if layer.kind is not LayerKind.EMBEDDING]
    return tuple((names or [layer.name for layer in session.model.layers])[:1])


def _facts(session: Session) -> str:
    model = session.model
    reason = f"; {model.cannot_run}" if model.cannot_run else ""
    size = quantities.data_size(model.nbytes) + (" unquantized" if session.plan.rules else "")
    return f"{quantities.layers_of(model)}, {quantities.count(model.parameters)} parameters, {size}{reason}"

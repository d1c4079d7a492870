"""What the actions do: ask where something must be asked, make a request, take up its result.  No drawing."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QFileDialog, QMessageBox

from workbench.gui import dialogs, legality, options, schemes, settings
from workbench.gui.desk import Desk
from workbench.gui.forms import Form
from workbench.models.layer import LayerKind
from workbench.numerics.formats import standard_schemes
from workbench.planning.plan import KEEP
from workbench.runtime import requests
from workbench.runtime.timings import TimeKernels
from workbench.storage.session import Session

if TYPE_CHECKING:
    from workbench.gui.window import Window

MODEL_FILES = "Models (*.safetensors *.pt2 *.py *.json *.gguf *.onnx *.pt *.pth);;All files (*)"
SESSIONS = "Sessions (*.qwb)"
DEMO = "demo:language-model"


class Commands:
    """One method for each action.  The window is only asked for dialogs' parent and for focus."""

    def __init__(self, desk: Desk, window: Window) -> None:
        self.desk = desk
        self.window = window
        self._options: dict[type, Any] = {}

    @property
    def _session(self) -> Session:
        session = self.desk.workspace.state.session
        assert session is not None, "the action is disabled without a session"
        return session

    # ---------------------------------------------------------------- files

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
        """Open a model or a session by its path, after asking about unsaved work."""
        self.desk.start(self.opening(path, **how))

    async def opening(self, path: str, **how: Any) -> bool:
        """Open; returns whether the document is now the one at ``path``."""
        if not await self.may_discard():
            return False
        session_file = Path(path).suffix == ".qwb"
        request = requests.OpenSession(path=path) if session_file else requests.OpenModel(path=path, **how)
        session = await self.desk.run(request, lambda: self.open_path(path, **how))
        if session is None:
            return False
        self.desk.workspace.open(session, Path(path) if session_file else None)
        self.desk.workspace.select(_first(session))
        if not path.startswith("demo:"):
            settings.remember(path)
        self.desk.say(f"Opened {session.model.name}", _facts(session))
        if session.model.non_finite:
            self.desk.say("NaN or infinite weights", f"in {', '.join(session.model.non_finite)}", "warning")
        return True

    def save(self) -> None:
        """Save to the session's file; ask for one if it has none."""
        self.desk.start(self.saving())

    def save_as(self) -> None:
        """Ask for a file and save to it."""
        self.desk.start(self.saving(ask=True))

    async def saving(self, ask: bool = False) -> bool:
        """Save; returns whether the session as it was is on disk."""
        session, path = self._session, self.desk.workspace.state.path
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
        if await self.desk.run(request, self.save) is None:
            return False
        self.desk.workspace.saved(path, session)
        settings.remember(path)
        self.desk.say(f"Saved {path.name}")
        return True

    async def may_discard(self) -> bool:
        """Ask about unsaved work; returns whether the document may go."""
        state = self.desk.workspace.state
        if state.session is None or not state.dirty:
            return True
        name = state.path.name if state.path else state.session.model.name
        answer = await dialogs.ask_unsaved(self.window, name)
        return await self.saving() if answer == "save" else answer == "discard"

    def close(self) -> None:
        """Close the document."""
        self.desk.start(self._closing())

    async def _closing(self) -> None:
        if await self.may_discard():
            self.desk.workspace.close()

    def quit(self) -> None:
        """Close the window."""
        self.window.close()

    def export(self) -> None:
        """Ask for a kind and a place, and export the plan."""
        self.desk.start(self._exporting())

    async def _exporting(self) -> None:
        kinds = options.exporters()
        given = options.ExportOptions(kind=kinds[0][0])
        form = await self._ask(given, "Export", options.EXPORT_TEXT, "Export", {"kind": kinds})
        if form is None:
            return
        if not form.out.strip():
            self.desk.show_error("Export", "Say where the file shall go.")
            return
        request = requests.Export(session=self._session, kind=form.kind, out=form.out)
        paths = await self.desk.work(request)
        if paths:
            self.desk.say("Exported", ", ".join(paths))

    # ---------------------------------------------------------------- edits

    def undo(self) -> None:
        """Take back the last edit."""
        self.desk.workspace.undo()

    def redo(self) -> None:
        """Do the last undone edit again."""
        self.desk.workspace.redo()

    def keep(self) -> None:
        """Keep the selected layers in floating point."""
        self.desk.assign(self.desk.workspace.state.selection, weights=KEEP)

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
        names = self.desk.workspace.state.selection
        self.desk.lock(names, not set(names) <= self._session.locked)

    def select_all(self) -> None:
        """Select every layer."""
        self.desk.workspace.select(layer.name for layer in self._session.model.layers)

    def select_similar(self) -> None:
        """Select the layers that are like the first selected one."""
        self.window.panels["layers"].select_similar(self.desk.workspace.state.selection[0])

    def columns(self) -> None:
        """Open the menu of the layers' columns."""
        self.window.show_panel("layers")
        self.window.panels["layers"].choose_columns()

    def find(self) -> None:
        """Go to the filter."""
        self.window.show_panel("layers")
        self.window.panels["layers"].filter.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _step(self, direction: int) -> None:
        state = self.desk.workspace.state
        choices = legality.weight_choices(state)
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

        self.desk.workspace.edit(title, change)

    # ---------------------------------------------------------------- work

    def calibrate(self) -> None:
        """Ask and calibrate."""
        self.desk.start(self._calibrating())

    async def _calibrating(self) -> None:
        given = self._remembered(options.CalibrateOptions(data=data_of(self._session, "calibration")))
        form = await self._ask(given, "Calibrate", options.CALIBRATE_TEXT, "Calibrate")
        if form is not None:
            await self.desk.work(requests.Calibrate(session=self._session, **_fields(form)))

    def score(self) -> None:
        """Ask and compute the layer x scheme scores."""
        self.desk.start(self._scoring())

    async def _scoring(self) -> None:
        table = self._session.sensitivities.get(self.desk.workspace.state.metric)
        names = table.schemes if table is not None else tuple(scheme.name for scheme in standard_schemes())
        given = self._remembered(options.ScoreOptions(schemes=names))
        every = sorted({*names, *(name for _, held in schemes.families() for name in held)}, key=schemes.reference_bits)
        form = await self._ask(given, "Sensitivity", options.SCORE_TEXT, "Compute", {"schemes": tuple(every)})
        if form is None:
            return
        self.desk.workspace.show_metric(form.metric)
        await self.desk.work(requests.Score(session=self._session, **_fields(form)))

    def search(self) -> None:
        """Search a plan within the budget of the plan panel."""
        self.window.show_panel("plan")
        self.window.panels["plan"].search()

    def evaluate(self) -> None:
        """Ask and evaluate the current plan."""
        self.desk.start(self._evaluating())

    async def _evaluating(self) -> None:
        given = self._remembered(options.EvaluateOptions(data=data_of(self._session, "evaluation")))
        form = await self._ask(given, "Evaluate", options.EVALUATE_TEXT, "Evaluate")
        if form is None:
            return
        values = {**_fields(form), "data": form.data or None}
        if await self.desk.work(requests.Evaluate(session=self._session, **values)) is not None:
            self.window.show_panel("accuracy")

    def time_kernels(self) -> None:
        """Ask and time the kernels of the plan."""
        self.desk.start(self._timing())

    async def _timing(self) -> None:
        form = await self._ask(
            self._remembered(options.TimeOptions()), "Time the kernels", options.TIME_TEXT, "Measure"
        )
        if form is None:
            return
        if await self.desk.work(TimeKernels(session=self._session, **_fields(form))) is not None:
            self.window.show_panel("timing")

    def cancel(self) -> None:
        """Cancel the running job."""
        for view in self.desk.jobs.views:
            if view.status == "running":
                self.desk.cancel(view.id)

    def retry(self) -> None:
        """Start the last failed or cancelled job anew."""
        for view in reversed(self.desk.jobs.views):
            if view.status in ("failed", "cancelled"):
                self.desk.retry(view.id)
                return

    def copy_python(self) -> None:
        """Copy the selected or last job as Python."""
        self.window.panels["jobs"].copy_python()

    # ---------------------------------------------------------------- view and help

    def palette(self) -> None:
        """Open the list of all commands."""
        self.window.show_palette()

    def switch_colours(self) -> None:
        """Switch between light and dark."""
        self.window.switch_colours()

    def reset_layout(self) -> None:
        """Put the docks where they were at first."""
        self.window.reset_layout()

    def about(self) -> None:
        """Show versions."""
        from PySide6 import __version__ as qt

        text = f"Quantization Workbench\nQt for Python {qt}"
        if self.desk.workspace.state.session is not None:
            made = self._session.environment
            text += (
                f"\n\nThis session: workbench {made.workbench}, Python {made.python}, torch {made.torch}, {made.device}"
            )
        box = QMessageBox(QMessageBox.Icon.Information, "About", text, QMessageBox.StandardButton.Close, self.window)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialogs.framed(box)
        box.open()

    # ---------------------------------------------------------------- inside

    def _choose(self, title: str, mode: QFileDialog.FileMode, filters: str = "") -> None:
        async def choosing() -> None:
            path = await dialogs.ask_path(self.window, title, mode=mode, filters=filters)
            if path is not None:
                await self.opening(path)

        self.desk.start(choosing())

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


def data_of(session: Session, which: str) -> str:
    """Return the data set that the session used last, else the one that is bundled with the model, else nothing."""
    record = getattr(session, which) or session.calibration
    if record is not None:
        return str(record.path)
    source = session.model.source.path
    if source.startswith("demo:"):
        return source
    demo = Path(str(files("workbench_resources") / "demo"))
    for folder in (Path(source), Path(source).parent):
        if folder.parent == demo:
            return f"demo:{folder.name}"
    return ""


def _first(session: Session) -> tuple[str, ...]:
    """Return the layer to look at first: one that has inputs."""
    layers = session.model.layers
    named = [layer.name for layer in layers if layer.kind is not LayerKind.EMBEDDING] or [one.name for one in layers]
    return tuple(named[:1])


def _facts(session: Session) -> str:
    from workbench.gui import quantities

    model = session.model
    reason = f"; {model.cannot_run}" if model.cannot_run else ""
    return (
        f"{quantities.plural(len(model.layers), 'layer')}, {quantities.count(model.parameters)} parameters, "
        f"{quantities.data_size(model.nbytes)}{reason}"
    )


def _fields(form: Any) -> dict[str, Any]:
    return {name: getattr(form, name) for name in type(form).__dataclass_fields__}


def _file_name(name: str) -> str:
    return "".join(character if character.isalnum() or character in "-_." else "-" for character in name) or "session"

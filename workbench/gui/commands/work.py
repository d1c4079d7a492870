"""Starting, cancelling and repeating jobs: ask, make a request, take up its result."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from workbench.gui.commands.command_group import CommandGroup, fields_of
from workbench.gui.shell import options
from workbench.insight import schemes
from workbench.numerics.formats import activation_schemes, standard_schemes
from workbench.sensitivity.metrics import ACTIVATION_METRICS
from workbench.session.session import Session
from workbench.steps import requests
from workbench.steps.timings import TimeKernels
from workbench.steps.train_job import TrainModel


class WorkCommands(CommandGroup):
    """What the menu Run does."""

    def calibrate(self) -> None:
        """Ask and calibrate."""
        self.context.tasks.start(self._calibrating())

    async def _calibrating(self) -> None:
        given = self._remembered(options.CalibrateOptions(data=data_of(self._session, "calibration")))
        form = await self._ask(given, "Calibrate", options.CALIBRATE_TEXT, "Calibrate")
        if form is not None:
            await self.context.runner.work(requests.Calibrate(session=self._session, **fields_of(form)))

    def score(self) -> None:
        """Ask and compute the layer x scheme scores."""
        self.context.tasks.start(self._scoring())

    async def _scoring(self) -> None:
        table = self._session.table(self.context.workspace.state.metric)
        names = table.schemes if table is not None else tuple(scheme.name for scheme in standard_schemes())
        given = self._remembered(options.ScoreOptions(schemes=names))
        inputs = {scheme.name for scheme in activation_schemes()}
        every = sorted(
            {*names, *inputs, *(name for _, held in schemes.families() for name in held)}, key=schemes.reference_bits
        )
        form = await self._ask(given, "Sensitivity", options.SCORE_TEXT, "Compute", {"schemes": tuple(every)})
        if form is None:
            return
        values = fields_of(form)
        if form.metric in ACTIVATION_METRICS:
            values["schemes"] = tuple(name for name in form.schemes if name in inputs)
        else:
            self.context.workspace.show_metric(form.metric)
        done = await self.context.runner.work(requests.Score(session=self._session, **values))
        if done is not None and form.metric in ACTIVATION_METRICS:
            self.window.panels["sensitivity"].look_at(form.metric)

    def search(self) -> None:
        """Search a plan within the budget of the plan panel."""
        self.window.show_panel("plan")
        self.window.panels["plan"].search()

    def evaluate(self) -> None:
        """Ask and evaluate the current plan."""
        self.context.tasks.start(self._evaluating())

    async def _evaluating(self) -> None:
        given = self._remembered(options.EvaluateOptions(data=data_of(self._session, "evaluation")))
        form = await self._ask(given, "Evaluate", options.EVALUATE_TEXT, "Evaluate")
        if form is None:
            return
        values = {**fields_of(form), "data": form.data or None}
        if await self.context.runner.work(requests.Evaluate(session=self._session, **values)) is not None:
            self.window.show_panel("accuracy")

    def train(self) -> None:
        """Ask, train under the plan and write the result."""
        self.context.tasks.start(self._training())

    async def _training(self) -> None:
        kinds = options.weight_exporters()
        given = self._remembered(options.TrainOptions(data=data_of(self._session, "calibration"), kind=kinds[0][0]))
        form = await self._ask(given, "Train", options.TRAIN_TEXT, "Train", {"kind": kinds})
        if form is None:
            return
        if not form.out.strip():
            self.context.messages.show_error("Train", "Enter where to write the trained model.", "")
            return
        values = fields_of(form)
        epochs = values.pop("epochs")
        if epochs:
            values["steps"] = max(round(epochs * form.samples / form.batch_size), 1)
        paths = await self.context.runner.work(TrainModel(session=self._session, **values))
        if paths:
            self.context.messages.say("Trained", ", ".join(paths))

    def time_kernels(self) -> None:
        """Ask and time the kernels of the plan."""
        self.context.tasks.start(self._timing())

    async def _timing(self) -> None:
        form = await self._ask(
            self._remembered(options.TimeOptions()), "Time the kernels", options.TIME_TEXT, "Measure"
        )
        if form is None:
            return
        if await self.context.runner.work(TimeKernels(session=self._session, **fields_of(form))) is not None:
            self.window.show_panel("timing")

    def cancel(self) -> None:
        """Cancel the running job."""
        for view in self.context.jobs.views:
            if view.status == "running":
                self.context.runner.cancel(view.id)

    def retry(self) -> None:
        """Start the last failed or cancelled job anew."""
        for view in reversed(self.context.jobs.views):
            if view.status in ("failed", "cancelled"):
                self.context.runner.retry(view.id)
                return

    def copy_python(self) -> None:
        """Copy the selected or last job as Python."""
        self.window.panels["jobs"].copy_python()


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

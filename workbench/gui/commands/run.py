"""The menu Run: asks for a step's options, runs it as a job and shows the panel of its result."""

from __future__ import annotations

from dataclasses import fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from workbench.errors import BudgetError, WorkbenchError
from workbench.gui.commands.command import Command
from workbench.gui.shell import options
from workbench.insight import schemes
from workbench.numerics.formats import activation_schemes, standard_schemes
from workbench.sensitivity.metrics import ACTIVATION_METRICS
from workbench.session.session import Session
from workbench.steps import requests
from workbench.steps.audits import AuditPlan, RefineTable
from workbench.steps.options import Choice
from workbench.steps.timings import TimeKernels
from workbench.steps.train_job import TrainModel

MEASURED = "measured_kl"


async def calibrate(command: Command) -> None:
    """Ask and calibrate."""
    given = options.CalibrateOptions(data=data_of(command.session, "calibration"))
    form = await command.ask(given, "Calibrate", options.CALIBRATE_TEXT, "Calibrate")
    if form is not None:
        await command.context.runner.work(requests.Calibrate(session=command.session, **values_of(form)))


async def score(command: Command) -> None:
    """Ask and compute the layer x scheme scores; show them, while they are computed where they are of weights."""
    workspace = command.context.workspace
    table = command.session.table(workspace.state.metric)
    names = table.schemes if table is not None else tuple(scheme.name for scheme in standard_schemes())
    inputs = {scheme.name for scheme in activation_schemes()}
    every = sorted(
        {*names, *inputs, *(name for _, family in schemes.families() for name in family)}, key=schemes.reference_bits
    )
    choices = {"schemes": [Choice(name, name) for name in every]}
    given = options.ScoreOptions(schemes=names)
    form = await command.ask(given, "Sensitivity", options.SCORE_TEXT, "Compute", choices)
    if form is None:
        return
    values = values_of(form)
    of_activations = form.metric in ACTIVATION_METRICS
    if of_activations:
        values["schemes"] = tuple(name for name in form.schemes if name in inputs)
    else:
        workspace.show_metric(form.metric)
    result = await command.context.runner.work(requests.Score(session=command.session, **values))
    if result is not None and of_activations:
        workspace.show_metric(form.metric)


def search(command: Command) -> None:
    """Search a plan within the budget of the Plan panel; an error about the budget is shown beside it."""
    command.window.reveal("plan")
    workspace = command.context.workspace
    state = workspace.state
    workspace.show_search_error(state.budget.problem)
    if state.session is None or state.budget.problem:
        return

    def shown(error: WorkbenchError) -> bool:
        if isinstance(error, BudgetError):
            workspace.show_search_error(str(error))
        return isinstance(error, BudgetError)

    request = requests.SearchPlan(
        session=state.session, metric=state.metric, bits_per_weight=state.budget.bits_per_weight,
        nbytes=state.budget.nbytes, target=state.target or None,
    )  # fmt: skip
    command.context.runner.submit(request, f"Search within {state.budget}", shown)


async def evaluate(command: Command) -> None:
    """Ask, evaluate the current plan and show the result."""
    given = options.EvaluateOptions(data=data_of(command.session, "evaluation"))
    form = await command.ask(given, "Evaluate", options.EVALUATE_TEXT, "Evaluate")
    if form is None:
        return
    values = {**values_of(form), "data": form.data or None}
    if await command.context.runner.work(requests.Evaluate(session=command.session, **values)) is not None:
        command.window.reveal("accuracy")


async def refine(command: Command) -> None:
    """Ask and measure the cells whose decision is close."""
    state = command.context.workspace.state
    bits = state.budget.bits_per_weight
    if bits is None:
        bits = state.budget.amount if state.totals is None else state.totals.bits_per_weight
    earlier = command.session.sensitivities.get(MEASURED)  # of as many samples, the run goes on from it
    given = options.RefineOptions(bits_per_weight=bits, samples=None if earlier is None else earlier.samples)
    form = await command.ask(given, "Refine close decisions", options.REFINE_TEXT, "Measure")
    if form is not None:
        await _measure(command, RefineTable(session=command.session, **values_of(form)), state.metric)


async def _measure(command: Command, request: RefineTable, before: str) -> None:
    """Show the table while it grows; then the metric that was shown before, and how well the two agree.

    A table of few cells is not what a plan is summed and searched with: the refined one, which has them in it, is.
    """
    workspace = command.context.workspace
    workspace.show_metric(MEASURED)

    def again() -> None:
        if workspace.state.session is not None:
            fresh = replace(request, session=workspace.state.session)
            command.context.tasks.start(_measure(command, fresh, before))

    table = await command.context.runner.work(request, again=again)
    if workspace.state.session is not None:
        workspace.show_metric(before)
    if table is not None:
        command.context.messages.say("Close decisions are measured", "choose Refined KL in Sensitivity to use them")
        command.window.reveal("agreement")


async def audit(command: Command) -> None:
    """Ask and measure whether the losses of the plan's layers add up."""
    given = options.AuditOptions(data=data_of(command.session, "evaluation"))
    form = await command.ask(given, "Audit the plan", options.AUDIT_TEXT, "Audit")
    if form is not None:
        await _audit(command, AuditPlan(session=command.session, **{**values_of(form), "data": form.data or None}))


async def _audit(command: Command, request: AuditPlan) -> None:
    from workbench.gui.panels.accuracy.panel import AccuracyPanel

    def again() -> None:
        if command.context.workspace.state.session is not None:
            command.context.tasks.start(_audit(command, replace(request, session=command.session)))

    result = await command.context.runner.work(request, again=again)
    if result is not None:
        command.context.messages.say(f"Audit of “{result.plan_name}”", result.audit.sentence())
        command.window.reveal("accuracy")
        command.window.panel(AccuracyPanel).show_audit()


async def train(command: Command) -> None:
    """Ask, train under the plan and write the result."""
    kinds = options.weight_exporters()
    given = options.TrainOptions(data=data_of(command.session, "calibration"), kind=kinds[0][0])
    form = await command.ask(given, "Train", options.TRAIN_TEXT, "Train", {"kind": [Choice(*kind) for kind in kinds]})
    if form is None:
        return
    values = values_of(form)
    epochs = values.pop("epochs")
    if epochs:
        values["steps"] = max(round(epochs * form.samples / form.batch_size), 1)
    paths = await command.context.runner.work(TrainModel(session=command.session, **values))
    if paths:
        command.context.messages.say("Trained", ", ".join(paths))


async def time_kernels(command: Command) -> None:
    """Ask, time the kernels of the plan and show the times."""
    form = await command.ask(options.TimeOptions(), "Time the kernels", options.TIME_TEXT, "Measure")
    if form is None:
        return
    if await command.context.runner.work(TimeKernels(session=command.session, **values_of(form))) is not None:
        command.window.reveal("timing")


async def export(command: Command) -> None:
    """Ask for a form and a place, and export the plan."""
    kinds = options.exporters()
    given = options.ExportOptions(kind=kinds[0][0])
    choices = {"kind": [Choice(*kind) for kind in kinds]}
    form = await command.ask(given, "Export", options.EXPORT_TEXT, "Export", choices)
    if form is None:
        return
    paths = await command.context.runner.work(requests.Export(session=command.session, kind=form.kind, out=form.out))
    if paths:
        command.context.messages.say("Exported", ", ".join(paths))


def cancel(command: Command) -> None:
    """Cancel the running job."""
    for view in command.context.jobs.views:
        if view.status == "running":
            command.context.runner.cancel(view.id)


def retry(command: Command) -> None:
    """Repeat the last failed or cancelled job."""
    for view in reversed(command.context.jobs.views):
        if view.status in ("failed", "cancelled"):
            command.context.runner.retry(view.id)
            return


def copy_python(command: Command) -> None:
    """Copy the selected or last job as Python."""
    from workbench.gui.panels.jobs import JobsPanel

    command.window.panel(JobsPanel).copy_python()


def values_of(form: Any) -> dict[str, Any]:
    """Return a form's options by name."""
    return {item.name: getattr(form, item.name) for item in fields(form)}


def data_of(session: Session, which: str) -> str:
    """Return the data set that the session used last, else the one bundled with the model, else nothing."""
    record = session.calibration if which == "calibration" else session.evaluation or session.calibration
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

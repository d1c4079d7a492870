"""The menu Run: asks for a step's options, runs it as a job and shows the panel of its result."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from workbench.deployment.targets import target
from workbench.errors import BudgetError, WorkbenchError
from workbench.gui.commands.command import Command
from workbench.gui.panels.plan.best_target import BestTarget
from workbench.gui.shell import settings, step_keys
from workbench.insight.deployments import FORMS, place, unfit
from workbench.insight.legality import rounding_of, target_schemes
from workbench.insight.roles import lacks_schemes, role, schemes_to_score, unscored_schemes
from workbench.measurement.units import NATS, loss_unit, short_unit
from workbench.models.data.files import PICTURES, SOUNDS, TEXT
from workbench.models.data.table_paths import PACKED, SAVED, SUFFIXES
from workbench.numerics.formats import activation_schemes
from workbench.numerics.formats.gguf.inputs import SCHEMES as ROUNDED_SCHEMES
from workbench.sensitivity.audit import PlanAudit
from workbench.sensitivity.metrics import ACTIVATION_METRICS
from workbench.sensitivity.metrics.weight_error import WEIGHT_ERROR
from workbench.sensitivity.table import Sensitivity
from workbench.session.calibrated_ranges import identity
from workbench.session.workspace import State
from workbench.steps.calibrate import CALIBRATE
from workbench.steps.checks.audit import AUDIT, AuditOptions
from workbench.steps.checks.refine import REFINE, RefineOptions
from workbench.steps.checks.runtime import RUNTIME
from workbench.steps.evaluate import EVALUATE
from workbench.steps.files.export import ExportOptions
from workbench.steps.options import scheme_names
from workbench.steps.requirements import QUANTIZES
from workbench.steps.score import SCORE, ScoreOptions
from workbench.steps.search import SEARCH, SearchOptions
from workbench.steps.search_rules import input_names
from workbench.steps.step import Request, Step
from workbench.steps.targets import TARGETS, TargetPlan, TargetsOptions, budget_of

O = TypeVar("O")  # noqa: E741
R = TypeVar("R")

AnyRequest = Request[Any, Any]

MEASURED = "measured_kl"
LOOKED_AT = 100
"""Entries of a dropped folder that are looked at."""


def step_command(
    step: Step[O, R], start: str, *, panel: str = "", done: str = "", first: Callable[[State], O | None] | None = None
) -> Callable[[Command], Coroutine[Any, Any, None]]:
    """Return the function that asks for a step's options (``start`` is the button's text) and runs the step.

    Its form starts with ``first(state)``, unless that is None.  Then it reveals ``panel``, which shows the result, and
    logs ``done`` with the paths that the step has written.
    """

    async def run(command: Command) -> None:
        request = await command.ask(step, start, first(command.context.workspace.state) if first else None)
        if request is None:
            return
        result = await _shown(command, request, panel)
        if isinstance(result, tuple) and done:
            command.context.messages.say(done, ", ".join(map(str, result)))

    return run


def export_for_target(state: State) -> ExportOptions | None:
    """Return what a form of exports starts with: what the target loads, at the place that *Deploy* suggests."""
    session, runtime = state.session, state.target.partition("@")[0]
    forms = [form for form in FORMS if form.target == runtime and session and not unfit(form, session.model)]
    return ExportOptions(kind=forms[0].kind, out=str(place(state, forms[0]))) if runtime and forms else None


async def _shown(command: Command, request: Request[O, R], panel: str, again: Any = None) -> R | None:
    """Run a request and return the result, shown in ``panel``, if there is one."""
    show = command.window.revealing(panel) if panel else lambda: None
    result = await command.context.runner.work(request, again)
    if result is not None:
        show()
    return result


def schemes_of(state: State) -> tuple[str, ...]:
    """Return the schemes to score: those that the target runs, the standard ones without a target.

    Where there is a table: its own that the target runs, and those of the plan, too; finished cells stay.
    """
    session, runtime = state.session, state.target
    first = (schemes_to_score(role(settings.role()), session, runtime) if session else ()) or scheme_names(None)
    table = session.table(state.metric) if session else None
    if session is None or table is None:
        return first
    known = table.schemes
    if runtime:
        runs = target_schemes(session.model.layers, runtime)
        known = (*filter(runs.__contains__, known), *first)
    return tuple(dict.fromkeys((*known, *unscored_schemes(table, state.assignments))))


DATA = (*TEXT, *(suffix for suffix in SUFFIXES if suffix != ".json"), *PACKED, ".npz", ".npy")
"""Files that hold nothing but data; others are models, plans or sessions first."""

OF_MODELS = (".json", ".safetensors", ".gguf", ".onnx", ".pt2", ".pt", ".pth", ".bin", ".py")
"""Files by which a folder is a model's."""


def is_data(path: str) -> bool:
    """Return whether a file holds data, not a model, plan or session, or a folder texts, pictures or sounds."""
    place = Path(path)
    if not os.path.isdir(place):
        return place.suffix.lower() in DATA
    suffixes = set[str]()
    with suppress(OSError):  # a folder that may not be read: opening says so
        inside = [place, *sorted(entry for entry in place.iterdir() if entry.is_dir())[:LOOKED_AT]]
        for folder in inside:
            entries = itertools.islice(folder.iterdir(), LOOKED_AT)
            suffixes.update(entry.suffix.lower() for entry in entries if entry.name not in SAVED)
    return suffixes.isdisjoint(OF_MODELS) and not suffixes.isdisjoint((*DATA, *PICTURES, *SOUNDS))


async def calibrate_on(command: Command, data: str) -> None:
    """Ask for the other options of a calibration on ``data``, and calibrate."""
    if CALIBRATE.first is None:
        return
    request = await command.ask(CALIBRATE, "Calibrate", replace(CALIBRATE.first(command.session), data=data))
    if request is not None:
        await _shown(command, request, "distributions")


async def score(command: Command) -> None:
    """Ask and compute the layer x scheme scores, and show them: while they are computed where there were none."""
    workspace, session = command.context.workspace, command.session
    table, runtime = session.table(workspace.state.metric), workspace.state.target
    first = ScoreOptions(schemes=schemes_of(workspace.state), target=runtime or None)
    if session.model.cannot_run:
        first = replace(first, metric=WEIGHT_ERROR.name)
    request = await command.ask(SCORE, "Compute", first)
    if request is None:
        return
    options = request.options
    of_activations = options.metric in ACTIVATION_METRICS
    if of_activations:
        inputs = {scheme.name for scheme in activation_schemes()}
        rounded = ROUNDED_SCHEMES if rounding_of(runtime) and "inputs" in options.metric else ()  # what a search counts
        options = replace(options, schemes=(*(name for name in options.schemes if name in inputs), *rounded))
    if table is None and not of_activations:  # else the losses that are there stay until the new ones are
        workspace.show_metric(options.metric)
    if await _shown(command, replace(request, options=options), "sensitivity") is not None:
        workspace.show_metric(options.metric)


def search(command: Command) -> None:
    """Search a plan within the budget of the Plan panel; an error about the budget is shown beside it."""
    command.window.reveal("plan")
    workspace = command.context.workspace
    state = workspace.state
    workspace.show_search_error(state.budget.problem)
    if state.session is None or state.budget.problem:
        return

    command.context.runner.submit(SEARCH.request(state.session, search_options(state)), partial(_beside, command))


async def best_target(command: Command) -> None:
    """Search a plan for every target within the budget of the Plan panel, and offer the best of them."""
    command.window.reveal("plan")
    workspace, session = command.context.workspace, command.session
    state, document = workspace.state, workspace.document
    bits, size = state.budget.bits_per_weight, state.budget.nbytes
    if bits is None and size is None and state.totals is not None:
        size = round(state.totals.nbytes)  # a budget of loss or time compares no targets: the plan's size does
    options = TargetsOptions(bits_per_weight=bits, size=size, metric=state.metric)
    rows = await command.context.runner.work(TARGETS.request(session, options), partial(best_target, command))
    if rows is None or workspace.document != document:
        return

    def use(row: TargetPlan) -> None:
        if row.plan is not None and workspace.document == document:
            plan = row.plan
            workspace.edit(f"Best plan for {row.title}", lambda now: replace(now, plan=plan, target=row.target))

    unit = short_unit(session.require_table(state.metric).unit)
    BestTarget(command.window.widget, rows, unit, budget_of(options), use).open()


def _beside(command: Command, error: WorkbenchError) -> bool:
    """Show a failed search's reason beside the budget; returns False for errors of other kinds."""
    workspace = command.context.workspace
    if isinstance(error, BudgetError):
        workspace.show_search_error(str(error), workspace.state.budget.amount_of(error.smallest))
    return isinstance(error, BudgetError)


def search_options(state: State) -> SearchOptions:
    """Return the search that the Plan panel describes, with the inputs of what the user came for."""
    budget = state.budget
    weights, inputs = _purposed(state)
    return SearchOptions(
        metric=state.metric, bits_per_weight=budget.bits_per_weight, size=budget.nbytes, loss=budget.loss,
        microseconds=budget.microseconds, minimise="loss" if budget.loss is None else "nbytes",
        target=state.target or None, schemes=weights, inputs=inputs,
    )  # fmt: skip


def _purposed(state: State) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return schemes of weights and of inputs that the user came for; both empty: all scored ones, inputs as before.

    So it is too where the plan rounds inputs already, and where none of the role's schemes that run beside its inputs
    was scored.
    """
    chosen, session = role(settings.role()), state.session
    if session is None or not chosen.inputs or chosen.target != state.target:
        return (), ()
    table, runtime = session.table(state.metric), target(state.target)
    if table is None or any(rule.assignment.inputs for rule in session.plan.rules):
        return (), ()
    inputs = input_names(session, chosen.inputs, state.target)
    weights = tuple(
        name for name in chosen.schemes
        if name in table.schemes
        and any(runtime.legal(layer, name, inputs[0]) is None for layer in session.model.layers)
    )  # fmt: skip
    return (weights, chosen.inputs) if weights else ((), ())


async def run_all(command: Command) -> None:
    """Do what is not done yet up to the evaluation, with the options that the forms start with.

    Data are asked for where none are known; what fails or is cancelled ends the run.
    """
    show = command.window.revealing("accuracy")
    for due in (_calibration_due, _scoring_due, _search_due, _evaluation_due):
        request = await due(command)
        shown = partial(_beside, command)
        if request is not None and await command.context.runner.work(request, on_error=shown) is None:
            return
        if command.session.calibration is None:  # the user gave no data
            return
    show()


async def _calibration_due(command: Command) -> AnyRequest | None:
    if command.session.calibration is not None or CALIBRATE.first is None:
        return None
    if not CALIBRATE.first(command.session).data:
        return await command.ask(CALIBRATE, "Run A&ll")
    return CALIBRATE.request(command.session, command.first(CALIBRATE))


async def _scoring_due(command: Command) -> AnyRequest | None:
    state = command.context.workspace.state
    scored = command.session.table(state.metric) is not None
    if scored and not lacks_schemes(command.session, state.metric, state.target, state.assignments):
        return None
    first = command.first(SCORE, ScoreOptions(schemes=schemes_of(state), target=state.target or None))
    return SCORE.request(command.session, replace(first, metric=state.metric))


async def _search_due(command: Command) -> AnyRequest | None:
    if step_keys.why_not(command.session, (QUANTIZES,)) is None:
        return None
    return SEARCH.request(command.session, search_options(command.context.workspace.state))


async def _evaluation_due(command: Command) -> AnyRequest | None:
    plan = identity(command.session, command.session.plan)
    if any(run.plan_hash == plan for run in command.session.evaluations):
        return None
    return EVALUATE.request(command.session, command.first(EVALUATE))


async def refine(command: Command) -> None:
    """Ask and measure the cells whose decision is close."""
    state = command.context.workspace.state
    bits = state.budget.bits_per_weight
    if bits is None:
        bits = state.budget.amount if state.totals is None else state.totals.bits_per_weight
    earlier = command.session.sensitivities.get(MEASURED)  # of as many samples, the run goes on from it
    first = RefineOptions(bits_per_weight=bits, samples=None if earlier is None else earlier.samples)
    request = await command.ask(REFINE, "Measure", first)
    if request is not None:
        await _measure(command, request)


async def _measure(command: Command, request: Request[RefineOptions, Sensitivity]) -> None:
    """Measure, and show how well the two metrics agree.

    The metric that is shown stays: a table of few cells cannot rate or search plans; the refined one can.
    """
    if await _shown(command, request, "agreement", partial(_measure, command)) is not None:
        command.context.messages.say("Close decisions are measured", "choose Refined KL in Sensitivity to use them")


async def audit(command: Command) -> None:
    """Ask and measure whether the losses of the plan's layers add up."""
    request = await command.ask(AUDIT, "Audit")
    if request is not None:
        await _audit(command, request)


async def _audit(command: Command, request: Request[AuditOptions, PlanAudit]) -> None:
    from workbench.gui.panels.accuracy.panel import AccuracyPanel

    result = await _shown(command, request, "accuracy", partial(_audit, command))
    if result is not None:
        session = command.context.workspace.state.session
        unit = NATS if session is None else loss_unit(session.model.output)
        command.context.messages.say(f"Audit of “{result.plan_name}”", result.audit.sentence(unit))
        command.window.panel(AccuracyPanel).show_audit()


async def prove(command: Command) -> None:
    """Ask for the runtime that was chosen in Deploy, and run the plan's file in it."""
    from workbench.gui.panels.deploy.panel import DeployPanel

    assert RUNTIME.first is not None
    forms = command.window.panel(DeployPanel).forms
    options = replace(RUNTIME.first(command.session), runtime=forms.runtime, file=forms.file)
    forms.file = ""  # the next one may be of another plan
    request = await command.ask(RUNTIME, "Run", options)
    if request is not None:
        await _shown(command, request, "deploy")


def cancel(command: Command) -> None:
    """Cancel the running job."""
    for view in command.context.jobs.views:
        if view.status == "running":
            command.context.jobs.cancel(view.id)


def retry(command: Command) -> None:
    """Repeat the last failed or cancelled job."""
    for view in reversed(command.context.jobs.views):
        if view.listed and view.status in ("failed", "cancelled"):
            command.context.jobs.retry(view.id)
            return


def copy_python(command: Command) -> None:
    """Copy the selected or last job as Python."""
    from workbench.gui.panels.jobs import JobsPanel

    command.window.panel(JobsPanel).copy_python()

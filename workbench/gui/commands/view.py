"""The menus View and Help."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeVar

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QKeySequence
from shiboken6 import isValid

from workbench import log
from workbench.deployment.targets import target, target_names
from workbench.errors import WorkbenchError
from workbench.gui.commands.command import Command
from workbench.gui.context import edits
from workbench.gui.shell import dialogs, settings, theme
from workbench.gui.shell.dialogs import ask_save_path
from workbench.gui.shell.help import About, Guide, ProblemReport, headings
from workbench.gui.shell.palette import Entry, Palette
from workbench.gui.shell.words import tr
from workbench.insight import quantities, schemes
from workbench.insight.problem_report import write_report
from workbench.measurement.metrics import metric_meaning
from workbench.measurement.metrics import metric_title as evaluated_title
from workbench.sensitivity.metrics import METRICS, metric_title
from workbench.session.contents import ANY
from workbench.session.session import Session
from workbench.steps.devices import DEVICES, DevicesOptions

T = TypeVar("T")

NATIVE = QKeySequence.SequenceFormat.NativeText


def find_anything(command: Command) -> None:
    """Open the list of all that can be found by its name."""
    Palette(command.window.widget, _entries(command)).open()


def _entries(command: Command) -> list[Entry]:
    """Return actions and panels, then what is listed only once something is typed."""
    workspace, window = command.context.workspace, command.window
    state, session = workspace.state, workspace.state.session
    entries = [
        Entry(title=title, run=action.trigger, keys=action.shortcut().toString(NATIVE), tip=action.toolTip(),
              why_not="" if action.isEnabled() else action.toolTip())
        for title, action in window.titled_actions()
    ]  # fmt: skip
    for heading in headings():
        entries.append(_entry(tr("Guide: {}"), heading, partial(_guide, command, heading)))
    if session is None:
        return entries
    entries += _metrics(command, session)
    run: Callable[[], object]
    for name in ("", *target_names()):
        run = partial(_choose, command, "plan", workspace.show_target, name)
        title = tr(target(name).title if name else ANY)
        entries.append(_entry(tr("Target: {}"), title, run, "Make this the target of the plan"))
    for name, plan in session.plans.items():
        run = partial(edits.set_plan, workspace, f"Use the plan {name}", plan)
        entries.append(_entry(tr("Plan: {}"), name, run, "Make this saved plan the current one"))
    why_not = "" if state.selection else "Select layers first"
    for _, names in schemes.families():
        for name in names:
            tip = "" if why_not else f"{name} for {quantities.plural(len(state.selection), 'selected layer')}"
            run = partial(edits.assign, workspace, state.selection, weights=name)
            entries.append(_entry(tr("Scheme: {}"), name, run, tip, why_not))
    kind = tr("Layer: {}")  # thousands
    for layer in session.model.layers:
        run = partial(_choose, command, "layers", workspace.select, (layer.name,))
        entries.append(_entry(kind, layer.name, run, "Select the layer"))
    return entries


def _entry(kind: str, name: str, run: Callable[[], object], tip: str = "", why_not: str = "") -> Entry:
    """Return an entry that is found once something is typed; ``kind`` says what is called ``name``."""
    return Entry(title=kind.format(name), run=run, tip=tip, why_not=why_not, listed=False)


def _metrics(command: Command, session: Session) -> Iterator[Entry]:
    """Yield the metrics of the heatmap, and those that were evaluated."""
    for metric in METRICS:
        table, show = session.table(metric.name), command.context.workspace.show_metric
        run = partial(_choose, command, "sensitivity", show, metric.name)
        title = tr(metric.title if table is None else metric_title(metric.name, table.unit))
        yield _entry(tr("Metric: {}"), title, run, metric.meaning, "" if table else "It was not scored yet (F6)")
    for name in dict.fromkeys(name for evaluation in session.evaluations for name in evaluation.metrics):
        run = partial(command.window.reveal, "accuracy")
        yield _entry(tr("Metric: {}"), tr(evaluated_title(name)), run, metric_meaning(name))


def _choose(command: Command, panel: str, choose: Callable[[T], None], chosen: T) -> None:
    choose(chosen)
    command.window.reveal(panel)


def _guide(command: Command, heading: str) -> None:
    guide = Guide(command.window.widget)
    guide.show()
    guide.field.setText(heading)
    guide.find_next()


def next_heat_colours(command: Command) -> None:
    """Take the next colour map for heatmaps, and remember it."""
    names = settings.HEAT_COLOURS
    name = names[(names.index(settings.heat_colours()) + 1) % len(names)]
    settings.heat_colours.save(name)
    command.window.recolour(command.window.colours)
    command.context.messages.say("Colours of heatmaps", {"CET-L1": "grey"}.get(name, name))


async def choose_language(command: Command) -> None:
    """Ask for the language of the window, and remember it for the next start."""
    text = "The choice takes effect at the next start."
    buttons = ("system", "&System"), ("en", "&English"), ("de", "&Deutsch"), ("cancel", "&Cancel")
    chosen = await dialogs.ask(command.window.widget, "Language", text, buttons, settings.language() or "system")
    if chosen != "cancel":
        settings.language.save("" if chosen == "system" else chosen)
        command.context.messages.say("Language", "the choice takes effect at the next start")


async def choose_decimal_mark(command: Command) -> None:
    """Ask whether numbers have a decimal point or comma, and remember it for the next start."""
    text = "How the window shows numbers, from the next start on. Fields take both marks then; files have a point."
    buttons = ("point", "&Point: 1,234.5"), ("comma", "C&omma: 1.234,5"), ("cancel", "&Cancel")
    usual = "comma" if settings.decimal_mark() == "," else "point"
    chosen = await dialogs.ask(command.window.widget, "Decimal mark", text, buttons, usual)
    if chosen != "cancel":
        settings.decimal_mark.save("," if chosen == "comma" else ".")
        command.context.messages.say("Decimal mark", "the choice takes effect at the next start")


def layout(preset: str) -> Callable[[Command], None]:
    """Return the function that arranges the panels for a kind of work."""
    return lambda command: command.window.arrange(preset)


def switch_colours(command: Command) -> None:
    """Switch between light and dark, and remember it."""
    settings.theme.save("light" if command.window.colours.dark else "dark")
    command.window.recolour(theme.choose(settings.theme()))


def system_colours(command: Command) -> None:
    """Follow the desktop's colours, now and whenever they change, and remember it."""
    settings.theme.save("system")
    command.window.recolour(theme.choose("system"))


def show_log(command: Command) -> None:
    """Open the folder of the log files."""
    folder = log.folder()
    folder.mkdir(parents=True, exist_ok=True)
    command.context.messages.say("The log files are in", str(folder))
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))


def report_problem(command: Command) -> None:
    """Show what a report of a problem would hold; a button saves it."""
    context = command.context
    state, session = context.workspace.state, context.workspace.state.session
    jobs = [f"job {view.id}: {view.title}: {view.status} {view.error}".rstrip() for view in context.jobs.views]
    messages = [f"{entry.level}: {entry.title} {entry.text}".rstrip() for entry in context.messages.entries]
    facts = [] if session is None else [f"{len(session.model.layers)} layers, {session.environment.device}"]
    path = [str(state.path), state.path.name] if state.path else []
    names = [] if session is None else [session.model.source.path, session.model.name, *path]
    lines = [*facts, "", *jobs, "", *messages]
    ProblemReport(command.window.widget, lines, names, partial(_save_report, command)).open()


def _save_report(command: Command, parts: Mapping[str, str]) -> None:
    async def saving() -> None:
        title = "Save the report"
        path = await ask_save_path(command.window.widget, title, "Archives (*.zip)", "workbench-problem.zip", "zip")
        if path is None:
            return
        try:
            write_report(parts, path)
        except WorkbenchError as error:
            command.context.messages.report(title, error)
        else:
            command.context.messages.say("The report was saved", f"{path}; send it to whoever can help")

    command.context.tasks.start(saving())


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

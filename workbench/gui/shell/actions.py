"""Every action, in one table: what it is called, its key, when it can be done, and what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.gui.commands import checks as check_commands
from workbench.gui.commands.commands import Commands
from workbench.session.workspace import State
from workbench.steps.files.first_look import STILL_LOADING, is_first_look


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What decides whether an action can be done: the document, and whether jobs run or failed."""

    state: State
    running: bool = False
    failed: bool = False


Reason = str | None
"""Why an action cannot be done now; None if it can."""


def always(now: Situation) -> Reason:
    """Nothing is needed."""
    return None


def has_session(now: Situation) -> Reason:
    """A model or session must be open."""
    if is_first_look(now.state.session):
        return STILL_LOADING
    return None if now.state.session else "Open a model first"


def has_selection(now: Situation) -> Reason:
    """Layers must be selected."""
    return has_session(now) or (None if now.state.selection else "Select layers first")


def has_target(now: Situation) -> Reason:
    """A target must be chosen."""
    return has_session(now) or (None if now.state.target else "Choose a target in the panel Plan first")


def can_run(now: Situation) -> Reason:
    """The model must be more than weights."""
    session = now.state.session
    return has_session(now) or (session.model.cannot_run if session is not None else None)


def has_plan(now: Situation) -> Reason:
    """The plan must quantize something."""
    if now.state.session is None or now.state.plan_error:
        return has_session(now) or now.state.plan_error
    if is_first_look(now.state.session):
        return STILL_LOADING
    kept = all(held.weights == "keep" and held.inputs is None for held in now.state.assignments.values())
    return "Give layers a scheme first" if kept else None


def can_evaluate(now: Situation) -> Reason:
    """A model that runs and a plan."""
    return can_run(now) or has_plan(now)


def has_table(now: Situation) -> Reason:
    """Scores of the shown metric must be there."""
    session = now.state.session
    if session is None:
        return has_session(now)
    return None if session.table(now.state.metric) is not None else "Compute the sensitivity first"


def can_refine(now: Situation) -> Reason:
    """A model that runs, its calibration and its predicted losses."""
    return has_session(now) or check_commands.why_no_refinement(now.state)


def can_undo(now: Situation) -> Reason:
    """There must be a step to take back."""
    return None if now.state.undo_name else "Nothing to undo"


def can_redo(now: Situation) -> Reason:
    """There must be a step to do again."""
    return None if now.state.redo_name else "Nothing to redo"


def is_running(now: Situation) -> Reason:
    """A job must run."""
    return None if now.running else "No job is running"


def has_failed(now: Situation) -> Reason:
    """A job must have failed or been cancelled."""
    return None if now.failed else "No job has failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """``menu`` is where it stands; ``icon`` puts it on the toolbar; ``separated`` draws a line before it.

    ``also`` is a second shortcut.
    """

    id: str
    text: str
    shortcut: str
    menu: str
    task: Callable[[Commands], Any]
    enabled_when: Callable[[Situation], Reason] = always
    tip: str = ""
    icon: str = ""
    separated: bool = False
    also: str = ""


MENUS = ("&File", "&Edit", "&Run", "&View", "&Help")

ACTIONS = (
    Action(id="open_file", text="&Open Model File…", shortcut="Ctrl+O", menu="&File", task=Commands.open_file,
           tip="Open a .safetensors, .pt2 or Python file", icon="open"),
    Action(id="open_folder", text="Open Model F&older…", shortcut="Ctrl+Shift+O", menu="&File",
           task=Commands.open_folder, tip="Open a Hugging Face folder or a sharded checkpoint"),
    Action(id="open_session", text="Open &Session…", shortcut="Ctrl+Alt+O", menu="&File", task=Commands.open_session,
           tip="Open a .qwb file"),
    Action(id="open_demo", text="Open the &Demo", shortcut="Ctrl+Shift+D", menu="&File", task=Commands.open_demo,
           tip="Open the bundled language model"),
    Action(id="save", text="&Save", shortcut="Ctrl+S", menu="&File", task=Commands.save, enabled_when=has_session,
           tip="Save the session; the old file stays whole if anything fails", icon="save", separated=True),
    Action(id="save_as", text="Save &As…", shortcut="Ctrl+Shift+S", menu="&File", task=Commands.save_as,
           enabled_when=has_session),
    Action(id="export", text="&Export…", shortcut="Ctrl+Shift+E", menu="&File", task=Commands.export,
           enabled_when=has_plan, tip="Write the plan or the quantized model for another program", icon="export"),
    Action(id="report", text="Save a &Report…", shortcut="Ctrl+P", menu="&File", task=Commands.report,
           enabled_when=has_session, tip="Write every plot and table as one page to read and print"),
    Action(id="save_picture", text="Save the P&icture…", shortcut="Ctrl+Alt+P", menu="&File",
           task=Commands.save_picture, enabled_when=has_session, tip="Write the plot with the keyboard as PNG or SVG"),
    Action(id="save_table", text="Save the &Table…", shortcut="Ctrl+Alt+V", menu="&File", task=Commands.save_table,
           enabled_when=has_session, tip="Write the table with the keyboard as comma-separated values"),
    Action(id="compare", text="Co&mpare with a Session…", shortcut="Ctrl+Alt+D", menu="&File", task=Commands.compare,
           enabled_when=has_session, tip="Show the open session and another side by side"),
    Action(id="close", text="&Close", shortcut="Ctrl+W", menu="&File", task=Commands.close, enabled_when=has_session,
           separated=True),
    Action(id="quit", text="&Quit", shortcut="Ctrl+Q", menu="&File", task=Commands.quit),
    Action(id="undo", text="&Undo", shortcut="Ctrl+Z", menu="&Edit", task=Commands.undo, enabled_when=can_undo,
           icon="undo"),
    Action(id="redo", text="&Redo", shortcut="Ctrl+Shift+Z", menu="&Edit", task=Commands.redo, enabled_when=can_redo,
           icon="redo"),
    Action(id="set_scheme", text="Set &Scheme…", shortcut="Ctrl+E", menu="&Edit", task=Commands.set_scheme,
           enabled_when=has_selection, tip="Choose a scheme for the selected layers", separated=True),
    Action(id="fewer_bits", text="&Fewer Bits", shortcut="Ctrl+-", menu="&Edit", task=Commands.fewer_bits,
           enabled_when=has_selection, tip="Give the selected layers the next smaller scheme"),
    Action(id="more_bits", text="&More Bits", shortcut="Ctrl+=", menu="&Edit", task=Commands.more_bits,
           enabled_when=has_selection, tip="Give the selected layers the next larger scheme"),
    Action(id="keep", text="&Keep in Floating Point", shortcut="Ctrl+0", menu="&Edit", task=Commands.keep,
           enabled_when=has_selection),
    Action(id="lock", text="&Lock or Unlock", shortcut="Ctrl+L", menu="&Edit", task=Commands.lock,
           enabled_when=has_selection, tip="A search leaves locked layers as they are"),
    Action(id="repair", text="&Repair for the Target", shortcut="Ctrl+Shift+T", menu="&Edit", task=Commands.repair,
           enabled_when=has_target, tip="Give what the target cannot run the nearest scheme that it runs"),
    Action(id="select_all", text="Select &All Layers", shortcut="Ctrl+Shift+A", menu="&Edit", task=Commands.select_all,
           enabled_when=has_session, separated=True),
    Action(id="select_similar", text="Select Si&milar Layers", shortcut="Ctrl+Shift+M", menu="&Edit",
           task=Commands.select_similar, enabled_when=has_selection,
           tip="Select the layers of the same kind, shape and last name"),
    Action(id="columns", text="&Columns…", shortcut="Ctrl+Shift+C", menu="&Edit", task=Commands.columns,
           enabled_when=has_session, tip="Choose the columns of the layers"),
    Action(id="find", text="F&ilter Layers", shortcut="Ctrl+F", menu="&Edit", task=Commands.find,
           enabled_when=has_session),
    Action(id="calibrate", text="&Calibrate…", shortcut="F5", menu="&Run", task=Commands.calibrate,
           enabled_when=can_run, tip="Note histograms, ranges and curvature on a data set", icon="calibrate"),
    Action(id="score", text="&Sensitivity…", shortcut="F6", menu="&Run", task=Commands.score,
           enabled_when=has_session, tip="Score what each scheme would cost each layer", icon="sensitivity"),
    Action(id="refine", text="Refine Close &Decisions…", shortcut="Ctrl+F6", menu="&Run", task=Commands.refine,
           enabled_when=can_refine, tip="Measure the loss where the predicted losses leave the scheme open"),
    Action(id="search", text="Search a &Plan", shortcut="F7", menu="&Run", task=Commands.search,
           enabled_when=has_table, tip="Find the plan of the least predicted loss within the budget", icon="search"),
    Action(id="evaluate", text="&Evaluate…", shortcut="F8", menu="&Run", task=Commands.evaluate,
           enabled_when=can_evaluate, tip="Measure the plan against the floating-point model", icon="evaluate"),
    Action(id="audit", text="A&udit the Plan…", shortcut="Ctrl+Shift+F8", menu="&Run", task=Commands.audit,
           enabled_when=can_evaluate, tip="Measure whether the losses of the plan's layers add up"),
    Action(id="train", text="Trai&n…", shortcut="Ctrl+F8", menu="&Run", task=Commands.train,
           enabled_when=can_evaluate, tip="Train weights on the plan's grids and export them"),
    Action(id="time_kernels", text="&Time Kernels…", shortcut="F9", menu="&Run", task=Commands.time_kernels,
           enabled_when=has_plan, tip="Time the plan's kernels against floating point", icon="time"),
    Action(id="cancel", text="C&ancel the Job", shortcut="Ctrl+.", menu="&Run", task=Commands.cancel,
           enabled_when=is_running, separated=True),
    Action(id="retry", text="&Retry the Last Job", shortcut="Ctrl+Shift+R", menu="&Run", task=Commands.retry,
           enabled_when=has_failed),
    Action(id="palette", text="Co&mmands…", shortcut="Ctrl+K", also="Ctrl+Shift+P", menu="&View", task=Commands.palette,
           tip="Find any command by its name"),
    Action(id="copy_python", text="Copy the Last Job as P&ython", shortcut="Ctrl+Alt+C", menu="&Run",
           task=Commands.copy_python, enabled_when=has_session, tip="Copy a script that does what the job did"),
    Action(id="switch_colours", text="&Light or Dark", shortcut="Ctrl+T", menu="&View", task=Commands.switch_colours),
    Action(id="system_colours", text="&Colours of the System", shortcut="Ctrl+Alt+T", menu="&View",
           task=Commands.system_colours, tip="Light or dark as the desktop is, and when it changes"),
    Action(id="reset_layout", text="&Reset the Layout", shortcut="Ctrl+Shift+L", menu="&View",
           task=Commands.reset_layout),
    Action(id="guide", text="User &Guide", shortcut="F1", menu="&Help", task=Commands.guide,
           tip="What everything means and what to do next"),
    Action(id="tour", text="&Tour of the Demo", shortcut="Ctrl+F1", menu="&Help", task=Commands.tour,
           enabled_when=has_session, tip="A few words beside each panel"),
    Action(id="about", text="&About", shortcut="Ctrl+Shift+F1", menu="&Help", task=Commands.about,
           tip="Versions and devices"),
)  # fmt: skip

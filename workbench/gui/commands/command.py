"""What an action's function gets: the document, the jobs, the messages, dialogs, and a narrow view of the window."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QDialog, QWidget

from workbench.gui.commands.document import Document
from workbench.gui.context.context import Context
from workbench.gui.context.runner import running_steps
from workbench.gui.panels.panel import Panel
from workbench.gui.shell import dialogs, settings, step_keys
from workbench.gui.shell.forecast import ForecastLine
from workbench.gui.shell.forms import Form
from workbench.gui.shell.number_field import NumberField
from workbench.gui.shell.theme import Colours
from workbench.gui.shell.words import tr
from workbench.insight.legality import refused_layers
from workbench.insight.roles import role
from workbench.insight.sums import shown_unit
from workbench.measurement.units import short_unit
from workbench.models.placement import Placement
from workbench.sensitivity.metrics import SCORED, metric_title
from workbench.session.session import Session
from workbench.steps.calibrate import CALIBRATE
from workbench.steps.evaluate import EVALUATE
from workbench.steps.options import Choice, scheme_choices
from workbench.steps.preflight.estimate import FORECAST
from workbench.steps.score import SCORE
from workbench.steps.session_data import in_fields, offered_data
from workbench.steps.step import Request, Step

O = TypeVar("O")  # noqa: E741
P = TypeVar("P", bound=Panel)
R = TypeVar("R")

REMEMBERED = ("samples", "batch_size", "seed", "batch", "repeats", "metric")
"""Options that a form shows as last used; the others start with values that suit the document."""

OF_MODEL = ("data", "column", "window", "stride")
"""Options that a form shows as last used for this model, where no data are known: one attempt may have failed."""


class MainWindow(Protocol):
    """What actions need of the window."""

    @property
    def widget(self) -> QWidget:
        """The parent of dialogs."""

    @property
    def colours(self) -> Colours:
        """The current colours."""

    @property
    def is_drawn(self) -> bool:
        """Whether every visible panel shows the newest state."""

    @property
    def panels(self) -> Mapping[str, Panel]:
        """The existing panels by their id."""

    def reveal(self, panel: str) -> None:
        """Bring a panel to the front and give it the keyboard."""

    def revealing(self, panel: str) -> Callable[[], None]:
        """Return what shows a job's panel at its end, or marks its tab where the user has gone to another one."""

    def panel(self, kind: type[P]) -> P:
        """Return a panel, made if necessary."""

    def titled_actions(self) -> list[tuple[str, QAction]]:
        """Return all actions with titles to search in."""

    def recolour(self, colours: Colours) -> None:
        """Draw everything in other colours."""

    def use_placement(self, placement: Placement, cluster: str) -> None:
        """Let models run there from the next job on, and pieces of steps on the ``cluster`` where there is one."""

    def reset_layout(self) -> None:
        """Restore the first layout of the docks."""

    def arrange(self, preset: str) -> None:
        """Arrange the docks by a preset."""

    def quit(self) -> None:
        """Close the window, after asking about unsaved work."""


@dataclass(frozen=True, slots=True, eq=False)
class Command:
    """``context`` and ``window`` are what a command acts on, ``document`` opens and saves."""

    context: Context
    window: MainWindow
    document: Document
    _last: dict[object, Any] = field(default_factory=dict)

    @property
    def session(self) -> Session:
        """The open session; without one, actions that need it are disabled."""
        session = self.context.workspace.state.session
        assert session is not None, "the action is disabled without a session"
        return session

    async def ask(self, step: Step[O, R], start: str, options: O | None = None) -> Request[O, R] | None:
        """Ask for a step's options in its form, which starts with ``options`` and the button ``start``.

        Returns the request, None if the user cancels.
        """
        session, options = self.context.workspace.state.session, self.first(step, options)
        model, missing = (session.model, partial(step.missing, session)) if session is not None else (None, None)
        bundled = () if model is None else offered_data(model)
        ask = self.context.runner.ask
        runs = session is None or not session.model.cannot_run
        choices = {}
        if step is SCORE:
            choices = {"metric": _metrics(session), "schemes": _schemes(session, self.context.workspace.state.target)}
        form = Form(options, choices, missing=missing, folder=folder_of(session), bundled=bundled, model=model)
        _show_known_count(form, session)
        if step.costs is not None and runs:
            ForecastLine(form, lambda value, *then: ask(FORECAST.request(session, step.request(None, value)), *then))

        def lacking(value: Any) -> tuple[str, str]:
            if session is None:
                return "", ""
            running = running_steps(self.context.jobs)  # its request is prepared when its turn comes
            return step_keys.missing(session, (each for each in step.wants(session, value) if each.step not in running))

        dialog = dialogs.FormDialog(
            self.window.widget, step.title, step.summary, form, start, lacking, self.context.trigger
        )  # fmt: skip
        result = await dialogs.finished(dialog)
        self.context.runner.drop(FORECAST)
        if result != QDialog.DialogCode.Accepted:
            return None
        answer: O = form.value()
        self._last[step.options] = self._last[step.options, model and model.fingerprint] = answer
        return step.request(self.session, answer)

    def first(self, step: Step[O, R], options: O | None = None) -> O:
        """Return what a step's form starts with: ``options``, default the step's own, and what was typed last."""
        session = self.context.workspace.state.session
        if options is None:
            options = step.options() if step.first is None else in_fields(step.first(self.session))
        if not getattr(options, "data", "known"):
            options = self._remembered(options, (step.options, session and session.model.fingerprint), OF_MODEL)
        data = role(settings.role()).data
        if session and "data" in step.missing(session, options) and data in offered_data(session.model):
            options = replace(options, data=data)  # type: ignore[type-var]
        if step.options is EVALUATE.options and session is not None:  # few samples there, few here
            options = self._remembered(options, (CALIBRATE.options, session.model.fingerprint), ("samples",))
        runs = session is None or not session.model.cannot_run
        known: O = self._remembered(options, step.options, [each for each in REMEMBERED if runs or each != "metric"])
        return known

    def _remembered(self, options: Any, place: object, shown_again: Sequence[str]) -> Any:
        last = self._last.get(place)
        if last is None:
            return options
        names = {item.name for item in fields(options)}
        return replace(options, **{name: getattr(last, name) for name in shown_again if name in names})


def _show_known_count(form: Form, session: Session | None) -> None:
    """Say how many samples all are, where they are those of the calibration."""
    samples, held = form.widgets.get("samples"), session and session.calibration
    if isinstance(samples, NumberField) and "data" not in form.widgets and held:
        samples.show_count(held.samples)


def _metrics(session: Session | None) -> tuple[Choice, ...]:
    """Return the metrics of scores as the rest of the window calls them for the session's model."""
    units = {name: shown_unit(session, name) for name in SCORED}
    return tuple(
        Choice(name, f"{tr(metric_title(name, unit))} ({tr(short_unit(unit) or unit)})") for name, unit in units.items()
    )


def _schemes(session: Session | None, target: str) -> tuple[Choice, ...]:
    """Return the schemes to score, with the layers that the target refuses them: their columns cannot be used there."""
    listed = scheme_choices()
    if session is None or not target:
        return listed
    refused, count = refused_layers(session.model.layers, target, [each.value for each in listed])
    return tuple(
        replace(each, label=f"{each.label} · refused in {number} of {count} layers") if number else each
        for each, number in zip(listed, refused.values(), strict=True)
    )


def folder_of(session: Session | None) -> str:
    """Return the folder of the session's model, where its data may be as well; empty where it is on no disk."""
    place = Path(session.model.source.path) if session is not None else Path()
    folder = place if os.path.isdir(place) else place.parent
    return str(folder) if session is not None and folder.is_absolute() and os.path.isdir(folder) else ""

"""Checks of the predicted losses: measuring where they leave a decision open, and whether a plan's losses add up."""

from __future__ import annotations

from dataclasses import replace

from workbench.gui.commands.command_group import CommandGroup, fields_of
from workbench.gui.commands.work import data_of
from workbench.gui.shell import options
from workbench.session.workspace import State
from workbench.steps.audits import AuditPlan, RefineTable

PREDICTED, MEASURED = "predicted_kl", "measured_kl"


def why_no_refinement(state: State) -> str | None:
    """Return why close decisions cannot be measured now; None if they can."""
    session = state.session
    if session is None:
        return "Open a model first"
    if session.model.cannot_run:
        return session.model.cannot_run
    if PREDICTED not in session.sensitivities:
        return "Compute the sensitivity by predicted KL first (F6)"
    return None if session.calibration is not None else "Calibrate first (F5)"


class CheckCommands(CommandGroup):
    """What the menu Run checks."""

    def refine(self) -> None:
        """Ask and measure the cells whose decision is close."""
        self.context.tasks.start(self._refining())

    async def _refining(self) -> None:
        earlier = self._session.sensitivities.get(MEASURED)  # of as many samples, the run goes on from it
        bits = self.window.panels["plan"].wanted_bits()
        given = self._remembered(
            options.RefineOptions(bits_per_weight=bits, samples=None if earlier is None else earlier.samples)
        )
        form = await self._ask(given, "Refine close decisions", options.REFINE_TEXT, "Measure")
        if form is None:
            return
        before = self.context.workspace.state.metric
        await self._measuring(RefineTable(session=self._session, **fields_of(form)), before)

    async def _measuring(self, request: RefineTable, before: str) -> None:
        """Show the table while it grows; then the metric that was shown before, and how well the two agree.

        A table of few cells is not what a plan is summed and searched with: the refined one, which has them in it, is.
        """
        workspace = self.context.workspace
        workspace.show_metric(MEASURED)
        found = await self.context.runner.work(request, again=lambda: self._measure_again(request, before))
        if workspace.state.session is not None:
            workspace.show_metric(before)
        if found is not None:
            self.context.messages.say(
                "Close decisions are measured", "choose Refined KL in Sensitivity to search with them"
            )
            self.window.show_panel("agreement")

    def _measure_again(self, request: RefineTable, before: str) -> None:
        if self.context.workspace.state.session is not None:
            self.context.tasks.start(self._measuring(replace(request, session=self._session), before))

    def audit(self) -> None:
        """Ask and measure whether the losses of the plan's layers add up."""
        self.context.tasks.start(self._asking_for_audit())

    async def _asking_for_audit(self) -> None:
        given = self._remembered(options.AuditOptions(data=data_of(self._session, "evaluation")))
        form = await self._ask(given, "Audit the plan", options.AUDIT_TEXT, "Audit")
        if form is not None:
            values = {**fields_of(form), "data": form.data or None}
            await self._auditing(AuditPlan(session=self._session, **values))

    async def _auditing(self, request: AuditPlan) -> None:
        found = await self.context.runner.work(request, again=lambda: self._audit_again(request))
        if found is not None:
            self.context.messages.say(f"Audit of “{found.plan_name}”", found.audit.sentence())
            self.window.show_panel("accuracy")
            self.window.panels["accuracy"].show_audit()

    def _audit_again(self, request: AuditPlan) -> None:
        if self.context.workspace.state.session is not None:
            self.context.tasks.start(self._auditing(replace(request, session=self._session)))

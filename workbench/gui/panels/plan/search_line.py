"""The search: a budget, its unit, the button, and why there is no plan within the budget."""

from __future__ import annotations

from PySide6.QtWidgets import QAbstractSpinBox

from workbench.gui.panels.panel import PanelPart
from workbench.gui.shell.number_field import NumberField
from workbench.gui.shell.widgets import button, combo, fill, fitted, label, named, page, row
from workbench.gui.shell.words import tr
from workbench.insight.plan_differences import smallest_batch_time
from workbench.insight.quantities import short
from workbench.insight.sums import left_out
from workbench.session.budget import HIGHEST, LOWEST, Budget, BudgetUnit
from workbench.session.workspace import State

WIDTH = 96

GOALS = {BudgetUnit.LOSS: "size"}
"""What a search minimises within a budget, where that is not the predicted loss."""

STEPS = QAbstractSpinBox.StepType
SMALLEST = "Search within the smallest budget for which there is a plan"


class SearchLine(PanelPart):
    """Writes the budget into the document's view state, where the action Search reads it."""

    def _build(self) -> None:
        self.budget = named(NumberField(LOWEST, HIGHEST, Budget().amount, decimals=9, step=0.25), "Budget")
        self.budget.setMaximumWidth(WIDTH)
        self.unit = combo("Unit of the budget", list(BudgetUnit), self._unit_chosen, letters=13)
        self.unit.view().setMinimumWidth(self.unit.sizeHint().width() + 40)
        self.button = button("&Search", lambda: self.context.trigger("search"), role="primary")
        self.refused = fitted(role="error", name="Reason that no plan fits the budget")
        self.smallest = button("", self._take_smallest, SMALLEST, name="Use the smallest budget")
        self.failure = page(row(self.refused, self.smallest, stretch=self.refused), top=0)
        self.failure.hide()
        self.budget.changed.connect(self._typed)
        self.budget.entered.connect(lambda: self.button.click())
        self.title = label("&Budget", buddy=self.budget)
        self.left_out = fitted(name="Layers that a search leaves out")
        line = row(self.title, self.budget, self.unit, self.button, self.left_out, stretch=self.left_out)
        fill(self, line, self.failure, top=0)

    def redraw(self, old: State, new: State) -> None:
        budget = new.budget
        if self.budget.problem and not budget.problem:
            self.budget.restore()
        if self.budget.number != budget.amount:
            self.budget.setValue(budget.amount)
        self.unit.setCurrentIndex(self.unit.findData(budget.unit))
        bits = budget.unit is BudgetUnit.BITS_PER_WEIGHT
        self.budget.setStepType(STEPS.DefaultStepType if bits else STEPS.AdaptiveDecimalStepType)
        problem = new.search_error or budget.problem
        self._show_failure(f"{problem[:1].upper()}{problem[1:]}", new.smallest_budget)
        scored = new.session is None or new.session.table(new.metric) is not None
        tip = f"Find the plan of the least {GOALS.get(budget.unit, 'predicted loss')} within the budget (F7)"
        self.left_out.say(*left_out(new))
        self.button.setEnabled(scored)
        self.button.setToolTip(tr(tip if scored else "Compute the sensitivity first (F6)"))

    def _show_failure(self, problem: str, smallest: float | None) -> None:
        """Show a failed search's reason, shortened to what fits, and the smallest budget that a plan fits."""
        problem = tr(problem)
        head = problem.partition(":")[0]
        least = "" if smallest is None else f"; the smallest possible with the scored schemes is {short(smallest)}"
        brief = f"{head}{least}"
        self.refused.say(*dict.fromkeys((problem, brief, head)))
        self.smallest.setText(tr("&Use {:g}").format(smallest) if smallest is not None else "")
        self.smallest.setVisible(smallest is not None)
        for widget in (self.failure, self.refused):
            widget.setVisible(bool(problem))

    def _take_smallest(self) -> None:
        if self.state.smallest_budget is not None:
            self.context.workspace.show_budget(Budget(amount=self.state.smallest_budget, unit=self.state.budget.unit))
            self.context.trigger("search")

    def _typed(self) -> None:
        unit, amount = self.state.budget.unit, self.budget.number or self.budget.value()
        self.context.workspace.show_budget(Budget(amount=amount, unit=unit, problem=self.budget.problem))

    def _unit_chosen(self) -> None:
        unit, totals = BudgetUnit(self.unit.currentData()), self.state.totals
        amount: float | None = self.budget.value()
        if totals is not None and self.state.session is not None:
            time = smallest_batch_time(self.state.session, self.state.assignments)
            amount = {
                BudgetUnit.BITS_PER_WEIGHT: totals.bits_per_weight, BudgetUnit.MEGABYTES: totals.nbytes / 1e6,
                BudgetUnit.LOSS: totals.predicted, BudgetUnit.MICROSECONDS: time.microseconds if time else None,
            }[unit]  # fmt: skip
        self.context.workspace.show_budget(Budget(amount=float(f"{amount or 1.0:.4g}"), unit=unit))

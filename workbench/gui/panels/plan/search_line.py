"""The search: a budget, its unit, the button, and why there is no plan within the budget."""

from __future__ import annotations

from workbench.gui.panels.panel import PanelPart
from workbench.gui.shell.number_field import NumberField
from workbench.gui.shell.widgets import button, combo, fill, label, named, row
from workbench.session.workspace import Budget, BudgetUnit, State

LOWEST, HIGHEST = 0.01, 1e6


class SearchLine(PanelPart):
    """Writes the budget into the document's view state, where the action Search reads it."""

    def _build(self) -> None:
        self.budget = named(NumberField(LOWEST, HIGHEST, Budget().amount, decimals=3, step=0.25), "Budget")
        self.unit = combo("Unit of the budget", list(BudgetUnit), self._unit_chosen)
        self.button = button("&Search", lambda: self.context.trigger("search"), role="primary")
        self.refused = label(role="error", name="Why there is no plan within the budget", wrap=True)
        self.refused.hide()
        self.budget.changed.connect(self._typed)
        self.budget.entered.connect(lambda: self.button.click())
        title = label("&Budget", buddy=self.budget)
        fill(self, row(title, self.budget, self.unit, self.button, None), self.refused, top=0)

    def redraw(self, old: State, new: State) -> None:
        budget = new.budget
        if self.budget.problem and not budget.problem:
            self.budget.restore()
        if self.budget.number != budget.amount:
            self.budget.setValue(budget.amount)
        self.unit.setCurrentText(budget.unit)
        problem = new.search_error or budget.problem
        self.refused.setText(f"{problem[:1].upper()}{problem[1:]}")
        self.refused.setVisible(bool(problem))
        scored = new.session is None or new.session.table(new.metric) is not None
        tip = "Find the plan of the least predicted loss within the budget (F7)"
        self.button.setEnabled(scored)
        self.button.setToolTip(tip if scored else "Compute the sensitivity first (F6)")

    def _typed(self) -> None:
        unit, amount = self.state.budget.unit, self.budget.number or self.budget.value()
        self.context.workspace.show_budget(Budget(amount=amount, unit=unit, problem=self.budget.problem))

    def _unit_chosen(self) -> None:
        unit, totals = BudgetUnit(self.unit.currentText()), self.state.totals
        amount = self.budget.value()
        if totals is not None:
            amount = totals.bits_per_weight if unit is BudgetUnit.BITS_PER_WEIGHT else totals.nbytes / 1e6
        self.context.workspace.show_budget(Budget(amount=round(amount, 3), unit=unit))

"""The best plan of every target within the budget, side by side, one of which the user takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QDialogButtonBox, QWidget

from workbench.gui.shell.dialogs import Popup
from workbench.gui.shell.widgets import fill_dialog, label
from workbench.gui.shell.words import tr
from workbench.gui.tables.fields import METRIC_UNIT, Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.steps.targets import TargetPlan

FIELDS = (
    Field("Target", lambda row: row.title),
    Number("Predicted loss", lambda row: row.loss, unit=METRIC_UNIT,
           tip="Of the best plan; what the target's own rounding of inputs adds counts where it is known"),
    Number("Tensors", lambda row: row.nbytes / 1e6 if row.plan else None, unit="MB",
           tip="The bytes of all tensors in the target's own form"),
    Number("Bits per weight", lambda row: row.bits_per_weight, tip="Over the layers that the target quantizes"),
    Field("Remark", lambda row: row.reason or row.remark, words=True),
)  # fmt: skip
SIZE = 980, 420


class BestTarget(Popup):
    """Targets with the best one selected; ``use(row)`` takes the selected one's plan, as a double click does."""

    def __init__(
        self, parent: QWidget, rows: Sequence[TargetPlan], unit: str, budget: str, use: Callable[[TargetPlan], object]
    ) -> None:
        super().__init__(parent, "best-target", "Best target for this budget")
        self._use = use
        self.table = RecordsView("Targets", FIELDS, lambda row: row.target)
        self.table.setSelectionMode(RecordsView.SelectionMode.SingleSelection)
        self.table.horizontalHeader().setStretchLastSection(True)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.use_button = buttons.addButton(tr("&Use This Target and Plan"), QDialogButtonBox.ButtonRole.ActionRole)
        self.use_button.setProperty("role", "primary")
        self.use_button.clicked.connect(self.take)
        buttons.rejected.connect(self.reject)
        note = label(tr("The best plan of every target within {}, by the scored schemes that it runs.").format(budget),
                     "muted", wrap=True)  # fmt: skip
        fill_dialog(self, note, self.table, buttons, stretch=self.table)
        self.table.show_records(rows, unit)
        self.table.resizeColumnsToContents()
        self.table.selectionModel().selectionChanged.connect(self._allow)
        self.table.doubleClicked.connect(lambda _: self.take())
        self.table.selectRow(0)
        self._allow()
        self.resize(*SIZE)

    def chosen(self) -> TargetPlan | None:
        """Return the selected target if it has a plan."""
        rows = [self.table.records.record(row) for row in self.table.selected_rows()]
        return rows[0] if len(rows) == 1 and rows[0].plan is not None else None

    def take(self) -> None:
        """Use the selected target's plan, and close."""
        row = self.chosen()
        if row is not None:
            self._use(row)
            self.accept()

    def _allow(self) -> None:
        self.use_button.setEnabled(self.chosen() is not None)

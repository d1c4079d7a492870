"""A card: one form of the plan, with what it holds, its size, who loads it and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QFrame, QPushButton, QSizePolicy

from workbench.gui.shell.copying import offer_copy, put
from workbench.gui.shell.foreign import as_spoken
from workbench.gui.shell.widgets import button, column, fill, fitted, label, named, row, set_role
from workbench.gui.shell.words import tr
from workbench.insight import quantities
from workbench.insight.deployments import Deployment, Form

SIZE_TIP = "Bytes of all tensors in this form; names, settings and the tokenizer come on top"
REPAIR_TIP = "Give refused layers the nearest scheme that it runs"


class Head(QPushButton):
    """The lines of a card, and the button that chooses it."""

    def sizeHint(self) -> QSize:
        layout = self.layout()
        return super().sizeHint() if layout is None else layout.sizeHint()

    def minimumSizeHint(self) -> QSize:
        layout = self.layout()
        return super().minimumSizeHint() if layout is None else layout.minimumSize()


class Card(QFrame):
    """The head of a form, and *Repair* where its runtime refuses layers; the chosen card holds the fields as well."""

    def __init__(self, form: Form, repair: Callable[[Form], object]) -> None:
        super().__init__()
        self.setObjectName("card")
        self.form = form
        self.loads, self.state, self.holds = fitted(form.loads), fitted(role="figure"), fitted()
        self.state.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)  # the rest is for ``loads``
        first = row(label(form.title, "heading"), self.loads, self.state, stretch=self.loads)
        first.setSpacing(12)
        lines = column(first, self.holds)
        lines.setContentsMargins(6, 4, 6, 4)
        lines.setSpacing(1)
        self.head = Head()
        self.head.setProperty("role", "card")
        self.head.setCheckable(True)
        self.head.setLayout(lines)
        self.head.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)  # buttons are never narrower
        self.copied = ""
        offer_copy(self.head, "&Copy the Card", lambda: put(self.copied))
        self.repair = button("Repair", partial(repair, form), REPAIR_TIP, name=f"Repair for {form.title}")
        whole = row(self.head, self.repair, stretch=self.head)
        whole.setContentsMargins(0, 0, 6, 0)
        fill(self, whole, top=0, gap=0)

    def show_deployment(self, each: Deployment) -> None:
        """Show what a plan is in this form."""
        size = quantities.data_size(each.nbytes) if each.is_possible else ""
        whole = f"{size} of tensors" if size else each.verdict if each.unfit else f"⚠ {tr(each.verdict)}"
        self.state.say(whole, *filter(None, (size,)))
        set_role(self.state, "figure" if size else "muted" if each.unfit else "error")
        self.state.setToolTip(SIZE_TIP if size else each.reasons)
        self.holds.setText(each.holds if size else each.reasons.partition("\n")[0])
        set_role(self.holds, "error" if each.refused and not each.unfit else "muted")
        self.repair.setVisible(bool(each.refused) and not each.unfit)
        words = (each.form.loads, each.holds if size else each.reasons)
        self.copied = "\n".join((f"{each.form.title}: {size or each.verdict}", *words))
        named(self.head, f"{tr(each.form.title)}: {size or tr(each.verdict)}", "\n".join(map(tr, words)))
        self.head.setAccessibleDescription(as_spoken("\n".join(map(tr, words))))

"""The plan's transforms: rewrites of the floating-point model before rounding, corrections after it, in their order."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QListWidget, QListWidgetItem

from workbench.gui.panels.panel import PanelPart
from workbench.gui.shell.widgets import button, fill, label, named, row
from workbench.gui.shell.words import tr
from workbench.planning.transform_names import CORRECTIONS, KNOWN, rotation_seed
from workbench.session.workspace import State

TITLES = {
    "fold-norms": ("Fold norms", "Norms and batch norms go into the layers behind them; needs no data"),
    "equalize": ("Equalize", "Evens out the ranges of channels between neighbouring layers; needs no data"),
    "awq": ("AWQ", "Scales the weights of channels with large inputs up; uses the calibration data"),
    "smoothquant": ("SmoothQuant", "Moves outliers from inputs into weights; uses the calibration data"),
    "rotation": ("Rotation", "Rotates the heads, and the residual stream where that is predicted to gain"),
    "rotation-heads": ("Rotation of heads", "Rotates values within each attention head; needs no data"),
    "online-rotation": (
        "Rotation while running",
        "Rotates inputs behind activation functions; compressed-tensors folders alone can say so",
    ),
    "bias-correction": ("Bias correction", "Corrects the mean error of each output; uses the calibration data"),
    "norm-reestimation": ("Norm re-estimation", "Takes batch norms' statistics again; uses the calibration data"),
}
"""The name that users read for each transform, and what it does."""

TEXT = (
    "The outputs of the floating-point model stay the same; rounding then costs less. Carried out when the plan is "
    "evaluated or exported, from top to bottom."
)


class PlanTransforms(PanelPart):
    """A list to tick, with the plan's own first; each change is one undoable step."""

    def _build(self) -> None:
        self._shown: tuple[str, ...] | None = None
        self._filling = False
        self.list = named(QListWidget(), "Transforms of the plan")
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setSpacing(2)
        self.list.itemChanged.connect(self._ticked)
        self.list.currentRowChanged.connect(lambda _: self._enable())
        self.up = button("Move &Up", lambda: self._move(-1), "Carry the transform out earlier")
        self.down = button("Move &Down", lambda: self._move(1), "Carry the transform out later")
        text, buttons = label(TEXT, "muted", wrap=True), row(self.up, self.down, None)
        fill(self, text, self.list, buttons, stretch=self.list)

    def redraw(self, old: State, new: State) -> None:
        """Show the transforms of the session's plan, its own first."""
        chosen = new.session.plan.transforms if new.session else ()
        if chosen == self._shown:
            return
        current = self.list.currentItem()
        name_before = current.data(Qt.ItemDataRole.UserRole) if current is not None else ""
        names = (*chosen, *(name for name in KNOWN if name not in chosen))
        self._shown, self._filling = chosen, True
        self.list.clear()
        for name in names:
            title, tip = _title(name)
            item = QListWidgetItem(f"{title} – {tip}" if tip else title, self.list)
            item.setData(Qt.ItemDataRole.UserRole, name)
            item.setToolTip(tip)
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(Qt.CheckState.Checked if name in chosen else Qt.CheckState.Unchecked)
        self.list.setCurrentRow(names.index(name_before) if name_before in names else 0)
        self._filling = False
        self._enable()

    def _ticked(self, item: QListWidgetItem) -> None:
        """Add a transform in the usual order among the others, or remove it."""
        session = self.state.session
        if self._filling or session is None:
            return
        name, present = str(item.data(Qt.ItemDataRole.UserRole)), session.plan.transforms
        if item.checkState() is not Qt.CheckState.Checked:
            self._set(f"Remove the transform {name}", tuple(other for other in present if other != name))
        elif name not in present:
            at = next((at for at, other in enumerate(present) if _rank(other) > _rank(name)), len(present))
            self._set(f"Add the transform {name}", (*present[:at], name, *present[at:]))

    def _move(self, step: int) -> None:
        session, at = self.state.session, self.list.currentRow()
        if session is not None and self._can_move(at, step):
            names = list(session.plan.transforms)
            names.insert(at + step, names.pop(at))
            self._set(f"Move the transform {names[at + step]}", tuple(names))

    def _can_move(self, at: int, step: int) -> bool:
        count = len(self._shown or ())
        return 0 <= at < count and 0 <= at + step < count

    def _enable(self) -> None:
        self.up.setEnabled(self._can_move(self.list.currentRow(), -1))
        self.down.setEnabled(self._can_move(self.list.currentRow(), 1))

    def _set(self, title: str, names: tuple[str, ...]) -> None:
        self.context.workspace.edit(title, lambda now: replace(now, plan=replace(now.plan, transforms=names)))


def _rank(name: str) -> int:
    plain = "rotation" if rotation_seed(name) is not None else name
    return KNOWN.index(plain) if plain in KNOWN else KNOWN.index(CORRECTIONS[0])


def _title(name: str) -> tuple[str, str]:
    seed = rotation_seed(name)
    if seed is not None:
        return tr("{}, seed {}").format(tr(TITLES["rotation"][0]), seed), tr(TITLES["rotation"][1])
    title, tip = TITLES.get(name, (name, ""))
    return tr(title), tr(tip)

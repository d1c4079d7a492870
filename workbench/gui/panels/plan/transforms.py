"""The plan's transforms: rewrites of the floating-point model before rounding, corrections after it, in their order."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QListWidget, QListWidgetItem, QPushButton, QVBoxLayout

from workbench.gui.context.context import Context
from workbench.gui.panels.panel import PanelPart
from workbench.planning.transform_names import CORRECTIONS, KNOWN, rotation_seed
from workbench.session.workspace import State

TITLES = {
    "fold-norms": ("Fold norms", "Norms and batch norms go into the layers behind them; needs no data"),
    "equalize": ("Equalize", "Evens out the ranges of channels between neighbouring layers; needs no data"),
    "awq": ("AWQ", "Scales the weights of channels with large inputs up; uses the calibration data"),
    "smoothquant": ("SmoothQuant", "Moves outliers from inputs into weights; uses the calibration data"),
    "rotation": ("Rotation", "Rotates the heads, and the residual stream where that is predicted to gain"),
    "rotation-heads": ("Rotation of heads", "Rotates values within each attention head; needs no data"),
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

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._shown: tuple[str, ...] | None = None
        self._filling = False
        self.list = QListWidget()
        self.list.setAccessibleName("Transforms of the plan")
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.itemChanged.connect(self._ticked)
        self.list.currentRowChanged.connect(lambda _: self._enable())
        text = QLabel(TEXT)
        text.setProperty("role", "muted")
        text.setWordWrap(True)
        self.up, self.down = QPushButton("Move &Up"), QPushButton("Move &Down")
        self.up.setToolTip("Carry the transform out earlier")
        self.down.setToolTip("Carry the transform out later")
        self.up.clicked.connect(lambda: self._move(-1))
        self.down.clicked.connect(lambda: self._move(1))
        buttons, layout = QHBoxLayout(), QVBoxLayout(self)
        for button in (self.up, self.down):
            buttons.addWidget(button)
        buttons.addStretch(1)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.addWidget(text)
        layout.addWidget(self.list, 1)
        layout.addLayout(buttons)
        self.setFocusProxy(self.list)

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
        """Add a transform in the usual order among the others, or take it out."""
        session = self.state.session
        if self._filling or session is None:
            return
        name, held = str(item.data(Qt.ItemDataRole.UserRole)), session.plan.transforms
        if item.checkState() is not Qt.CheckState.Checked:
            self._set(f"Remove the transform {name}", tuple(one for one in held if one != name))
        elif name not in held:
            later = [at for at, one in enumerate(held) if _rank(one) > _rank(name)]
            at = later[0] if later else len(held)
            self._set(f"Add the transform {name}", (*held[:at], name, *held[at:]))

    def _move(self, step: int) -> None:
        session, at = self.state.session, self.list.currentRow()
        if session is None or not self._can_move(at, step):
            return
        held = list(session.plan.transforms)
        held.insert(at + step, held.pop(at))
        self._set(f"Move the transform {held[at + step]}", tuple(held))

    def _can_move(self, at: int, step: int) -> bool:
        held = self._shown or ()
        return 0 <= at < len(held) and 0 <= at + step < len(held)

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
        return f"{TITLES['rotation'][0]}, seed {seed}", TITLES["rotation"][1]
    return TITLES.get(name, (name, ""))

"""The page before a model is open: ways to start."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QButtonGroup, QGridLayout, QMenu, QProgressBar, QPushButton, QVBoxLayout, QWidget

from workbench.engine.jobs import JobView
from workbench.gui.shell import icons, settings
from workbench.gui.shell.foreign import as_line, isolated
from workbench.gui.shell.theme import Colours
from workbench.gui.shell.widgets import button, fill_dialog, fitted, label, named, row
from workbench.gui.shell.words import tr
from workbench.insight.roles import ROLES, Role, role

WIDTH = 480
SHARES, BAR_HEIGHT = 1000, 6
"""Steps of the bar while a model opens, and its pixels."""

INTRODUCTION = (
    "Open a model to see the weights of every layer and the cost of every number format, and to build a "
    "mixed-precision plan. You can also drop a file or folder here."
)


class StartPage(QWidget):
    """Large buttons that call ``trigger(action id)`` and ``open_path(path)``; ``choose(role)`` gets the choice."""

    def __init__(
        self, colours: Colours, trigger: Callable[[str], None], open_path: Callable[[str], None],
        choose: Callable[[Role], object],
    ) -> None:  # fmt: skip
        super().__init__()
        purpose = label("What is the model for?", "heading")
        self.roles = self._roles(choose)
        self._build_buttons(trigger)
        self._recent = label(name="Recent files", rich=True)
        self._recent.setTextInteractionFlags(
            Qt.TextInteractionFlag.LinksAccessibleByMouse | Qt.TextInteractionFlag.LinksAccessibleByKeyboard
        )
        self._recent.linkActivated.connect(open_path)
        self.opening = fitted(role="", name="What is being opened")
        self.opened = named(QProgressBar(), "Share of the model that is open")
        self.opened.setRange(0, SHARES)
        self.opened.setTextVisible(False)  # no colour can be read on both halves of it
        self.opened.setFixedHeight(BAR_HEIGHT)
        self._middle = middle = QWidget()
        self._content = content = fill_dialog(
            middle, label("Quantization Workbench", "title"), label(INTRODUCTION, "muted", wrap=True), purpose,
            self.roles, self._role_text, self.model_button, self.session_button, self.demo_button, self.opening,
            self.opened, self._recent,
        )  # fmt: skip
        content.setSpacing(10)
        content.insertSpacing(2, 10)
        content.insertSpacing(6, 10)
        outer = QVBoxLayout(self)
        outer.addStretch(2)
        outer.addLayout(row(None, middle, None))  # not an alignment, with which wrapped texts get too little height
        outer.addStretch(3)
        self.recolour(colours)
        self.show_opening(None)

    def _build_buttons(self, trigger: Callable[[str], None]) -> None:
        """Make the large buttons."""
        kinds = "A Hugging Face folder, .safetensors, .gguf, .onnx, .pt2 or Python file"
        self.model_button = _large("Open a &model…", kinds, self._choose_model)
        self.menu = QMenu(self.model_button)
        self.menu.addAction(isolated(tr("Model F&older…")), lambda: trigger("open_folder"))
        self.menu.addAction(isolated(tr("Model &File…")), lambda: trigger("open_file"))
        self.session_button = _large(
            "Open a &session…", "A .qwb file with all earlier results", lambda: trigger("open_session")
        )
        self.demo_button = _large(
            "Open the &demo", "A small language model with data; opens in seconds", lambda: trigger("open_demo")
        )

    def show_opening(self, job: JobView | None) -> None:
        """Show how far the job that opens a model or session is; None: there is none."""
        self.opening.setVisible(job is not None)
        self.opened.setVisible(job is not None)
        if job is not None:
            self.opening.setText(f"{tr(job.title)} – {tr(job.text)}" if job.text else tr(job.title))
            self.opened.setValue(round(SHARES * job.fraction))

    def showEvent(self, event: QShowEvent) -> None:
        """Make the page as wide as the longest text of a button, in the window's style; the keyboard opens a model."""
        super().showEvent(event)
        buttons = (self.model_button, self.session_button, self.demo_button)
        margins = self._content.contentsMargins()
        widest = max(each.sizeHint().width() for each in buttons) + margins.left() + margins.right()
        self._middle.setFixedWidth(max(WIDTH, widest))
        self.model_button.setFocus()  # what comes next, not the first of the roles

    def _roles(self, choose: Callable[[Role], object]) -> QGridLayout:
        """Return the roles as buttons of which one is down, two in a row."""
        grid, self.role_buttons = QGridLayout(), QButtonGroup(self)
        grid.setSpacing(6)
        self._role_text = label(role="muted", wrap=True)
        for place, each in enumerate(ROLES):
            card = button(each.title, name=each.title, role="choice")
            card.setCheckable(True)
            card.setChecked(each is role(settings.role()))
            if not card.isChecked():
                card.setFocusPolicy(Qt.FocusPolicy.ClickFocus)  # as Qt has it from then on: arrows reach the others
            card.setAccessibleDescription(tr(each.text))
            self.role_buttons.addButton(card, place)
            grid.addWidget(card, *divmod(place, 2))
        self.role_buttons.idClicked.connect(lambda place: self._choose(choose))
        self._show_role()
        return grid

    def recolour(self, colours: Colours) -> None:
        for widget, name in ((self.model_button, "open"), (self.session_button, "session"), (self.demo_button, "demo")):
            widget.setIcon(icons.icon(name, colours))
        self._link = colours.accent

    def show_recent(self, paths: list[str]) -> None:
        """List recent files."""
        links = "".join(
            f'<br><a style="color:{self._link};text-decoration:none" href="{escape(path)}">'
            f"{escape(as_line(Path(path).name))}</a>&nbsp; {escape(as_line(str(Path(path).parent)))}"
            for path in paths[:5]
        )
        self._recent.setText(f"<b>{tr('Recent')}</b>{links}")
        self._recent.setVisible(bool(links))  # an empty one would take the keyboard, too

    def _choose(self, choose: Callable[[Role], object]) -> None:
        self._show_role()
        choose(self.role)

    @property
    def role(self) -> Role:
        """The role that is chosen."""
        return ROLES[self.role_buttons.checkedId()]

    def _show_role(self) -> None:
        self._role_text.setText(tr(self.role.text))

    def _choose_model(self) -> None:
        self.menu.popup(self.model_button.mapToGlobal(self.model_button.rect().bottomLeft()))


def _large(text: str, explanation: str, clicked: Callable[[], object]) -> QPushButton:
    text, explanation = tr(text), tr(explanation)
    widget = button(f"{text}\n{explanation}", clicked, name=text.replace("&", ""), role="big")
    widget.setIconSize(QSize(24, 24))
    widget.setFixedHeight(3 * widget.fontMetrics().height() + 14)
    widget.setAccessibleDescription(explanation)
    return widget

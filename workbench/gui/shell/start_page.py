"""What is seen before a model is open: what to do next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QLabel, QMenu, QPushButton, QVBoxLayout, QWidget

from workbench.gui.shell import icons
from workbench.gui.shell.theme import Colours

WIDTH = 460


class StartPage(QWidget):
    """Big buttons in the middle; ``trigger(action id)`` and ``open_path(path)`` do the work."""

    def __init__(self, colours: Colours, trigger: Callable[[str], None], open_path: Callable[[str], None]) -> None:
        super().__init__()
        self._open_path = open_path
        title, text = QLabel("Quantization Workbench"), QLabel(
            "Open a model to see what every layer's weights look like, what each number format would cost, "
            "and to build a mixed-precision plan. You can also drop a file or folder here."
        )  # fmt: skip
        title.setProperty("role", "title")
        text.setProperty("role", "muted")
        text.setWordWrap(True)
        self.model_button = self._big("Open a &model…", "A Hugging Face folder, .safetensors, .pt2 or a Python file")
        self.menu = QMenu(self.model_button)
        self.menu.addAction("Model f&older…", lambda: trigger("open_folder"))
        self.menu.addAction("Model &file…", lambda: trigger("open_file"))
        self.model_button.clicked.connect(self._choose_model)
        self.session_button = self._big("Open a &session…", "A .qwb file with everything computed before")
        self.session_button.clicked.connect(lambda: trigger("open_session"))
        self.demo_button = self._big("Open the &demo", "A small language model with its data; shown in seconds")
        self.demo_button.clicked.connect(lambda: trigger("open_demo"))
        self._recent = QLabel()
        self._recent.setTextInteractionFlags(
            Qt.TextInteractionFlag.LinksAccessibleByMouse | Qt.TextInteractionFlag.LinksAccessibleByKeyboard
        )
        self._recent.linkActivated.connect(self._open_path)
        self._recent.setAccessibleName("Recent files")
        middle = QWidget()
        middle.setFixedWidth(WIDTH)
        column = QVBoxLayout(middle)
        column.setSpacing(10)
        for widget in (title, text, self.model_button, self.session_button, self.demo_button, self._recent):
            column.addWidget(widget)
        column.insertSpacing(2, 10)
        outer = QVBoxLayout(self)
        outer.addStretch(2)
        outer.addWidget(middle, 0, Qt.AlignmentFlag.AlignHCenter)
        outer.addStretch(3)
        self.recolour(colours)

    def recolour(self, colours: Colours) -> None:
        """Draw the icons in other colours."""
        for button, name in ((self.model_button, "open"), (self.session_button, "save"), (self.demo_button, "demo")):
            button.setIcon(icons.icon(name, colours))
        self._link = colours.accent

    def show_recent(self, paths: list[str]) -> None:
        """List recent files."""
        links = "".join(
            f'<br><a style="color:{self._link};text-decoration:none" href="{_escaped(path)}">'
            f"{_escaped(Path(path).name)}</a>"
            f"&nbsp; {_escaped(str(Path(path).parent))}"
            for path in paths[:5]
        )
        self._recent.setText(f"<b>Recent</b>{links}" if links else "")

    def _choose_model(self) -> None:
        self.menu.popup(self.model_button.mapToGlobal(self.model_button.rect().bottomLeft()))

    def _big(self, text: str, tip: str) -> QPushButton:
        button = QPushButton(f"{text}\n{tip}")
        button.setProperty("role", "big")
        button.setIconSize(QSize(24, 24))
        button.setFixedHeight(3 * button.fontMetrics().height() + 14)
        button.setAccessibleName(text.replace("&", ""))
        button.setAccessibleDescription(tip)
        return button


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")

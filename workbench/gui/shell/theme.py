"""Light and dark palettes on the Fusion style, so that the window looks the same on every platform."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QStyleFactory

POINT_SIZE = 9.0

STYLED = "workbench-styled"
"""The application's property once it has the Fusion style and the font."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Colours:
    """Every colour of the window, by what it is for (``#rrggbb``).  ``series`` is safe for colour-blind people."""

    dark: bool
    window: str
    base: str
    alternate: str
    raised: str
    text: str
    muted: str
    border: str
    frame: str
    accent: str
    on_accent: str
    selection: str
    warning: str
    error: str
    good: str
    baseline: str
    quantized: str
    predicted: str
    series: tuple[str, ...]


LIGHT = Colours(
    dark=False, window="#eef0f3", base="#ffffff", alternate="#f7f8fa", raised="#e4e7ec", text="#1b2027",
    muted="#565f6b", border="#c9ced6", frame="#7f8691", accent="#1f5fbf", on_accent="#ffffff", selection="#d5e4f9",
    warning="#8a5a00", error="#b3261e", good="#1b7340", baseline="#5f6875", quantized="#0067a8", predicted="#b4500a",
    series=("#0067a8", "#b4500a", "#00785a", "#8c3f8c", "#7a6300", "#40464f"),
)  # fmt: skip

DARK = Colours(
    dark=True, window="#20242a", base="#171a1f", alternate="#1b1f25", raised="#2a2f37", text="#e3e7ec",
    muted="#aab4c0", border="#3a414b", frame="#6b7380", accent="#6ba6f8", on_accent="#0d1117", selection="#213b5d",
    warning="#e3b341", error="#ff8a80", good="#6fcf97", baseline="#a3adb9", quantized="#56b4e9", predicted="#f0a04b",
    series=("#56b4e9", "#f0a04b", "#3fc59d", "#d896d8", "#e6d34a", "#d5dae0"),
)  # fmt: skip


FRAMED = ("QPushButton", "QAbstractSpinBox", "QComboBox")
"""Widgets whose frames Fusion draws in the highlight's colour while they have the keyboard; all but the first are
fields, which only their frames show."""

FUSION_DARKER = 140
"""Per cent by which Fusion's frames are darker than the window's colour."""


def choose(setting: str = "system") -> Colours:
    """Return the palette for ``light``, ``dark`` or ``system`` (which follows the desktop).

    Where the desktop asks for high contrast, all text is as strong as the strongest, on one ground, in strong frames.
    """
    hints = QGuiApplication.styleHints()
    scheme = "dark" if hints.colorScheme() == Qt.ColorScheme.Dark else "light"
    chosen = DARK if (scheme if setting == "system" else setting) == "dark" else LIGHT
    if hints.accessibility().contrastPreference() != Qt.ContrastPreference.HighContrast:
        return chosen
    text, base = chosen.text, chosen.base
    return replace(chosen, muted=text, border=text, frame=text, window=base, alternate=base, raised=base)


def apply(app: QApplication, colours: Colours) -> None:
    """Give ``app`` the Fusion style, the palette and the font; the window sets :func:`style_sheet` itself.

    A style sheet of the application goes through every widget, hidden menus of plots too: it takes five times as long.
    """
    if not app.property(STYLED):  # style and font go through every widget: a change of colours needs the palette only
        app.setStyle(QStyleFactory.create("Fusion"))
        app.setFont(interface_font())
        app.setProperty(STYLED, True)
    palette = _palette(colours)
    app.setPalette(palette)
    palette.setColor(QPalette.ColorRole.Highlight, QColor(colours.accent))  # the frame of what has the keyboard
    for kind in FRAMED:
        app.setPalette(palette, kind)  # type: ignore[arg-type]  # it takes text, whatever its stub says
        palette.setColor(QPalette.ColorRole.Window, QColor(colours.frame).lighter(FUSION_DARKER))  # fields' own frame
        palette.setColor(QPalette.ColorRole.Mid, QColor(colours.frame))
        palette.setColor(QPalette.ColorRole.Dark, QColor(colours.frame))


def interface_font() -> QFont:
    """Return the interface's font: the system's family with digits of equal width."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)
    font.setPointSizeF(POINT_SIZE)
    font.setFeature(QFont.Tag("tnum"), 1)
    return font


def style_sheet(colours: Colours) -> str:
    """Return the style sheet with every ``@role`` replaced by its colour."""
    text = (files("workbench_resources") / "style" / "workbench.qss").read_text(encoding="utf-8")
    for role, colour in sorted(asdict(colours).items(), key=lambda item: -len(item[0])):
        if isinstance(colour, str):
            text = text.replace(f"@{role}", colour)
    mark = "check-dark" if colours.dark else "check-light"
    return text.replace(
        "#check#", Path(str(files("workbench_resources"))).joinpath("style", "icons", f"{mark}.svg").as_posix()
    )


def _palette(colours: Colours) -> QPalette:
    role, group = QPalette.ColorRole, QPalette.ColorGroup
    palette = QPalette()
    for name, colour in (
        (role.Window, colours.window), (role.WindowText, colours.text), (role.Base, colours.base),
        (role.AlternateBase, colours.alternate), (role.Text, colours.text), (role.Button, colours.raised),
        (role.ButtonText, colours.text), (role.BrightText, colours.error), (role.Highlight, colours.selection),
        (role.HighlightedText, colours.text), (role.Link, colours.accent), (role.LinkVisited, colours.accent),
        (role.ToolTipBase, colours.raised), (role.ToolTipText, colours.text), (role.PlaceholderText, colours.muted),
        (role.Accent, colours.accent), (role.Light, colours.raised), (role.Midlight, colours.raised),
        (role.Mid, colours.border), (role.Dark, colours.border),
    ):  # fmt: skip
        palette.setColor(name, QColor(colour))
    for name in (role.WindowText, role.Text, role.ButtonText):
        faded = QColor(colours.muted)
        faded.setAlphaF(0.65)
        palette.setColor(group.Disabled, name, faded)
    return palette

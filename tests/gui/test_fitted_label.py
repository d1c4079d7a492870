"""A line that has little room shows a shorter wording or an ellipsis, and tells the whole where the mouse rests."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication

from workbench.gui.shell.fitted_label import FittedLabel

WHOLE, SHORT = "clips 0.00 % · error 0.103 · SQNR 18.7 dB as int8-tensor", "clips 0.00 %"


def label(width: int, explained: str = "") -> FittedLabel:
    """Return a label of that width, in pixels, with two wordings."""
    made = FittedLabel()
    made.setToolTip(explained)
    made.say(WHOLE, SHORT)
    made.resize(width, 20)
    made.show()
    QApplication.processEvents()
    return made


def test_all_is_shown_where_it_fits(qapp: QApplication) -> None:
    made = label(900, "what the words mean")
    assert made.shown == made.text() == WHOLE
    assert made.toolTip() == "what the words mean"
    made.close()


def test_a_shorter_wording_where_the_whole_does_not_fit(qapp: QApplication) -> None:
    made = label(FittedLabel().fontMetrics().horizontalAdvance(SHORT) + 4, "what the words mean")
    assert made.shown == SHORT
    assert made.text() == WHOLE == made.accessibleDescription()
    assert made.toolTip() == f"{WHOLE}\n\nwhat the words mean"
    made.resize(900, 20)
    QApplication.processEvents()
    assert made.shown == WHOLE
    assert made.toolTip() == "what the words mean"
    made.close()


def test_an_ellipsis_where_nothing_fits(qapp: QApplication) -> None:
    made = label(40)
    assert made.shown.endswith("…") and SHORT.startswith(made.shown[:-1])
    assert made.fontMetrics().horizontalAdvance(made.shown) <= 40
    assert made.minimumSizeHint().width() == 0
    assert made.toolTip() == WHOLE
    made.clear()
    assert (made.shown, made.text(), made.toolTip()) == ("", "", "")
    made.close()


def test_an_indent_takes_room(qapp: QApplication) -> None:
    """A style sheet takes a label's margins away, so that the status bar's line is indented."""
    made = label(FittedLabel().fontMetrics().horizontalAdvance(SHORT) + 4)
    made.setIndent(6)
    made.say(SHORT)
    assert made.shown.endswith("…") and made.text() == SHORT
    made.close()

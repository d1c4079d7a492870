"""Nothing is cut off at 1280 x 720, at 100, 150 and 200 % scaling."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QPushButton, QWidget

from tests.gui.cut_widgets import cut

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("factor", ["1", "1.5", "2"])
def test_nothing_is_cut(factor: str) -> None:
    environment = {**os.environ, "QT_SCALE_FACTOR": factor}
    done = subprocess.run(
        [sys.executable, "-m", "tests.gui.cut_widgets"], cwd=ROOT, env=environment, capture_output=True, text=True,
        check=True, timeout=240,
    )  # fmt: skip
    assert not done.stdout.strip(), done.stdout


def test_a_squeezed_button_is_found(qapp: QApplication) -> None:
    holder = QWidget()
    button, roomy = QPushButton("Far too long for that", holder), QPushButton("Fits", holder)
    button.setFixedWidth(30)
    roomy.setGeometry(0, 60, 120, 40)
    holder.resize(300, 120)
    holder.show()
    qapp.processEvents()
    (found,) = cut(holder)
    assert "Far too long" in found
    holder.close()
    holder.deleteLater()

"""Make the guide's pictures from the running application: ``python resources/guide/make_pictures.py``.

Runs the headless demo on the bundled language model and draws the window with each panel in front, light and dark.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent / "pictures"
PICTURES = {
    "window": [],
    "window-dark": ["--dark"],
    "window-small": ["--size", "1280x720"],
    "distributions": ["--front", "distributions"],
    "sensitivity": ["--front", "sensitivity"],
    "pareto": ["--front", "pareto"],
    "accuracy": ["--front", "accuracy"],
    "timing": ["--front", "timing"],
    "channels": ["--front", "channels"],
    "agreement": ["--front", "agreement"],
    "error-budget": ["--front", "error_budget"],
}
"""Each picture's name and what the drawing is told."""


def main() -> None:
    """Read the command line, run the demo and draw."""
    parser = argparse.ArgumentParser(description="Make the guide's pictures.")
    parser.add_argument("--session", help="a session to draw (default: run the demo)")
    parser.add_argument("--out", default=str(HERE), help="where the pictures go")
    options = parser.parse_args()
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        session = options.session or demo(Path(scratch))
        for name, extra in PICTURES.items():
            draw(session, out / f"{name}.png", extra)
            print(out / f"{name}.png")


def demo(folder: Path) -> str:
    """Run the headless demo and return its session."""
    subprocess.run([sys.executable, "-m", "workbench", "demo", "--headless", "--out", str(folder)], check=True)
    return str(folder / "session.qwb")


def draw(session: str, picture: Path, extra: list[str]) -> None:
    """Draw the window offscreen."""
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    command = [sys.executable, "-m", "workbench.gui.screenshot", session, str(picture), *extra]
    subprocess.run(command, env=environment, check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()

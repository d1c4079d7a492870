"""Make the guide's pictures from the running application: ``python resources/guide/make_pictures.py``.

Runs the headless demo on the bundled language model, fills in what the demo leaves out, and draws the window and each
panel at two sizes, light and dark.  Takes some minutes; the figures in the pictures are those of this machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from workbench.gui.window import Window
    from workbench.session.session import Session

HERE = Path(__file__).parent / "pictures"
SIZES = {"small": (1280, 720), "large": (1920, 1080)}
WIDE = {"wide": (2560, 1440)}
COLOURS = 256
"""Colours of a picture: text stays sharp, and files a fifth as large."""

SHOWN_PATH = Path("/models/demo.qwb")
"""Where the session seems to be stored."""

OTHER_BITS = (3.5, 5.5)
MEASURED = ("int3-g64-asym", "int4-g64-asym", "int5-g64-asym")


@dataclass(frozen=True, kw_only=True, eq=False)
class Scene:
    """A session in which every panel has something to show, and what the session does not hold."""

    session: Session
    other: Session
    quality: Any
    samples: Any
    ceilings: Any
    after: Any
    layer: str


def main() -> None:
    """Read the command line, run the demo and draw."""
    parser = argparse.ArgumentParser(description="Make the guide's pictures.")
    parser.add_argument("--session", help="the session of a demo run before (default: run the demo)")
    parser.add_argument("--out", default=str(HERE), help="where the pictures go")
    parser.add_argument("--wide", action="store_true", help="also for 2560 x 1440, as the design document has them")
    options = parser.parse_args()
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        scene = filled(options.session or demo(Path(scratch)))
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    for name, size in (SIZES | WIDE if options.wide else SIZES).items():
        for dark in (False, True):
            draw(scene, out, f"{name}{'-dark' if dark else ''}", size, dark)


def demo(folder: Path) -> str:
    """Run the headless demo and return its session."""
    subprocess.run([sys.executable, "-m", "workbench", "demo", "--headless", "--out", str(folder)], check=True)
    return str(folder / "session.qwb")


def filled(path: str) -> Scene:
    """Compute what the demo leaves out: other plans, a measured table, an error budget, a sweep, a judgement."""
    import workbench as wb
    from workbench.models.sources import reopen
    from workbench.session.session import Session
    from workbench.steps.browse_samples import BROWSE_SAMPLES, BrowseSamplesOptions
    from workbench.steps.checks.audit import AUDIT, AuditOptions
    from workbench.steps.checks.error_budget import ERROR_BUDGET, ErrorBudgetOptions
    from workbench.steps.checks.quality import QUALITY, QualityOptions
    from workbench.steps.layer.before_after import BEFORE_AFTER, BeforeAfterOptions
    from workbench.steps.timing.ceilings import measure_ceilings
    from workbench.steps.timing.kernels import with_timings
    from workbench.steps.timing.sweep import sweep_batches

    first = Session.load(path)
    model = reopen(first.model)
    session = first
    for bits in OTHER_BITS:
        plan = wb.search(session, bits_per_weight=bits)
        run = wb.evaluate(replace(session, plan=plan), model=model, samples=64)
        session = replace(session, evaluations=(*session.evaluations, run), plans={**session.plans, plan.name: plan})
        other = replace(session, plan=plan)
    session = wb.score(session, "weight_error", model=model)
    session = wb.score(session, "measured_kl", model=model, schemes=MEASURED, samples=8)
    session = replace(session, error_budget=ERROR_BUDGET(session, ErrorBudgetOptions(samples=4), model=model))
    swept = sweep_batches(session)
    session = replace(session, timings=with_timings(session.timings, swept))
    layer = worst_layer(session)
    session = replace(session, audit=AUDIT(session, AuditOptions(samples=8), model=model))
    return Scene(
        session=session, other=other, quality=QUALITY(session, QualityOptions(), model=model),
        samples=BROWSE_SAMPLES(session, BrowseSamplesOptions(), model=model), ceilings=measure_ceilings(),
        after=BEFORE_AFTER(session, BeforeAfterOptions(layer=layer), model=model), layer=layer,
    )  # fmt: skip


def worst_layer(session: Session) -> str:
    """Return the layer that costs most of those that have inputs to show."""
    table = session.sensitivities["predicted_kl"]
    names = [name for name in table.layers if (name, "input") in session.statistics]
    return max(names, key=lambda name: table.of(name, session.plan.of(name).weights))


def draw(scene: Scene, out: Path, name: str, size: tuple[int, int], dark: bool) -> None:
    """Draw the window and every panel of one size in one palette."""
    from workbench.gui.panels import PANELS

    with shown(scene, size, dark) as (window, settle):
        keep(window, out / f"window-{name}.png")
        for spec in PANELS:
            window.reveal(spec.id)
            settle()
            for part, show in views(window, spec.id, scene).items():
                show()
                settle()
                title = spec.id.replace("_", "-") + (f"-{part}" if part else "")
                keep(window.panels[spec.id], out / f"{title}-{name}.png")


def views(window: Any, name: str, scene: Scene) -> dict[str, Callable[[], object]]:
    """Return what is drawn of a panel, by a suffix for the file's name; nothing is computed here."""
    panel, workspace = window.panels[name], window.context.workspace
    kind = type(panel).__name__
    if kind == "CalibrationDataPanel":
        panel.samples.show_page(scene.samples)
        workspace.show_data_quality(scene.quality)
        return _tabs(panel.tabs, "samples", "saturation", "coverage", "tensors", "outliers")
    if kind == "TimingPanel":
        workspace.show_ceilings(scene.ceilings)
        return _tabs(panel.tabs, "", "batches", "roofline", "precision")
    if kind == "AccuracyPanel":
        return _tabs(panel.tabs, "", "changed", "audit")
    if kind == "JobsPanel":
        panel.memory.hide()  # it would be this process, which holds the model as well
    if kind == "ComparePanel":
        workspace.compare_with(scene.other, Path("five-bits.qwb"))
    if kind == "DistributionsPanel":
        return {"": lambda: None, "after": partial(_show_after, panel, scene)}
    return {"": lambda: None}


def _show_after(panel: Any, scene: Scene) -> None:
    panel.after.store(scene.layer, scene.after)
    panel.compared.setChecked(True)


def _tabs(tabs: Any, *names: str) -> dict[str, Callable[[], object]]:
    return {name: lambda place=place: tabs.setCurrentIndex(place) for place, name in enumerate(names)}


@contextmanager
def shown(scene: Scene, size: tuple[int, int], dark: bool) -> Iterator[tuple[Window, Callable[[], None]]]:
    """Show the scene in a window; yields it and what lets it draw."""
    from workbench.gui.app import application
    from workbench.gui.context.context import Context
    from workbench.gui.shell import theme
    from workbench.gui.window import Window
    from workbench.session.workspace import Workspace

    app = application()
    colours = theme.DARK if dark else theme.LIGHT
    theme.apply(app, colours)
    context = Context(Workspace())
    window = Window(context, colours, keep_layout=False)

    def settle() -> None:
        for _ in range(20):
            app.processEvents()
        while not window.is_drawn:
            app.processEvents()

    try:
        window.resize(*size)
        window.show()
        context.workspace.open(scene.session, SHOWN_PATH)
        context.workspace.select((scene.layer,))
        settle()
        yield window, settle
    finally:
        window.dispose()
        app.processEvents()


def keep(widget: QWidget, path: Path) -> None:
    """Write a picture with few colours, as small as it gets."""
    from PIL import Image
    from PySide6.QtGui import QImage

    image = widget.grab().toImage().convertToFormat(QImage.Format.Format_RGB888)
    packed = bytes(image.constBits())
    size = image.width(), image.height()
    made = Image.frombytes("RGB", size, packed, "raw", "RGB", image.bytesPerLine())
    common = sorted(made.getcolors(size[0] * size[1]) or (), reverse=True)[: COLOURS // 2]
    others = made.quantize(COLOURS // 2, method=Image.Quantize.MAXCOVERAGE).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette([value for _, colour in common for value in colour] + others[: 3 * (COLOURS // 2)])
    made.quantize(palette=palette, dither=Image.Dither.NONE).save(path, optimize=True)  # large areas stay exact
    print(path)


if __name__ == "__main__":
    main()

"""One architecture through everything: open, calibrate, predict and measure, plan, evaluate, export, reload."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from tests.models.networks import Rows
from workbench.deployment.exporters import exporter
from workbench.errors import BudgetError, WorkbenchError
from workbench.measurement.calibrate import calibrate
from workbench.measurement.evaluate import evaluate
from workbench.models.execution.dependence import unused_layers
from workbench.models.layer import LayerKind
from workbench.models.model import Batch, Model
from workbench.models.placement import Placement
from workbench.models.sources import open_model
from workbench.models.sources.heads.inputs import with_answers
from workbench.models.summary import OutputKind, quantizable
from workbench.planning.budgets import Budgets
from workbench.planning.plan import Plan
from workbench.planning.search.search import search
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.sensitivity.score import score
from workbench.sensitivity.table import Sensitivity

SCHEMES = ("int3-channel", "int4-channel", "int6-channel", "int8-channel")
COARSE, TINY, TINIER, LARGE = "int4-channel", "int6-channel", "int8-channel", 1e-3
"""The schemes whose losses are compared: small enough for the second order, large enough to be measured in float32.
TINIER where TINY's loss is LARGE, COARSE where few of the samples' tokens change experts by a smaller one."""

RESOLVED = 0.2
"""The largest relative standard error, by how samples scatter and by how few tokens change experts, of a loss that is
judged: of 256 samples a token or two may, or none, and 16,384 samples have what is predicted."""

JUDGED = 0.5
"""The least share of a network's layers that are judged: Switch Transformers has 26 of 44, JetMoE 7 of 10, other
networks of experts four in five and more, those without experts all."""

SMALLEST = 1e-10
"""A loss below this is rounding of float32."""

LOW, HIGH = 0.7, 1.4

DEVICE = os.environ.get("WORKBENCH_TEST_DEVICE", "cpu")
"""Where the workbench runs the networks."""

ROUNDING = 1e-5 if DEVICE == "cpu" else 1e-3
"""Weights are the same bits; transformers lays some out otherwise, and sums of float32 are then rounded otherwise."""


Reload = Callable[[Path], Callable[[torch.Tensor], torch.Tensor]]
"""From an exported state dict to the network that has it, as its library runs it."""


@dataclass(slots=True)
class Row:
    """What came of one architecture; ``refusal`` is the sentence of the step that declined it."""

    name: str
    layers: int = 0
    matter: int = 0
    seen: int = 0
    unquantized: int = 0
    unused: int = 0
    ratios: dict[str, float] = field(default_factory=dict)
    kl: float = float("nan")
    difference: float = float("nan")
    refusal: str = ""
    seconds: float = 0.0

    @property
    def judged(self) -> float:
        """The share of the layers that matter whose losses the samples resolve."""
        return len(self.ratios) / self.matter if self.matter else 1.0

    @property
    def within(self) -> float:
        """The share of layers predicted within LOW to HIGH of what was measured."""
        values = list(self.ratios.values())
        return float(np.mean([LOW <= value <= HIGH for value in values])) if values else float("nan")

    def line(self) -> str:
        """The row of the table."""
        values = sorted(self.ratios.values())
        spread = f"{values[0]:.2f} {values[len(values) // 2]:.2f} {values[-1]:.2f}" if values else "-"
        return (
            f"{self.name:44s} {self.layers:4d} {self.seen:4d}/{self.matter:<4d} {self.unquantized:3d} "
            f"{self.unused:3d} {len(values):4d}  {spread:>16s} {self.within:5.2f}  {self.kl:9.2e} "
            f"{self.difference:9.2e} {self.seconds:5.1f}  {self.refusal}"
        )


HEADING = (
    f"{'architecture':44s} lays seen/matter kept unu jdgd  ratio min med max  in..       KL    reload  secs  refusal"
)


def samples(model: Model, count: int) -> Rows:
    """Return random samples of what the model takes."""
    batch = model.sample(count)
    assert batch is not None
    return Rows(**batch)


def run(folder: Path, out: Path, count: int = 256, data: Rows | None = None, reload: Reload | None = None) -> Row:
    """Take the model in ``folder`` through all steps; ``out`` gets the export, which ``reload`` runs without us."""
    row, begun = Row(folder.name), time.monotonic()
    try:
        model = open_model(folder, trust=True, placement=Placement(DEVICE))
        _through(model, row, samples(model, count) if data is None else data, out, reload)
    except WorkbenchError as error:
        row.refusal = str(error)
    row.seconds = time.monotonic() - begun
    return row


def _through(model: Model, row: Row, data: Rows, out: Path, reload: Reload | None) -> None:
    layers = model.summary.stored
    unused = unused_layers(model, data)
    searched = [x.name for x in layers if not x.keep and x.kind is not LayerKind.EMBEDDING and x.name not in unused]
    row.layers, row.unused = len(layers), len(unused)
    row.unquantized = sum(bool(layer.keep) for layer in layers)
    curvature = calibrate(model, data, batch_size=32).curvature
    table = score(model, "predicted_kl", SCHEMES, curvature=curvature, dataset=data, batch_size=32)
    measured = score(model, "measured_kl", (COARSE, TINY, TINIER), dataset=data, batch_size=32, layers=searched)
    matter = [name for name in searched if measured.of(name, TINY) > SMALLEST]
    row.matter, row.seen = len(matter), sum(np.isfinite(table.of(name, TINY)) for name in matter)
    row.ratios = {
        name: table.of(name, scheme) / measured.of(name, scheme) for name in matter
        for scheme in [_judged_at(table, measured, name)] if scheme
    }  # fmt: skip
    try:
        summary = model.summary.with_unused(dict.fromkeys(table.unused, "unused"))
        plan = search(summary, table, base=Plan(), budgets=Budgets(bits_per_weight=4.5))
    except BudgetError as error:  # rows so short that their scales alone take more
        row.refusal = str(error).partition(";")[0]
        plan = Plan.uniform(quantizable(model.summary.layers), "int4-channel")
    quantized = quantize(model, plan, curvature=curvature)
    bound = quantized.bind(model)
    figures = evaluate(model, bound, data, batch_size=32)
    row.kl = next((figures[name].value for name in ("kl", "half_squared_distance") if name in figures), float("nan"))
    exporter("huggingface" if reload is None else "state-dict").export(quantized, model, out, silent)
    batch = next(data.batches(4))
    with torch.no_grad():
        plain = plainly(out, model, batch) if reload is None else reload(out)(batch["inputs"])
        pixels = model.summary.output is OutputKind.POSITION_CLASSES and plain.ndim > 3
        plain = plain.flatten(2).transpose(1, 2) if pixels else plain
        row.difference = float((plain.cpu() - bound.run(batch).cpu()).abs().max())


def _judged_at(table: Sensitivity, measured: Sensitivity, name: str) -> str:
    """Return the scheme whose losses of the layer are compared, empty where the samples resolve none."""
    first = TINIER if measured.of(name, TINY) > LARGE else TINY
    return next((
        scheme for scheme in (first, TINY, COARSE)
        if not table.rerouting_of(name, scheme) or table.error_of(name, scheme) <= RESOLVED * table.of(name, scheme)
    ), "")  # fmt: skip


def plainly(folder: Path, model: Model, batch: Batch) -> torch.Tensor:
    """Return the output of transformers' own model of ``folder``, called as the workbench calls it."""
    import json

    import transformers

    name = json.loads((folder / "config.json").read_text(encoding="utf-8"))["architectures"][0]
    network = with_answers(getattr(transformers, name).from_pretrained(str(folder), dtype=torch.float32)).eval()
    network.to(model.device).config = model.body.network.config  # type: ignore[attr-defined]  # the call sets what fills up texts
    result: torch.Tensor = model.body.call(network, model.on_device(batch))  # type: ignore[attr-defined]
    return result

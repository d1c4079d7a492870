"""Predicted against measured losses of real models: an encoder's plans, a network's ranks. A table and a line of JSON.

    python tests/benchmarks/targets.py encoder FOLDER TEXT [--samples 1000] [--bits 4 4.5 5]
    python tests/benchmarks/targets.py crepe WEIGHTS [--samples 64]

``encoder``: a sentence encoder on the lines of TEXT; plans by size, predicted and measured on the evaluation half,
beside the best uniform plan of at most their size.  ``llm``: the same for a language model in windows of 128 tokens,
rounded to nearest.  ``crepe``: CREPE's weights on pure tones; rank agreement of layers' losses within each scheme.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from workbench.measurement.calibrate import calibrate
from workbench.measurement.evaluate import evaluate
from workbench.models.data.batches import Data
from workbench.models.data.datasets import open_dataset
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.models.summary import embeddings, quantizable
from workbench.planning.budgets import Budgets
from workbench.planning.constraints import Constraints
from workbench.planning.plan import Plan
from workbench.planning.search.search import search
from workbench.planning.totals import plan_totals
from workbench.quantization.quantize import quantize
from workbench.sensitivity.score import score

UNIFORM = ("int3-g32-asym", "int4-channel", "int4-g64-asym", "int4-g32", "int4-g32-asym", "int5-g64-asym")
SCHEMES = ("int2-g32-asym", "int3-g64-asym", *UNIFORM, "int5-g32-asym", "int6-g64-asym", "int8-channel")
RANKED = ("int4-channel", "int5-channel", "int6-channel", "int8-channel")
CREPE = '''
import torch
from torch import nn
from torch.nn.functional import pad

WIDTHS = {widths}
KERNELS, STRIDES = (512, 64, 64, 64, 64, 64), (4, 1, 1, 1, 1, 1)

class Crepe(nn.Module):
    def __init__(self):
        super().__init__()
        for index, (inner, outer) in enumerate(zip((1, *WIDTHS), WIDTHS), 1):
            kernel = (KERNELS[index - 1], 1)
            setattr(self, f"conv{{index}}", nn.Conv2d(inner, outer, kernel, (STRIDES[index - 1], 1)))
            setattr(self, f"conv{{index}}_BN", nn.BatchNorm2d(outer, eps=0.0010000000474974513))
        self.classifier = nn.Linear(4 * WIDTHS[-1], 360)

    def forward(self, x):
        for index in range(1, 7):
            x = pad(x, (0, 0, 254, 254) if index == 1 else (0, 0, 31, 32))
            x = getattr(self, f"conv{{index}}")(x).relu()
            x = nn.functional.max_pool2d(getattr(self, f"conv{{index}}_BN")(x), (2, 1), (2, 1))
        return torch.sigmoid(self.classifier(x.permute(0, 2, 1, 3).flatten(1)))

def build():
    return Crepe()
'''


def plans(model: Model, data: Data, held_out: Data, bits: list[float]) -> list[dict[str, Any]]:
    """Return predicted and measured losses of mixed plans and of the best uniform plans of at most their size."""
    table = score(model, "predicted_kl", SCHEMES, curvature=calibrate(model, data).curvature, dataset=data)
    layers, rows = quantizable(model.summary.layers), []

    def judged(plan: Plan) -> tuple[float, float]:
        figures = evaluate(model, quantize(model, plan).bind(model), held_out)
        figure = figures.get("kl") or figures["half_squared_distance"]
        return plan_totals(model.summary, plan, table).predicted or 0.0, figure.value

    uniform = {scheme: Plan.uniform(layers, scheme) for scheme in UNIFORM}
    for size in bits:
        plan = search(model.summary, table, budgets=Budgets(bits_per_weight=size), base=Plan(),
                      constraints=Constraints(locked=embeddings(model.summary.layers)))  # fmt: skip
        predicted, measured = judged(plan)
        fitting = [p for p in uniform.values() if plan_totals(model.summary, p, table).bits_per_weight <= size]
        best = min((judged(each)[1] for each in fitting), default=float("nan"))
        rows.append({"bits": size, "predicted": predicted, "measured": measured, "uniform": best})
        print(f"{size:g} bits   predicted {predicted:.4g}   measured {measured:.4g}   ratio {predicted / measured:.2f} "
              f"(asked: 0.75 to 1.33)   best uniform {best:.4g}", flush=True)  # fmt: skip
    return rows


def tones(samples: int, folder: Path) -> Path:
    """Write frames of 1,024 points at 16 kHz, normalised: sums of four harmonics of a random pitch, with noise."""
    generator, time = np.random.default_rng(0), np.arange(1024) / 16000
    pitch = 2.0 ** generator.uniform(6, 10, (2 * samples, 1))
    waves = 0.05 * generator.standard_normal((2 * samples, 1024))
    for k in range(1, 5):
        waves += np.sin(2 * np.pi * pitch * k * time + generator.uniform(0, 6)) / k
    waves = (waves - waves.mean(1, keepdims=True)) / waves.std(1, keepdims=True)
    np.save(folder / "tones.npy", waves[:, None, :, None].astype(np.float32))
    return folder / "tones.npy"


def crepe(weights: Path, samples: int) -> dict[str, dict[str, float]]:
    """Return rank agreement and median ratio of predicted and measured losses of each scheme."""
    from safetensors import safe_open

    with tempfile.TemporaryDirectory() as place, safe_open(weights, "pt") as file:
        widths = tuple(file.get_slice(f"conv{index}.weight").get_shape()[0] for index in range(1, 7))
        (Path(place) / "crepe.py").write_text(CREPE.format(widths=widths))
        model = open_model(Path(place) / "crepe.py", trust=True, weights=weights)
        data, held_out = (open_dataset(tones(samples, Path(place)), model, split=split)
                          for split in ("calibration", "evaluation"))  # fmt: skip
        predicted = score(model, "predicted_kl", RANKED, dataset=data).score
        measured = score(model, "measured_kl", RANKED, dataset=held_out).score
    found = {}
    for column, scheme in enumerate(RANKED):
        a, b = predicted[:, column], measured[:, column]
        found[scheme] = {"spearman": float(spearmanr(a, b).statistic), "ratio": float(np.median(a / b))}
        print(f"{scheme:15} rank agreement {found[scheme]['spearman']:.3f} (asked: 0.95)   predicted / measured "
              f"{found[scheme]['ratio']:.2f}")  # fmt: skip
    return found


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("encoder", "llm", "crepe"))
    parser.add_argument("model", type=Path)
    parser.add_argument("text", nargs="?")
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--bits", type=float, nargs="+", default=[4.0, 4.5, 5.0])
    options = parser.parse_args()
    if options.what == "crepe":
        print(json.dumps(crepe(options.model, options.samples)))
        return
    model = open_model(options.model)
    length = None if options.what == "encoder" else 128
    data, held_out = (
        open_dataset(options.text, model, split=split, samples=options.samples, sequence_length=length)
        for split in ("calibration", "evaluation")
    )
    print(json.dumps(plans(model, data, held_out, options.bits)))


if __name__ == "__main__":
    main()

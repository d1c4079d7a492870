"""Predicted against measured losses of CREPE on pure tones: rank agreement within each scheme, and a line of JSON.

python tests/benchmarks/crepe.py WEIGHTS [--samples 256]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from workbench.models.data.datasets import open_dataset
from workbench.models.sources import open_model
from workbench.sensitivity.score import score

RANKED = ("int4-channel", "int5-channel", "int6-channel", "int8-channel")
CREPE = """
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
"""


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
    result = {}
    for column, scheme in enumerate(RANKED):
        a, b = predicted[:, column], measured[:, column]
        result[scheme] = {"spearman": float(spearmanr(a, b).statistic), "ratio": float(np.median(a / b))}
        print(f"{scheme:15} rank agreement {result[scheme]['spearman']:.3f} (asked: 0.95)   predicted / measured "
              f"{result[scheme]['ratio']:.2f}")  # fmt: skip
    return result


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--samples", type=int, default=256)
    options = parser.parse_args()
    print(json.dumps(crepe(options.weights, options.samples)))


if __name__ == "__main__":
    main()

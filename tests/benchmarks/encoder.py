"""How true the Gauss-Newton prediction is for an encoder: rank agreement with measured squared distances.

    python tests/benchmarks/encoder.py [MODEL CALIBRATION [EVALUATION]] [--samples N]

The encoder is a language model (default: the bundled one) whose output is the mean of its last hidden states over a
sample's tokens.  Its head is left out.  The loss is half the squared distance of that vector to the FP32 one.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import torch
from scipy.stats import spearmanr

from workbench.models.data.datasets import open_dataset
from workbench.models.data.files import ALL
from workbench.models.execution.network import Body, NetworkModel
from workbench.models.sources import open_model
from workbench.models.summary import OutputKind, quantizable
from workbench.sensitivity.score import score

SCHEMES = ("int3-g32-asym", "int4-g32-asym", "int5-g32-asym", "int6-g32-asym", "int8-g32")


def encoder(model: NetworkModel) -> NetworkModel:
    """Return the language model as an encoder of whole samples."""

    def call(forward: Any, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        answer = forward(input_ids=batch["input_ids"], use_cache=False, output_hidden_states=True)
        result: torch.Tensor = answer.hidden_states[-1].mean(dim=1)
        return result

    return NetworkModel(
        replace(model.summary, output=OutputKind.EMBEDDING),
        Body(network=model.body.network, call=call, hooks=model.body.hooks), model.inputs,
    )  # fmt: skip


def main() -> None:
    """Read the command line, score, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="demo:language-model")
    parser.add_argument("calibration", nargs="?", default="demo:language-model")
    parser.add_argument("evaluation", nargs="?")
    parser.add_argument("--samples", type=int, default=32)
    options = parser.parse_args()
    opened = open_model(options.model)
    assert isinstance(opened, NetworkModel)
    model = encoder(opened)
    split = (ALL, ALL) if options.evaluation else ("calibration", "evaluation")
    data = open_dataset(options.calibration, opened, samples=options.samples, split=split[0])
    held = open_dataset(options.evaluation or options.calibration, opened, samples=options.samples, split=split[1])
    names = [layer.name for layer in quantizable(model.summary.stored) if "head" not in layer.name]
    predicted = score(model, "predicted_kl", SCHEMES, dataset=data, layers=names)
    measured = score(model, "measured_kl", SCHEMES, dataset=held, layers=names)
    result = {}
    for column, scheme in enumerate(SCHEMES):
        a, b = predicted.score[:, column], measured.score[:, column]
        result[scheme] = {"spearman": float(spearmanr(a, b).statistic), "ratio": float(np.median(a / b))}
        print(f"{scheme:16} rank agreement {result[scheme]['spearman']:.3f}   predicted / measured "
              f"{result[scheme]['ratio']:.2f}")  # fmt: skip
    print(json.dumps({"model": model.summary.name, "layers": len(names), "ranks": result}))


if __name__ == "__main__":
    main()

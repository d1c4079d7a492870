"""How true the predicted losses of quantized activations are: a table and one line of JSON.

    python tests/benchmarks/activations.py [MODEL DATA] [--trust] [--weights FILE] [--batch-size N] [--samples N]

Predicted against measured KL of every layer's input, quantized alone, and of all inputs together; what the predicted
table costs in bare forward passes.  Schemes for whole tensors are static, by the min-max range of the same data.
"""

from __future__ import annotations

import argparse
import json
import os
import time

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import torch
from scipy.stats import spearmanr

from workbench.measurement.calibrate import calibrate
from workbench.measurement.evaluate import evaluate
from workbench.models.data.datasets import open_dataset
from workbench.models.data.files import ALL
from workbench.models.execution.network import NetworkModel
from workbench.models.sources import open_model
from workbench.numerics.formats import parse_scheme
from workbench.numerics.ranges import MinMax
from workbench.planning.plan import Plan
from workbench.quantization.quantize import quantize
from workbench.sensitivity.score import score

TOKEN_SCHEMES = ("int4-token", "int6-token", "int8-token", "fp8-e4m3-token", "int8-tensor-asym")
IMAGE_SCHEMES = ("int4-tensor-asym", "int6-tensor-asym", "int8-tensor-asym", "fp8-e4m3-tensor", "int8-token")


def main() -> None:
    """Read the command line, score, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="demo:language-model")
    parser.add_argument("data", nargs="?", default="demo:language-model")
    parser.add_argument("--trust", action="store_true", help="the model is a Python file that may run")
    parser.add_argument("--weights", help="weights of a Python model")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--samples", type=int, default=16)
    options = parser.parse_args()
    model = open_model(options.model, weights=options.weights, trust=options.trust)
    split = "calibration" if options.data.startswith("demo:") else ALL
    data = open_dataset(options.data, model, samples=options.samples, split=split)
    size = options.batch_size
    assert isinstance(model, NetworkModel)
    schemes = TOKEN_SCHEMES if model.inputs.tokens else IMAGE_SCHEMES
    statistics = calibrate(model, data, batch_size=size, curvature=False).statistics
    scheme = parse_scheme("int8-tensor-asym")
    ranges = {key: MinMax().range(observed, scheme) for key, observed in statistics.items() if key[1] == "input"}
    start = time.perf_counter()
    with torch.no_grad():
        for batch in data.batches(size):
            model.run(batch)
    bare = time.perf_counter() - start
    start = time.perf_counter()
    predicted = score(model, "predicted_kl_inputs", schemes, dataset=data, ranges=ranges, batch_size=size)
    passes = (time.perf_counter() - start) / bare
    measured = score(model, "measured_kl_inputs", schemes, dataset=data, ranges=ranges, batch_size=size)
    figures = {}
    print(f"{len(predicted.layers)} layers x {len(schemes)} schemes: {passes:.1f} bare passes")
    for column, name in enumerate(schemes):
        a, b = predicted.score[:, column], measured.score[:, column]
        whole = quantize(model, Plan().assign(predicted.layers, inputs=name), ranges=ranges).bind(model)
        together = evaluate(model, whole, data, batch_size=size)["kl"].value
        figures[name] = {
            "spearman": float(spearmanr(a, b).statistic), "ratio": float(np.median(a / b)),
            "all": float(a.sum() / together),
        }  # fmt: skip
        print(f"{name:18} rank agreement {figures[name]['spearman']:.3f}   predicted / measured "
              f"{figures[name]['ratio']:.2f}   all inputs: predicted {a.sum():.3g}, "
              f"measured {together:.3g}")  # fmt: skip
    print(json.dumps({"model": model.summary.name, "passes": passes, "schemes": figures}))


if __name__ == "__main__":
    main()

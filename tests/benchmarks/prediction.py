"""How true the predicted loss is, and what it costs: a table and one line of JSON.

    python tests/benchmarks/prediction.py [MODEL CALIBRATION [EVALUATION]] [--trust] [--weights FILE] [--batch-size N]
        [--samples N] [--costs]

Predicted against measured KL of every cell (one layer quantized at a time) and of whole plans; mixed plans against the
uniform plan of the same size; the table's cost in bare forward passes over the calibration data.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr

from workbench.measurement.calibrate import calibrate
from workbench.measurement.evaluate import evaluate
from workbench.models.data.batches import Data
from workbench.models.data.datasets import open_dataset
from workbench.models.data.files import ALL
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
from workbench.sensitivity.table import Sensitivity

RANKED = ("int3-g64-asym", "int3-g32-asym", "int4-g64-asym", "int4-g32", "int5-g32-asym", "int6-g32-asym", "int8-g32")
SEARCHED = (
    "int2-g16-asym", "int2-g32-asym", "int3-g64-asym", "int3-g32-asym", "int4-g64-asym", "int4-g32-asym",
    "int5-g64-asym", "int5-g32-asym", "int6-g64-asym", "int6-g32-asym", "int8-g64", "int8-channel", "int3-g32",
    "int4-g32", "int5-g32",
)  # fmt: skip
PLANS = (3.5, 4.0, 4.5, 5.0, 5.5)
UNIFORM = ("int3-g32", "int3-g32-asym", "int4-g64-asym", "int4-g32", "int4-g32-asym", "int5-g64-asym", "int5-g32")
"""Symmetric groups of 32 with FP16 scales take 3.5, 4.5 and 5.5 bits exactly."""


def seconds(work: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """Return the least time of a few runs, and the last result."""
    times, result = [], None
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return min(times), result


def run_bare(model: Model, data: Data, batch_size: int) -> None:
    """Run the model once over the data."""
    with torch.no_grad():
        for batch in data.batches(batch_size):
            model.run(batch)


def costs(model: Model, data: Data, batch_size: int) -> dict[str, Any]:
    """Return the table of predicted losses and what it took, in bare passes."""
    bare, _ = seconds(lambda: run_bare(model, data, batch_size))
    statistics, _ = seconds(lambda: calibrate(model, data, batch_size=batch_size, curvature=False), 2)
    calibration, result = seconds(lambda: calibrate(model, data, batch_size=batch_size), 2)
    known: dict[str, Any] = {"curvature": result.curvature, "dataset": data, "batch_size": batch_size}
    few, _ = seconds(lambda: score(model, "predicted_kl", SEARCHED[:6], **known), 2)
    twelve, _ = seconds(lambda: score(model, "predicted_kl", SEARCHED[:12], **known), 2)
    return {
        "table": score(model, "predicted_kl", SEARCHED, **known), "curvature": result.curvature, "bare_seconds": bare,
        "statistics_passes": statistics / bare, "calibration_passes": calibration / bare,
        "score_6_passes": few / bare, "score_12_passes": twelve / bare,
        "whole_6_passes": (calibration + few) / bare, "whole_12_passes": (calibration + twelve) / bare,
    }  # fmt: skip


def ranks(model: Model, data: Data, held_out: Data, curvature: Any, batch_size: int) -> dict[str, dict[str, float]]:
    """Return rank agreement and median ratio of predicted and measured losses for each scheme."""
    names = [layer.name for layer in quantizable(model.summary.stored)]
    arguments: dict[str, Any] = {"layers": names, "batch_size": batch_size}
    predicted = score(model, "predicted_kl", RANKED, curvature=curvature, dataset=data, **arguments)
    measured = score(model, "measured_kl", RANKED, dataset=held_out, **arguments)
    result = {}
    for scheme in RANKED:
        a, b = (table.score[:, table.column[scheme]] for table in (predicted, measured))
        result[scheme] = {"spearman": float(spearmanr(a, b).statistic), "ratio": float(np.median(a / b))}
    return result


def plans(model: Model, held_out: Data, table: Sensitivity, batch_size: int) -> list[dict[str, Any]]:
    """Return predicted and measured KL of mixed plans and of uniform plans with a mixed plan of the same bytes."""
    layers = quantizable(model.summary.layers)
    rows = []

    def row(kind: str, plan: Plan) -> int:
        sums = plan_totals(model.summary, plan, table)
        kl = evaluate(model, quantize(model, plan).bind(model), held_out, batch_size=batch_size)["kl"]
        rows.append({
            "plan": kind, "bits": sums.bits_per_weight, "bytes": sums.nbytes, "predicted": sums.predicted,
            "interaction": sums.interaction, "measured": kl.value, "low": kl.low, "high": kl.high,
        })  # fmt: skip
        return sums.nbytes

    def mixed(budgets: Budgets) -> Plan:
        return search(model.summary, table, budgets=budgets, base=Plan(),
                      constraints=Constraints(locked=embeddings(model.summary.layers)))  # fmt: skip

    for bits in PLANS:
        row(f"mixed {bits:g}", mixed(Budgets(bits_per_weight=bits)))
    for scheme in UNIFORM:
        nbytes = row(scheme, Plan.uniform(layers, scheme))
        row(f"mixed, bytes of {scheme}", mixed(Budgets(nbytes=nbytes)))
    return rows


def report(model: Model, data: Data, held_out: Data, batch_size: int, *, costs_only: bool) -> dict[str, Any]:
    """Print everything as a table and return it."""
    cost = costs(model, data, batch_size)
    table, curvature = cost.pop("table"), cost.pop("curvature")
    print("in bare passes: " + ", ".join(f"{key[:-7]} {value:.2f}" for key, value in cost.items() if "passes" in key))
    print("asked: whole table of 12 schemes 8 (tokens) or 25 (convolutions), at most 1.2 times that of 6 for tokens")
    if costs_only:
        return {"model": model.summary.name, "costs": cost}
    agreement = ranks(model, data, held_out, curvature, batch_size)
    rows = plans(model, held_out, table, batch_size)
    for scheme, result in agreement.items():
        print(f"{scheme:24} rank agreement {result['spearman']:.3f}   predicted / measured {result['ratio']:.2f}")
    for row in rows:
        ratio = row["predicted"] / row["measured"]
        print(f"{row['plan']:30} {row['bits']:.3f} bits {row['bytes']:>10,} bytes   predicted {row['predicted']:.4f}   "
              f"measured {row['measured']:.4f}   ratio {ratio:.2f}"
              + (f" ({(row['predicted'] - row['interaction']) / row['measured']:.2f} by the sum alone)"
                 if row["interaction"] else ""))  # fmt: skip
    judged = [row["predicted"] / row["measured"] for row in rows if 3.49 <= row["bits"] <= 6.0]
    within = sum(0.7 <= ratio <= 1.33 for ratio in judged)
    print(f"within 0.7 to 1.33 between 3.5 and 6 bits: {within} of {len(judged)} plans (asked: nine in ten)")
    return {"model": model.summary.name, "costs": cost, "ranks": agreement, "plans": rows}


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="demo:language-model")
    parser.add_argument("calibration", nargs="?", default="demo:language-model")
    parser.add_argument("evaluation", nargs="?", help="default: the evaluation split of the calibration data")
    parser.add_argument("--trust", action="store_true", help="the model is a Python file that may run")
    parser.add_argument("--weights", help="weights of a Python model")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--costs", action="store_true", help="only what the table costs")
    parser.add_argument("--samples", type=int, default=32, help="of each split (default 32)")
    options = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))
    model = open_model(options.model, weights=options.weights, trust=options.trust)
    split = ALL if options.evaluation else "calibration"
    data = open_dataset(options.calibration, model, samples=options.samples, split=split)
    held = ALL if options.evaluation else "evaluation"
    held_out = open_dataset(options.evaluation or options.calibration, model, samples=options.samples, split=held)
    print(json.dumps(report(model, data, held_out, options.batch_size, costs_only=options.costs)))


if __name__ == "__main__":
    main()

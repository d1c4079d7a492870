"""Predicted and measured loss of mixed plans at given bits per weight, beside the best uniform plan of that size.

    python tests/benchmarks/budgets.py MODEL CALIBRATION EVALUATION [--bits 4,4.5,5] [--samples N] [--algorithm rtn]

Calibration and evaluation are files of data; a sentence encoder takes tables of sentences.  Embeddings stay as they
are.  To reach at every size: predicted over measured from 0.75 to 1.33, and the mixed plan below the uniform one.
Prints a table and one line of JSON.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import workbench
from workbench.measurement.evaluate import evaluate
from workbench.models.data.datasets import open_dataset
from workbench.models.data.files import ALL
from workbench.models.layer import Layer
from workbench.models.model import Model
from workbench.models.summary import embeddings, quantizable
from workbench.planning.plan import Plan
from workbench.planning.totals import layer_bits, plan_totals
from workbench.quantization.quantize import quantize
from workbench.sensitivity.confidence import interval
from workbench.session.session import Session

BITS = (2, 3, 4, 5, 6, 8)
GROUPED = tuple(f"int{bits}-g{group}{form}" for bits in BITS for group in (32, 64) for form in ("", "-asym"))
SCHEMES = ("int2-g16-asym", *GROUPED)
LOW, HIGH = 0.75, 1.33


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("model", "calibration", "evaluation"):
        parser.add_argument(name)
    parser.add_argument("--bits", default="3,3.5,4,4.5,5,5.5")
    parser.add_argument("--samples", type=int, default=32, help="of the calibration data (default 32)")
    parser.add_argument("--evaluation-samples", type=int, default=32)
    parser.add_argument("--algorithm", default="rtn")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--window", type=int, help="tokens of a window of running text")
    parser.add_argument("--session", type=Path, help="the scored session: read where it exists, else written")
    options = parser.parse_args()
    model = workbench.open(options.model)
    session = scored(model, options)
    (table,) = (each for each in session.sensitivities.values() if each.algorithm == options.algorithm)
    held_out = open_dataset(
        options.evaluation, model, samples=options.evaluation_samples, split=ALL, sequence_length=options.window
    )

    def row(name: str, plan: Plan) -> dict[str, Any]:
        sums = plan_totals(model.summary, plan, table)
        result = evaluate(model, quantize(model, plan).bind(model), held_out, batch_size=options.batch_size)
        loss = result.get("kl") or result["half_squared_distance"]
        assert sums.predicted is not None
        stated = interval(sums.predicted, sums.error, sums.doubt)
        return {"plan": name, "bits": bits_of(plan, layers), "bytes": sums.nbytes, "predicted": sums.predicted,
                "second_order": sums.second_order,
                "error": sums.error, "stated": stated, "measured": loss.value, "low": loss.low, "high": loss.high,
                "ratio": sums.predicted / loss.value}  # fmt: skip

    locked = sorted(embeddings(model.summary.layers))
    layers = [layer for layer in quantizable(model.summary.layers) if layer.name not in table.unused]
    uniform = {scheme: Plan.uniform(layers, scheme, algorithm=options.algorithm) for scheme in SCHEMES}
    rows = []
    for bits in map(float, options.bits.split(",")):
        result = workbench.search(session, bits_per_weight=bits, schemes=SCHEMES, lock=locked)
        names = [layer.name for layer in layers if result.of(layer.name).weights != "keep"]
        rows.append(row(f"mixed {bits:g}", result.assign(names, algorithm=options.algorithm)))
        _print(rows[-1])
        fitting = {scheme: plan_totals(model.summary, plan, table).predicted or 0.0
                   for scheme, plan in uniform.items() if bits_of(plan, layers) <= bits}  # fmt: skip
        scheme = min(fitting, key=fitting.__getitem__, default=None)
        if scheme is not None:
            rows.append(row(scheme, uniform[scheme]))
            rows[-1]["beaten"] = rows[-2]["measured"] < rows[-1]["measured"]
            _print(rows[-1])
    print(json.dumps({"model": model.summary.name, "samples": options.samples, "rows": rows}))


def scored(model: Model, asked: argparse.Namespace) -> Session:
    """Return the session with predicted losses, computed once for many runs of this benchmark."""
    if asked.session is not None and asked.session.exists():
        return Session.load(asked.session)
    session = workbench.calibrate(model, asked.calibration, samples=asked.samples, window=asked.window)
    session = workbench.score(session, model=model, schemes=SCHEMES, algorithm=asked.algorithm)
    if asked.session is not None:
        session.save(asked.session)
    return session


def bits_of(plan: Plan, layers: Sequence[Layer]) -> float:
    """Return the bits per weight of ``layers``: those that the output depends on, without embeddings."""
    bits = sum(layer_bits(layer, plan.of(layer.name).weights) for layer in layers)
    return bits / sum(layer.parameters for layer in layers)


def _print(row: dict[str, Any]) -> None:
    verdict = "" if LOW <= row["ratio"] <= HIGH else "  out of bounds"
    if row["stated"] is not None and not row["stated"][0] <= row["measured"] <= row["stated"][1]:
        verdict += "  outside the stated interval"
    if "beaten" in row:
        verdict += "  beaten" if row["beaten"] else "  NOT BEATEN"
    error = f"({row['stated'][0]:.4f} to {row['stated'][1]:.4f})" if row["stated"] is not None else ""
    print(f"{row['plan']:16} {row['bits']:.3f} bits {row['bytes']:>12,} bytes  "
          f"predicted {row['predicted']:.5f} {error}  measured {row['measured']:.5f} "
          f"({row['low']:.5f} to {row['high']:.5f})  ratio {row['ratio']:.3f}{verdict}",
          flush=True)  # fmt: skip


if __name__ == "__main__":
    main()

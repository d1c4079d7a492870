"""What transforms gain on a real model: KL to floating point before and after, and how equal the models are.

    python tests/benchmarks/transforms.py [MODEL CALIBRATION EVALUATION] [--samples N] [--evaluate N]

Default: the small Llama of the cases folder.  One row for each plan: bits per weight, KL in nats per token without and
with each transform, the largest deviation of the rewritten floating-point model's outputs, relative to the largest
output, and the seconds that the rewrite took.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from workbench.models.batches import Data
from workbench.models.calibrate import Calibration, calibrate
from workbench.models.datasets import open_dataset
from workbench.models.evaluate import evaluate
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.models.summary import quantizable
from workbench.numerics.ranges import Range
from workbench.planning.plan import Plan
from workbench.planning.quantize import quantize
from workbench.planning.totals import plan_totals
from workbench.planning.transforms.apply import transform
from workbench.runtime.calibrated_ranges import all_ranges, ranges_in_force

CASES = Path(os.environ.get("WORKBENCH_CASES", Path(__file__).parents[3] / "shared" / "cases"))
LLAMA = CASES / "llama-260k"

TRANSFORMS = (
    ("awq",), ("smoothquant",), ("rotation-heads",), ("rotation",), ("awq", "rotation-heads"),
    ("rotation", "smoothquant"),
)  # fmt: skip
PLANS = (
    ("int4-g32-asym", None), ("int3-g32-asym", None), ("int4-g32-asym", "int8-token"), ("int4-channel", "int8-token"),
    ("int8-channel", "int8-tensor"), ("int8-channel", "int4-token"), ("int4-g32-asym", "int4-token"),
)  # fmt: skip


def report(model: Model, data: Data, held_out: Data, algorithm: str) -> None:
    """Print one row for each plan and transform."""
    found = calibrate(model, data)
    ranges = all_ranges(found.statistics)
    for weights, inputs in PLANS:
        names = [layer.name for layer in quantizable(model.summary.layers)]
        plan = Plan().assign(names, weights=weights, inputs=inputs, algorithm=algorithm)
        given = {"ranges": ranges_in_force(model.summary, plan, ranges, {})}
        bits = plan_totals(model.summary, plan).bits_per_weight
        base = kl(model, plan, given["ranges"], found, data, held_out)
        print(f"{weights} weights, {inputs or 'float'} inputs, {algorithm}, {bits:.2f} bits: KL {base:.4f}")
        for names_ in TRANSFORMS:
            if names_ != ("smoothquant",) or inputs is not None:
                row(model, replace(plan, transforms=names_), given["ranges"], found, data, held_out, base)


def row(
    model: Model, plan: Plan, ranges: Mapping[tuple[str, str], Range], found: Calibration, data: Data, held_out: Data,
    base: float,
) -> None:  # fmt: skip
    """Rewrite, quantize, evaluate and print one line."""
    start = time.perf_counter()
    done = transform(model, plan, curvature=found.curvature, ranges=ranges, data=data)
    seconds = time.perf_counter() - start
    after = kl(model, plan, ranges, found, data, held_out)
    print(
        f"    {' + '.join(plan.transforms):28} KL {after:.4f}  {100 * (after / base - 1):+6.1f} %   "
        f"deviation {done.deviation:.1e}   {seconds:.1f} s",
        flush=True,
    )


def kl(
    model: Model, plan: Plan, ranges: Mapping[tuple[str, str], Range], found: Calibration, data: Data, held_out: Data
) -> float:
    """Return the KL of the quantized model in nats per token."""
    quantized = quantize(model, plan, ranges=ranges, curvature=found.curvature, data=data)
    return evaluate(model, quantized.bind(model), held_out)["kl"].value


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default=str(LLAMA))
    parser.add_argument("calibration", nargs="?", default=str(LLAMA / "calibration_tokens.npy"))
    parser.add_argument("evaluation", nargs="?", default=str(LLAMA / "evaluation_tokens.npy"))
    parser.add_argument("--samples", type=int, default=64, help="of the calibration data")
    parser.add_argument("--evaluate", type=int, default=64, help="of the evaluation data")
    parser.add_argument("--algorithm", default="rtn-clip")
    options = parser.parse_args()
    model = open_model(options.model)
    data = open_dataset(options.calibration, model, samples=options.samples)
    report(model, data, open_dataset(options.evaluation, model, samples=options.evaluate), options.algorithm)


if __name__ == "__main__":
    main()

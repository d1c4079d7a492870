"""What transforms gain on a real model: KL to floating point before and after, and how equal the models are.

    python -m tests.benchmarks.transforms [MODEL CALIBRATION EVALUATION] [--samples N] [--evaluate N]
        [--algorithm NAME ...] [--plans WEIGHTS/INPUTS ...] [--transforms NAME+NAME ...]
        [--rotation] [--outliers FACTOR]

Default: the small Llama of the cases folder.  One row for each plan: bits per weight, KL in nats per token without and
with each transform, the change in percent with its 95 % interval over the same windows (``~`` where it contains 0), the
largest deviation of the rewritten floating-point model's outputs, relative to the largest output, and the seconds that
the rewrite took.  ``--rotation``: 4-bit weights and 8-bit inputs, dynamic and static, with every algorithm, plain and
rotated.  ``--outliers``: first make two channels behind every norm larger by that factor, the same function.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from tests.quantization.transforms.networks import llama_with_outliers
from workbench.measurement.calibrate import Calibration, calibrate
from workbench.measurement.evaluate import evaluate
from workbench.measurement.evaluation import Metric
from workbench.measurement.paired import between
from workbench.measurement.second_moments import SecondMoments
from workbench.models.data.batches import Data
from workbench.models.data.datasets import open_dataset
from workbench.models.execution.network import NetworkModel
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.models.summary import quantizable
from workbench.numerics.ranges import Range
from workbench.planning.plan import Plan
from workbench.planning.totals import plan_totals
from workbench.quantization.quantize import quantize
from workbench.quantization.transforms.apply import transform
from workbench.session.calibrated_ranges import all_ranges, ranges_in_force

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

ROTATION = tuple(
    (weights, inputs) for weights in ("int4-channel", "int4-g128", "int4-tensor")
    for inputs in ("int8-token", "int8-tensor")
)  # fmt: skip


def report(
    model: Model, data: Data, held_out: Data, algorithms: Sequence[str], plans: Sequence[tuple[str, str | None]],
    transforms: Sequence[tuple[str, ...]],
) -> None:  # fmt: skip
    """Print one row for each plan, algorithm and transform."""
    result = calibrate(model, data)
    ranges = all_ranges(result.statistics)
    names = [layer.name for layer in quantizable(model.summary.layers)]
    for (weights, inputs), algorithm in product(plans, algorithms):
        plan = Plan().assign(names, weights=weights, inputs=inputs, algorithm=algorithm)
        in_force = ranges_in_force(model.summary, plan, ranges, {})
        bits = plan_totals(model.summary, plan).bits_per_weight
        base = kl(model, plan, in_force, result, data, held_out)
        print(f"{weights} weights, {inputs or 'float'} inputs, {algorithm}, {bits:.2f} bits: KL {base.value:.4f}")
        for names_ in transforms:
            if names_ != ("smoothquant",) or inputs is not None:
                row(model, replace(plan, transforms=names_), in_force, result, data, held_out, base)


def row(
    model: Model, plan: Plan, ranges: Mapping[tuple[str, str], Range], calibration: Calibration, data: Data,
    held_out: Data, base: Metric,
) -> None:  # fmt: skip
    """Rewrite, quantize, evaluate and print one line."""
    start = time.perf_counter()
    done = transform(model, plan, curvature=SecondMoments(model, data, calibration.curvature), ranges=ranges, data=data)
    seconds = time.perf_counter() - start
    after = kl(model, plan, ranges, calibration, data, held_out)
    change = between(after, base)
    percent = [100 * value / base.value for value in (change.value, change.low, change.high)]
    print(
        f"    {' + '.join(plan.transforms):28} KL {after.value:.4f}  {percent[0]:+6.1f} % "
        f"{' ' if change.resolved else '~'} [{percent[1]:+6.1f}, {percent[2]:+6.1f}]   "
        f"deviation {done.deviation:.1e}   {seconds:.1f} s",
        flush=True,
    )


def kl(
    model: Model,
    plan: Plan,
    ranges: Mapping[tuple[str, str], Range],
    calibration: Calibration,
    data: Data,
    held_out: Data,
) -> Metric:
    """Return the KL of the quantized model in nats per token."""
    moments = SecondMoments(model, data, calibration.curvature)
    quantized = quantize(model, plan, ranges=ranges, curvature=moments, data=data)
    return evaluate(model, quantized.bind(model), held_out)["kl"]


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default=str(LLAMA))
    parser.add_argument("calibration", nargs="?", default=str(LLAMA / "calibration_tokens.npy"))
    parser.add_argument("evaluation", nargs="?", default=str(LLAMA / "evaluation_tokens.npy"))
    parser.add_argument("--samples", type=int, default=64, help="of the calibration data")
    parser.add_argument("--evaluate", type=int, default=64, help="of the evaluation data")
    parser.add_argument("--algorithm", nargs="+", help="default: rtn-clip; with --rotation rtn, rtn-clip and gptq")
    parser.add_argument("--plans", nargs="+", help="such as int4-channel/int8-token, or int4-g32 for inputs in float")
    parser.add_argument("--transforms", nargs="+", help="such as rotation, or awq+rotation-heads")
    parser.add_argument("--rotation", action="store_true", help="what rotation does at 4 and 8 bits")
    parser.add_argument("--outliers", type=float, help="times two channels of every norm of a Llama")
    return parser.parse_args()


def main() -> None:
    """Measure and print what the command line asks for."""
    options = arguments()
    plans: Sequence[tuple[str, str | None]] = ROTATION if options.rotation else PLANS
    if options.plans:
        parts = [str(name).partition("/") for name in options.plans]
        plans = tuple((weights, inputs or None) for weights, _, inputs in parts)
    transforms: tuple[tuple[str, ...], ...] = (("rotation-heads",), ("rotation",)) if options.rotation else TRANSFORMS
    if options.transforms:
        transforms = tuple(tuple(str(name).split("+")) for name in options.transforms)
    algorithms = options.algorithm or (["rtn", "rtn-clip", "gptq"] if options.rotation else ["rtn-clip"])
    model = open_model(options.model)
    if options.outliers:
        assert isinstance(model, NetworkModel)
        model = llama_with_outliers(model, factor=options.outliers)
    data = open_dataset(options.calibration, model, samples=options.samples)
    held_out = open_dataset(options.evaluation, model, samples=options.evaluate)
    report(model, data, held_out, algorithms, plans, transforms)


if __name__ == "__main__":
    main()

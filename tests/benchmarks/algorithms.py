"""What rounding algorithms reach on real models beside other tools.  Run it as a script.

Prints a table for the small Llama (KL to floating point, all 35 linear layers, 256 evaluation windows) and one for
ResNet-20 (top-1), and one line of JSON.  The models are found through ``WORKBENCH_CASES``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from workbench.models.calibrate import Calibration, calibrate
from workbench.models.datasets import Dataset, open_dataset
from workbench.models.evaluate import evaluate
from workbench.models.layer import LayerKind
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.planning.correction import correct_biases, reestimate_norms
from workbench.planning.plan import Plan
from workbench.planning.quantize import QuantizedModel, quantize

ROOT = Path(__file__).parents[2]
CASES = Path(os.environ.get("WORKBENCH_CASES", ROOT / ".." / "shared" / "cases"))

LLAMA = (
    ("int4-g32-asym-zfp16", "hqq", 0.0685, "HQQ 5.00 bits 0.0685"),
    ("int3-g32-asym-zfp16", "hqq", 0.416, "HQQ 4.00 bits 0.416"),
    ("int4-g32-asym", "hqq", None, "the same with integer zero points"),
    ("int3-g32-asym", "hqq", None, "the same with integer zero points"),
    ("int4-g32-asym", "rtn-weighted", 0.065, "torchao, quanto, gguf rounding 0.073 to 0.082"),
    ("int3-g32-asym", "rtn-weighted", 0.38, "torchao 0.565, HQQ 4.00 bits 0.416"),
    ("int4-g32-asym", "gptq", 0.042, "GPTQ 0.0495"),
    ("int4-g64-asym", "gptq", 0.055, "GPTQ 0.0632"),
    ("int3-g32-asym", "gptq", 0.24, "GPTQ 0.288"),
    ("int4-g32-asym", "gptq-sequential", 0.042, "GPTQ 0.0495"),
    ("int4-g64-asym", "gptq-sequential", 0.055, "GPTQ 0.0632, SignRound 0.0469"),
    ("int3-g32-asym", "gptq-sequential", 0.24, "GPTQ 0.288, SignRound (g64) 0.225"),
)
"""Scheme, algorithm, KL to reach, other tools' KL."""

RESNET = (
    ("int4-channel", "rtn-clip", None, None),
    ("int4-channel", "gptq", None, 80.8),
    ("int4-channel-asym", "gptq", None, 80.8),
    ("int8-channel", "rtn-clip", "int8-tensor-asym", 81.6),
)
"""Weights, algorithm, inputs, top-1 to reach."""


def bits_per_weight(quantized: QuantizedModel) -> float:
    """Return the stored bits of the quantized layers by their weights, scales and zero points counted."""
    weights = sum(stored.shape[0] * stored.shape[1] for stored in quantized.tensors.values())
    return 8 * sum(stored.nbytes for stored in quantized.tensors.values()) / weights


def llama() -> list[dict[str, object]]:
    """Measure the rows of ``LLAMA``."""
    folder = CASES / "llama-260k"
    model = open_model(folder)
    data = open_dataset(folder / "calibration_tokens.npy", model, split="calibration")
    test = open_dataset(folder / "evaluation_tokens.npy", model, split="evaluation")
    known = calibrate(model, data, batch_size=16)
    layers = [layer for layer in model.summary.stored if layer.kind is LayerKind.LINEAR]
    rows: list[dict[str, object]] = []
    print(f"\nllama-260k, {len(layers)} linear layers, KL in nats per token\n")
    print(f"{'scheme':22}{'algorithm':18}{'bits':>6}{'KL':>9}{'to reach':>10}{'s':>7}  others")
    for scheme, algorithm, wanted, others in LLAMA:
        start = time.perf_counter()
        plan = Plan.uniform(layers, scheme, algorithm=algorithm)
        quantized = quantize(model, plan, curvature=known.curvature, data=data)
        seconds = time.perf_counter() - start
        kl = evaluate(model, quantized.bind(model), test, batch_size=32)["kl"].value
        bits = bits_per_weight(quantized)
        print(f"{scheme:22}{algorithm:18}{bits:6.2f}{kl:9.4f}{wanted or '':>10}{seconds:7.1f}  {others}", flush=True)
        rows.append({"scheme": scheme, "algorithm": algorithm, "bits": bits, "kl": kl, "to_reach": wanted})
    return rows


def resnet() -> list[dict[str, object]]:
    """Measure the rows of ``RESNET``: as quantized, and with biases and batch norms corrected."""
    folder = CASES / "resnet20-cifar10"
    source = ROOT / "tests" / "real" / "resnet20.py"
    model = open_model(source, weights=folder / "model.safetensors", trust=True)
    data = open_dataset(folder / "calibration.npz", model, split="calibration")
    test = open_dataset(folder / "evaluation.npz", model, split="evaluation")
    known = calibrate(model, data, batch_size=16)
    print("\nResNet-20, CIFAR-10 top-1 in % (floating point 81.8)\n")
    print(f"{'weights':18}{'inputs':18}{'algorithm':12}{'bits':>6}{'top-1':>7}{'corrected':>10}{'to reach':>10}")
    return [_resnet_row(model, data, test, known, *row) for row in RESNET]


def _resnet_row(
    model: Model, data: Dataset, test: Dataset, known: Calibration, scheme: str, algorithm: str,
    inputs: str | None, wanted: float | None,
) -> dict[str, object]:  # fmt: skip
    from workbench.runtime.calibrated_ranges import all_ranges, ranges_in_force

    plan = Plan.uniform(model.summary.stored, scheme, algorithm=algorithm, inputs=inputs, range_method="mse")
    ranges = ranges_in_force(model.summary, plan, all_ranges(known.statistics), {}) if inputs else {}
    quantized = quantize(model, plan, ranges=ranges, curvature=known.curvature, data=data)
    corrected = reestimate_norms(model, correct_biases(model, quantized, data), data)
    before, after = (
        evaluate(model, each.bind(model), test, batch_size=200)["accuracy"].value for each in (quantized, corrected)
    )
    bits = bits_per_weight(quantized)
    print(
        f"{scheme:18}{inputs or '-':18}{algorithm:12}{bits:6.2f}{before:7.2f}{after:10.2f}{wanted or '':>10}",
        flush=True,
    )
    return {
        "scheme": scheme, "inputs": inputs, "algorithm": algorithm, "bits": bits, "top1": before, "corrected": after,
        "to_reach": wanted,
    }  # fmt: skip


def main() -> None:
    """Print both tables and the JSON line."""
    if not CASES.is_dir():
        sys.exit(f"the cases are not at {CASES}; set WORKBENCH_CASES")
    print(json.dumps({"llama-260k": llama(), "resnet20": resnet()}))


if __name__ == "__main__":
    main()

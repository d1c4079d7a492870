"""What rounding algorithms and training reach on real models, with the figure to reach and other tools beside.

    python tests/benchmarks/algorithms.py [--only rounding gptq sequential learned qat resnet] [--threads 2]

The small Llama: its 35 linear layers in one scheme, KL to floating point in nats per token over the 256 evaluation
windows; whatever needs data sees the 256 calibration windows only.  ResNet-20: top-1 on 2,000 images.  Bits per weight
count scales and zero points.  Every option is the default.  The last line is the same as JSON.  The models are found
through ``WORKBENCH_CASES``; the whole takes about a quarter of an hour on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch

from workbench.measurement.calibrate import Calibration, calibrate
from workbench.measurement.evaluate import evaluate
from workbench.measurement.second_moments import SecondMoments
from workbench.models.data.datasets import Dataset, open_dataset
from workbench.models.layer import LayerKind
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.quantization.quantize import quantize
from workbench.quantization.quantized_model import QuantizedModel
from workbench.quantization.train import train
from workbench.session.calibrated_ranges import all_ranges, ranges_in_force

ROOT = Path(__file__).parents[2]
CASES = Path(os.environ.get("WORKBENCH_CASES", ROOT / ".." / "shared" / "cases"))
QAT = "qat"
CORRECTIONS = ("bias-correction", "norm-reestimation")
FLOATING_POINT = 81.8

LLAMA = {
    "rounding": (
        ("int4-g32-asym", "rtn-weighted", 0.065, "torchao, quanto, gguf rounding 0.073 to 0.082"),
        ("int3-g32-asym", "rtn-weighted", 0.38, "torchao 0.565, HQQ 4.00 bits 0.416"),
        ("int4-g32-asym-zfp16", "hqq", 0.0685, "HQQ 5.00 bits 0.0685"),
        ("int3-g32-asym-zfp16", "hqq", 0.416, "HQQ 4.00 bits 0.416"),
    ),
    "gptq": (
        ("int4-g32-asym", "gptq", 0.042, "GPTQ 0.0495"),
        ("int4-g64-asym", "gptq", 0.055, "GPTQ 0.0632"),
        ("int3-g32-asym", "gptq", 0.24, "GPTQ 0.288"),
    ),
    "sequential": (
        ("int4-g32-asym", "gptq-sequential", 0.042, "GPTQ 0.0495"),
        ("int4-g64-asym", "gptq-sequential", 0.055, "GPTQ 0.0632, SignRound 0.0469"),
        ("int3-g32-asym", "gptq-sequential", 0.24, "GPTQ 0.288, SignRound (g64) 0.225"),
    ),
    "learned": (
        ("int4-g64-asym", "learned", 0.044, "SignRound 0.0469"),
        ("int3-g64-asym", "learned", 0.21, "SignRound 0.225"),
    ),
    QAT: (("int3-g32-asym", QAT, 0.12, "GPTQ 0.288"),),
}  # fmt: skip
"""Scheme, algorithm, the KL to reach, other tools' KL at this format."""

RESNET = (
    ("int4-channel", None, "rtn-clip", (), None),
    ("int4-channel", None, "rtn-clip", CORRECTIONS, None),
    ("int4-channel", None, "gptq", CORRECTIONS, FLOATING_POINT - 1.0),
    ("int4-channel-asym", None, "gptq", CORRECTIONS, FLOATING_POINT - 1.0),
    ("int8-channel", "int8-tensor-asym", "rtn-clip", (), FLOATING_POINT - 0.2),
    ("int3-channel-asym", None, "rtn-clip", (), None),
    ("int3-channel-asym", None, QAT, (), FLOATING_POINT - 2.0),
)
"""Weights, inputs, algorithm, transforms, the top-1 to reach in %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a table; ``value`` is a KL, to reach from above, or (``is_top1``) a top-1 in %, from below."""

    scheme: str
    inputs: str | None
    algorithm: str
    transforms: tuple[str, ...]
    bits: float
    value: float
    to_reach: float | None
    seconds: float
    others: str = ""
    is_top1: bool = False

    @property
    def passed(self) -> bool | None:
        """Whether the figure is reached; None where nothing was asked."""
        if self.to_reach is None:
            return None
        return self.value >= self.to_reach if self.is_top1 else self.value <= self.to_reach

    def line(self, digits: int) -> str:
        """Return the row as text."""
        what = " + ".join([self.algorithm, *self.transforms])
        expected = "" if self.to_reach is None else f"{self.to_reach:.{digits}f}"
        verdict = {None: "", True: "pass", False: "MISS"}[self.passed]
        scheme = self.scheme if self.inputs is None else f"{self.scheme} {self.inputs}"
        figures = f"{self.bits:6.2f} {self.value:9.{digits}f} {expected:>9} {verdict:5} {self.seconds:6.0f}"
        return f"{scheme:30} {what:45} {figures}  {self.others}".rstrip()


def bits_per_weight(quantized: QuantizedModel) -> float:
    """Return the stored bits of the quantized layers by their weights, scales and zero points counted."""
    weights = sum(stored.shape[0] * stored.shape[1] for stored in quantized.tensors.values())
    return 8 * sum(stored.nbytes for stored in quantized.tensors.values()) / weights


def header(title: str, figure: str) -> None:
    """Print the head of a table."""
    print(f"\n{title}\n\n{'format':30} {'algorithm':45} {'bits':>6} {figure:>9} {'to reach':>9} {'':5} {'s':>6}")


def llama(parts: Sequence[str]) -> list[Row]:
    """Measure the rows of ``LLAMA`` in ``parts``."""
    folder = CASES / "llama-260k"
    model = open_model(folder)
    data = open_dataset(folder / "calibration_tokens.npy", model, split="calibration")
    test = open_dataset(folder / "evaluation_tokens.npy", model, split="evaluation")
    known = calibrate(model, data, batch_size=16)
    layers = [layer for layer in model.summary.stored if layer.kind is LayerKind.LINEAR]
    header(f"llama-260k, {len(layers)} linear layers, KL in nats per token", "KL")
    result = []
    for scheme, algorithm, expected, others in (row for part in parts for row in LLAMA[part]):
        start = time.perf_counter()
        if algorithm == QAT:
            quantized = train(model, Plan.uniform(layers, scheme), data)
        else:
            plan = Plan.uniform(layers, scheme, algorithm=algorithm)
            quantized = quantize(
                model, plan, curvature=SecondMoments(model, data, known.curvature, batch_size=16), data=data
            )
        seconds = time.perf_counter() - start
        kl = evaluate(model, quantized.bind(model), test, batch_size=32)["kl"].value
        result.append(
            Row(
                scheme=scheme, inputs=None, algorithm=algorithm, transforms=(), bits=bits_per_weight(quantized),
                value=kl, to_reach=expected, seconds=seconds, others=others,
            )
        )  # fmt: skip
        print(result[-1].line(4), flush=True)
    return result


def resnet() -> list[Row]:
    """Measure the rows of ``RESNET``."""
    folder = CASES / "resnet20-cifar10"
    model = open_model(ROOT / "tests" / "real" / "resnet20.py", weights=folder / "model.safetensors", trust=True)
    data = open_dataset(folder / "calibration.npz", model, split="calibration")
    test = open_dataset(folder / "evaluation.npz", model, split="evaluation")
    known = calibrate(model, data, batch_size=16)
    header(f"ResNet-20, CIFAR-10, top-1 in % (floating point {FLOATING_POINT})", "top-1")
    result = []
    for scheme, inputs, algorithm, transforms, expected in RESNET:
        start = time.perf_counter()
        quantized = _resnet(model, data, known, scheme, inputs, algorithm, transforms)
        seconds = time.perf_counter() - start
        top1 = evaluate(model, quantized.bind(model), test, batch_size=200)["accuracy"].value
        result.append(
            Row(
                scheme=scheme, inputs=inputs, algorithm=algorithm, transforms=transforms, value=top1, to_reach=expected,
                bits=bits_per_weight(quantized), seconds=seconds, is_top1=True,
            )
        )  # fmt: skip
        print(result[-1].line(2), flush=True)
    return result


def _resnet(
    model: Model, data: Dataset, known: Calibration, scheme: str, inputs: str | None, algorithm: str,
    transforms: tuple[str, ...],
) -> QuantizedModel:  # fmt: skip
    plan = Plan.uniform(model.summary.stored, scheme, inputs=inputs, range_method="mse")
    if algorithm == QAT:
        return train(model, plan, data)
    plan = Plan.uniform(model.summary.stored, scheme, inputs=inputs, range_method="mse", algorithm=algorithm)
    ranges = ranges_in_force(model.summary, plan, all_ranges(known.statistics), {}) if inputs else {}
    plan = replace(plan, transforms=transforms)
    return quantize(
        model, plan, ranges=ranges, curvature=SecondMoments(model, data, known.curvature, batch_size=16), data=data
    )


def main() -> None:
    """Print the tables that were asked for and the JSON line."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--only", nargs="*", choices=(*LLAMA, "resnet"), help="parts to run (default: all)")
    options.add_argument("--threads", type=int, default=2)
    chosen = options.parse_args()
    if not CASES.is_dir():
        sys.exit(f"the cases are not at {CASES}; set WORKBENCH_CASES")
    torch.set_num_threads(chosen.threads)
    parts = chosen.only or [*LLAMA, "resnet"]
    language = llama([part for part in LLAMA if part in parts]) if set(parts) & set(LLAMA) else []
    images = resnet() if "resnet" in parts else []
    missed = [row for row in (*language, *images) if row.passed is False]
    print(f"\n{len(missed)} of {sum(row.passed is not None for row in (*language, *images))} figures missed")
    tables = {"llama-260k": language, "resnet20": images}
    print(json.dumps({name: [{**asdict(row), "passed": row.passed} for row in rows] for name, rows in tables.items()}))


if __name__ == "__main__":
    main()

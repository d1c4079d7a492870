"""Runtimes x plans: bytes, distance there and here, speed, memory, with the floating-point model in each runtime.

``python -m tests.benchmarks.runtimes MODEL DATA [SCHEME[+INPUTS] ...]``: a model, evaluation data, number formats.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace

import workbench as wb
from workbench.deployment.proof.onnx_proof import RUNTIMES, prove_in_onnx
from workbench.errors import WorkbenchError
from workbench.models.data.datasets import open_dataset
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.models.summary import quantizable
from workbench.planning.plan import Plan
from workbench.quantization.quantized_model import QuantizedModel
from workbench.session.calibrated_ranges import ranges_in_force

SAMPLES, POSITIONS = 4, 8
SCHEMES = ("keep", "int8-channel", "int4-g32-asym", "int8-channel+int8-token")


def main(place: str, data: str, *schemes: str) -> None:
    """Print a table and one line of JSON."""
    model = open_model(place)
    batch = next(iter(open_dataset(data, model, samples=SAMPLES).batches(SAMPLES)))
    length = batch["input_ids"].shape[1] if "input_ids" in batch else 0
    places = [length // 8 + step * (length - length // 8 - 2) // (POSITIONS - 1) for step in range(POSITIONS)]
    rows = []
    print(f"{'runtime':26} {'plan':26} {'file MB':>8} {'there':>9} {'here':>9} {'apart':>9} {'speed/s':>9} {'MB':>6}")
    for scheme in schemes or SCHEMES:
        try:
            quantized = _quantized(model, data, scheme)
        except WorkbenchError as error:
            print(f"{'-':26} {scheme:26} {error}")
            continue
        for runtime in RUNTIMES:
            try:
                proof = prove_in_onnx(
                    quantized, model, None, batch, places if model.summary.output.per_token else [], runtime=runtime,
                    data=data,
                )  # fmt: skip
            except WorkbenchError as error:
                print(f"{runtime:26} {scheme:26} {error}")
                continue
            rows.append({**asdict(proof), "scheme": scheme})
            figures = f"{proof.file_bytes / 1e6:8.2f} {proof.runtime_loss:9.2e} {proof.plan_loss:9.2e}"
            speed = f"{proof.difference:9.2e} {proof.prompt_speed:9.1f} {proof.peak_bytes / 1e6:6.0f}"
            print(f"{proof.runtime:26} {scheme:26} {figures} {speed}", flush=True)
    print(json.dumps(rows))


def _quantized(model: Model, data: str, scheme: str) -> QuantizedModel:
    weights, _, inputs = scheme.partition("+")
    if weights == "keep":
        return wb.quantize(model, Plan())
    names = [layer.name for layer in quantizable(model.summary.layers) if layer.matrix[1] % 32 == 0]
    plan = Plan(name=scheme).assign(names, weights=weights, inputs=inputs or None, algorithm="rtn")
    if "tensor" not in inputs:
        return wb.quantize(model, plan)
    session = wb.calibrate(model, data, samples=8)
    ranges = ranges_in_force(model.summary, plan, session.ranges, {})
    return wb.quantize(model, plan, session=replace(session, active_ranges=ranges))


if __name__ == "__main__":
    main(*sys.argv[1:])

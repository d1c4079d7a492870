"""A model's plans as GGUF files in llama.cpp: bytes, loss there and here, speed, memory, time beside that of a copy.

``python -m tests.benchmarks.gguf_runtime MODEL TEXT [SCHEME ...]``: a folder or a GGUF file, a text, number formats.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import torch

from workbench.deployment.exporters import exporter
from workbench.deployment.proof.runtime_proof import prove_in_llama_cpp
from workbench.models.data.inputs import fast_tokenizer
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.steps.files.first_session import as_stored

LENGTH, SAMPLES, POSITIONS = 128, 2, 100


def main(place: str, text: str, *schemes: str) -> None:
    """Print a table and one line of JSON."""
    model = open_model(place)
    tokenizer = fast_tokenizer(model.inputs.tokenizer)
    ids = tokenizer.encode(Path(text).read_text(encoding="utf-8"), add_special_tokens=False).ids
    samples = torch.tensor(ids[: LENGTH * SAMPLES]).reshape(SAMPLES, LENGTH)
    sentence = tokenizer.decode(samples[0].tolist())
    places = [LENGTH // 8 + step * (LENGTH - LENGTH // 8 - 2) // (POSITIONS - 1) for step in range(POSITIONS)]
    rows = []
    print("plan        tensors MB  loss there  loss here  apart     top-1  prompt t/s  gen t/s  MB    export s  copy s")
    for scheme in schemes or ("stored",):
        plan = as_stored(model, Plan(name="stored"))
        if scheme != "stored":
            fitting = [layer.name for layer in model.summary.stored if layer.matrix[1] % 32 == 0]
            plan = Plan(name=scheme).assign(fitting, weights=scheme, algorithm="rtn")
        quantized = quantize(model, plan)
        with tempfile.TemporaryDirectory() as folder:
            out, began = Path(folder) / "model.gguf", time.perf_counter()
            exporter("gguf").export(quantized, model, out, silent)
            exported, began = time.perf_counter() - began, time.perf_counter()
            shutil.copyfile(out, Path(folder) / "copy")
            copied = time.perf_counter() - began
            proof = prove_in_llama_cpp(
                quantized, model, out, samples, places, data=text, text=sentence, ids=tokenizer.encode(
                    sentence, add_special_tokens=False).ids, progress=silent)  # fmt: skip
        rows.append({**asdict(proof), "scheme": scheme, "export_seconds": exported, "copy_seconds": copied})
        figures = (
            f"{proof.tensor_bytes / 1e6:10.1f}  {proof.runtime_loss:10.5f}  {proof.plan_loss:9.5f}  "
            f"{proof.difference:8.6f}  {proof.agreement:5.2f}  {proof.prompt_speed:10.1f}  "
            f"{proof.generation_speed:7.1f}  {proof.peak_bytes / 1e6:4.0f}  {exported:8.2f}  {copied:6.2f}"
        )
        print(f"{scheme:10}  {figures}  tokens {proof.tokens}", flush=True)
    print(json.dumps(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])

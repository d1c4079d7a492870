"""A quantized model's ONNX file in ONNX Runtime or OpenVINO, beside what was evaluated."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from workbench.deployment.onnx.capture import require_onnx
from workbench.deployment.onnx.file import LARGE, content_of, prove, refusals, require_fit, write
from workbench.deployment.proof.child import SECONDS, carry_out, memory_for, require_package, threads_of_machine
from workbench.deployment.proof.losses import cosine_distance, divergence, log_softmax
from workbench.deployment.proof.record import RuntimeProof, require_as_evaluated
from workbench.deployment.proof.rounding import as_in_onnx_runtime, repeated
from workbench.deployment.tensors import check
from workbench.errors import BackendUnavailableError, nearest
from workbench.models.data.inputs import arguments_for
from workbench.models.model import Batch, Model
from workbench.models.sources.onnx_file import OnnxModel
from workbench.models.summary import OutputKind
from workbench.numerics.detections import answers_of
from workbench.progress import Progress, part_of, silent

if TYPE_CHECKING:
    from workbench.quantization.quantized_model import QuantizedModel

RUNTIMES = {"onnxruntime": ("onnxruntime", "onnx", "ONNX Runtime"), "openvino": ("openvino", "openvino", "OpenVINO")}
"""Package, extra and title of every runtime that reads ONNX files."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """What a runtime gave: ``values`` float32, those after ``positions`` alone; seconds of one run of all samples."""

    values: np.ndarray
    runtime: str
    seconds: float
    peak_bytes: int


def require_runtime(name: str) -> None:
    """Raise BackendUnavailableError where the packages of a runtime are not installed."""
    if name not in RUNTIMES:
        raise BackendUnavailableError(f"no runtime is called {name!r}{nearest(name, RUNTIMES)}")
    require_onnx()
    require_package(*RUNTIMES[name])


def run(
    file: Path, batch: Batch, positions: Sequence[int], runtime: str = "onnxruntime", *, threads: int | None = None,
    output: str = "", seconds: float = SECONDS, progress: Progress = silent,
) -> Run:  # fmt: skip
    """Run ``file`` on a batch in a limited process; ``positions`` picks along the second axis of its ``output`` ("":
    the first).

    Raises ExportError with the runtime's own words for a file that it does not run, BackendUnavailableError where it is
    not installed.
    """
    require_runtime(runtime)
    with tempfile.TemporaryDirectory(prefix="workbench-proof-") as folder:
        out, arrays = str(Path(folder) / "out"), Path(folder) / "arrays.npz"
        stored: dict[str, Any] = {name: tensor.numpy() for name, tensor in batch.items()}
        np.savez(arrays, **stored)
        request = {
            "file": str(file.absolute()), "arrays": str(arrays), "out": out, "runtime": runtime, "output": output,
            "positions": list(positions), "threads": threads or threads_of_machine(), "memory": memory_for(file),
        }  # fmt: skip
        script, title = Path(__file__).with_name("onnx_process.py"), RUNTIMES[runtime][2]
        carry_out(script, request, Path(folder) / "log", title, seconds, progress, ("Error:", "Fail:", "Exception"))
        figures = json.loads(Path(out + ".json").read_text(encoding="utf-8"))
        values = np.load(out + ".npy", allow_pickle=False)
    return Run(values=values, runtime=figures["runtime"], seconds=figures["seconds"], peak_bytes=figures["peak_bytes"])


def prove_in_onnx(
    quantized: QuantizedModel, model: Model, file: Path | None, batch: Batch, positions: Sequence[int], *,
    runtime: str = "onnxruntime", data: str, threads: int | None = None, progress: Progress = silent,
) -> RuntimeProof:  # fmt: skip
    """Run the ONNX file of ``quantized`` on ``batch`` and compare with the evaluation, for tokens after ``positions``.

    ``file`` is an exported one, which must hold what was quantized, else one is written and removed.  Raises
    ExportError for a file that differs (the first tensor and value), that the runtime does not run, or whose answers
    differ by more than its rounding explains; BackendUnavailableError.
    """
    require_runtime(runtime)
    batch = {name: tensor for name, tensor in batch.items() if name != "labels"}
    require_fit(refusals(quantized, check(quantized, model), runtime), runtime)
    content = content_of(quantized, check(quantized, model))
    with tempfile.TemporaryDirectory(prefix="workbench-proof-") as folder:
        place = file or Path(folder) / "model.onnx"
        if file is None:
            data_file = place.with_name("model.onnx.data") if content.nbytes > LARGE else None
            write(place, content, data_file, part_of(progress, 0.0, 0.2))
        prove(place, content, part_of(progress, 0.2, 0.3))
        size = sum(each.stat().st_size for each in place.parent.glob(f"{place.name}*"))
        rounded_there = as_in_onnx_runtime(quantized, place)
        answers = _run(model, place, batch, positions, runtime, threads, part_of(progress, 0.3, 0.7))
    progress(0.7, "evaluating the same samples")
    theirs = _comparable(answers.values, model)
    ours, reference = (_answers(each, batch, positions) for each in (quantized.bind(model), model))
    rounded = ours if rounded_there is None else _answers(rounded_there.bind(model), batch, positions)
    twin = repeated(quantized, model)
    again = None if twin is None else _answers(twin, batch, positions)
    logits = model.summary.output.is_logits
    apart, same = divergence if logits else cosine_distance, _same if logits else _none_same
    per_run = next(iter(batch.values())).shape[:2].numel() if model.inputs.tokens else len(next(iter(batch.values())))
    proof = RuntimeProof(
        runtime=answers.runtime, plan=quantized.plan.hash, plan_name=quantized.plan.name, file_bytes=size,
        tensor_bytes=content.nbytes, plan_loss=apart(reference, ours), runtime_loss=apart(reference, theirs),
        difference=apart(ours, theirs), unit="nats" if logits else "1 - cosine",
        agreement=same(ours, theirs),
        positions=ours.size // max(ours.shape[-1], 1), prompt_speed=per_run / answers.seconds, generation_speed=0.0,
        peak_bytes=answers.peak_bytes, tokens="", data=data, rounding=apart(ours, rounded),
        repeat=math.nan if again is None else apart(ours, again),
        repeat_agreement=math.nan if again is None else same(ours, again),
    )  # fmt: skip
    return require_as_evaluated(proof, RUNTIMES[runtime][2])


def _run(
    model: Model, place: Path, batch: Batch, positions: Sequence[int], runtime: str, threads: int | None,
    progress: Progress,
) -> Run:  # fmt: skip
    """Run a file on what it takes, and return what the model's own output is made of."""
    if not isinstance(model, OnnxModel):
        if "attention_mask" in model.inputs.takes and "input_ids" in batch:  # windows of text have none: all is seen
            batch = {"attention_mask": torch.ones_like(batch["input_ids"]), **batch}
        named = {**batch, **arguments_for(batch, model.inputs)}  # pictures are "inputs" in data, and pixel_values there
        return run(place, named, positions, runtime, threads=threads, progress=progress)
    answer = model.answer
    picks = [] if answer.pooled else positions
    answers = run(place, answer.inputs(batch), picks, runtime, threads=threads, output=answer.name, progress=progress)
    return replace(answers, values=answer.output(torch.from_numpy(answers.values), batch).numpy())


def _same(first: np.ndarray, second: np.ndarray) -> float:
    """Return the share of places where both have the same likeliest class."""
    return float((first.argmax(-1) == second.argmax(-1)).mean())


def _none_same(first: np.ndarray, second: np.ndarray) -> float:
    """Return NaN: embeddings have no classes."""
    return math.nan


def _answers(model: Model, batch: Batch, positions: Sequence[int]) -> np.ndarray:
    """Return log-probabilities ``[..., classes]`` or embeddings, float64; one sample at a time."""
    rows = []
    for place in range(len(next(iter(batch.values())))):
        with torch.no_grad():
            output = model.run({name: tensor[place : place + 1] for name, tensor in batch.items()})
        rows.append((output[:, list(positions)] if positions else output).float().cpu().numpy())
    return _comparable(np.concatenate(rows), model)


def _comparable(values: np.ndarray, model: Model) -> np.ndarray:
    if model.summary.output is OutputKind.DETECTIONS:
        values = answers_of(torch.from_numpy(values)).numpy()
    if model.summary.output is OutputKind.POSITION_CLASSES and values.ndim > 3:  # classes of pixels, along axis 1
        values = np.moveaxis(values.reshape(*values.shape[:2], -1), 1, -1)
    return log_softmax(values) if model.summary.output.is_logits else values.astype(np.float64)

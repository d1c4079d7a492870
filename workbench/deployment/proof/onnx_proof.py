"""A quantized model's ONNX file in ONNX Runtime or OpenVINO, beside what was evaluated."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workbench.deployment.onnx.capture import require_onnx
from workbench.deployment.onnx.file import LARGE, content_of, prove, refusals, require_fit, write
from workbench.deployment.proof import child
from workbench.deployment.proof.losses import cosine_distance, divergence, log_softmax, relative_squared_error
from workbench.deployment.proof.onnx_layers import by_layers
from workbench.deployment.proof.record import RuntimeProof, require_as_evaluated
from workbench.deployment.proof.rounding import as_in_onnx_runtime, repeated
from workbench.deployment.tensors import check
from workbench.errors import BackendUnavailableError, ExportError, nearest
from workbench.measurement.units import COSINE_DISTANCE, NATS, RELATIVE_SQUARED_ERROR
from workbench.models.data.inputs import arguments_for
from workbench.models.model import Batch, Model
from workbench.models.sources.exported_program import pieces_of
from workbench.models.sources.onnx_file import OnnxModel
from workbench.models.summary import OutputKind
from workbench.numerics.detections import answers_of
from workbench.progress import Progress, part_of, silent
from workbench.quantization.quantized_model import QuantizedModel

RUNTIMES = {name: child.PACKAGES[name][2] for name in ("onnxruntime", "openvino")}
"""The title of every runtime that reads ONNX files."""


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
    child.require_package(name)


def run(
    file: Path, batch: Batch | Sequence[Batch], positions: Sequence[int], runtime: str = "onnxruntime", *,
    threads: int | None = None, output: str = "", seconds: float = child.SECONDS, progress: Progress = silent,
) -> Run:  # fmt: skip
    """Run ``file`` on a batch in a limited process; ``positions`` picks along the second axis of its ``output`` ("":
    the first).  Of several batches, it runs one after the other, and the values of each are one more row.

    Raises ExportError with the runtime's own words for a file that it does not run, BackendUnavailableError where it is
    not installed.
    """
    require_runtime(runtime)
    with child.proof_folder() as folder:
        several = not isinstance(batch, Mapping)
        asked = {
            "output": output, "positions": list(positions), "taps": [], "memory": child.memory_for(file),
            "pieces": len(batch) if several else 0,
        }  # fmt: skip
        if isinstance(batch, Mapping):
            arrays = _arrays(batch)
        else:
            arrays = {f"{at}:{name}": each for at, piece in enumerate(batch) for name, each in _arrays(piece).items()}
        out = _carry_out(file, arrays, folder, runtime, asked, threads, seconds, progress)
        figures = json.loads(Path(out + ".json").read_text(encoding="utf-8"))
        values = np.load(out + ".npy", allow_pickle=False)
    return Run(values=values, runtime=figures["runtime"], seconds=figures["seconds"], peak_bytes=figures["peak_bytes"])


def _carry_out(
    file: Path, arrays: Mapping[str, np.ndarray], folder: Path, runtime: str, asked: Mapping[str, Any],
    threads: int | None, seconds: float, progress: Progress,
) -> str:  # fmt: skip
    """Have a process run ``file``; returns the path that its results have, up to their endings."""
    out, stored = str(folder / "out"), dict[str, Any](arrays)
    np.savez(folder / "arrays.npz", **stored)
    request = {
        **asked, "file": str(file.absolute()), "arrays": str(folder / "arrays.npz"), "out": out, "runtime": runtime,
        "threads": threads or child.threads_of_machine(),
    }  # fmt: skip
    script, title = Path(__file__).with_name("onnx_process.py"), RUNTIMES[runtime]
    child.carry_out(script, request, folder / "log", title, seconds, progress, ("Error:", "Fail:", "Exception"))
    return out


def _arrays(batch: Batch) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in batch.items()}


def _layers(
    quantized: QuantizedModel, model: Model, place: Path, batch: Batch, runtime: str, threads: int | None,
    progress: Progress,
) -> tuple[str, float]:  # fmt: skip
    """Return how the file's layers agree with the evaluation, each by itself, on the first sample: in words, and by how
    much."""
    piece = next(pieces_of(batch, model.inputs.batch or 1))
    with child.proof_folder() as folder:

        def run(file: Path, arrays: Mapping[str, np.ndarray], names: Sequence[str]) -> dict[str, np.ndarray]:
            asked = {"output": "", "positions": [], "taps": list(names), "pieces": 0, "memory": child.memory_for(place)}
            out = _carry_out(file, arrays, folder, runtime, asked, threads, child.SECONDS, progress)
            with np.load(f"{out}.npz", allow_pickle=False) as stored:
                return {name: stored[str(at)] for at, name in enumerate(names)}

        try:
            agreement = by_layers(place, quantized.bind(model), piece, _arrays(_named(model, piece)), run, folder)
        except ExportError as error:  # the file itself has run
            return f"its layers cannot be looked at one by one: {error}", math.nan
    return ("", math.nan) if agreement is None else (agreement.in_words, agreement.apart)


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
    with child.proof_folder() as folder:
        place = file or folder / "model.onnx"
        if file is None:
            data_file = place.with_name("model.onnx.data") if content.nbytes > LARGE else None
            write(place, content, data_file, part_of(progress, 0.0, 0.2))
        prove(place, content, part_of(progress, 0.2, 0.3))
        size = child.bytes_of(place)
        rounded_there = as_in_onnx_runtime(quantized, place)
        answers = _run(model, place, batch, positions, runtime, threads, part_of(progress, 0.3, 0.6))
        layers = _layers(quantized, model, place, batch, runtime, threads, part_of(progress, 0.6, 0.7))
    progress(0.7, "evaluating the same samples")
    theirs = _comparable(answers.values, model)
    ours, reference = (_answers(each, batch, positions) for each in (quantized.bind(model), model))
    rounded = ours if rounded_there is None else _answers(rounded_there.bind(model), batch, positions)
    twin = repeated(quantized, model)
    again = None if twin is None else _answers(twin, batch, positions)
    logits = model.summary.output.is_logits
    by_position = model.summary.output is OutputKind.POSITION_CLASSES and ours.ndim == 3
    summed = ours.shape[1] if by_position else 1  # as the evaluation, which counts in samples
    apart, unit = (partial(divergence, summed=summed), NATS) if logits else (cosine_distance, COSINE_DISTANCE)
    if not logits and ours.shape[-1] == 1:
        apart, unit = relative_squared_error, RELATIVE_SQUARED_ERROR
    same = _same if logits else lambda *_: math.nan
    per_run = next(iter(batch.values())).shape[:2].numel() if model.inputs.tokens else len(next(iter(batch.values())))
    proof = RuntimeProof(
        runtime=answers.runtime, plan=quantized.plan.hash, plan_name=quantized.plan.name, file_bytes=size,
        tensor_bytes=content.nbytes, plan_loss=apart(reference, ours), runtime_loss=apart(reference, theirs),
        difference=apart(ours, theirs), unit=unit,
        agreement=same(ours, theirs),
        positions=ours.size // max(ours.shape[-1], 1), prompt_speed=per_run / answers.seconds, generation_speed=0.0,
        peak_bytes=answers.peak_bytes, tokens="", data=data, rounding=apart(ours, rounded),
        repeat=math.nan if again is None else apart(ours, again),
        repeat_agreement=math.nan if again is None else same(ours, again),
        layers=layers[0], apart_by_layer=layers[1],
    )  # fmt: skip
    return require_as_evaluated(proof, RUNTIMES[runtime], summed)


def _run(
    model: Model, place: Path, batch: Batch, positions: Sequence[int], runtime: str, threads: int | None,
    progress: Progress,
) -> Run:  # fmt: skip
    """Run a file on what it takes, and return what the model's own output is made of."""
    if not isinstance(model, OnnxModel):
        return run(place, _named(model, batch), positions, runtime, threads=threads, progress=progress)
    answer, samples = model.answer, len(next(iter(batch.values())))
    picks = [] if answer.pooled else positions
    pieces = [batch] if model.inputs.batch is None else list(pieces_of(batch, model.inputs.batch))
    named = [_named(model, piece) for piece in pieces]
    answers = run(place, named, picks, runtime, threads=threads, output=answer.name, progress=progress)
    values = [answer.output(torch.from_numpy(each), piece) for each, piece in zip(answers.values, pieces, strict=True)]
    return replace(answers, values=torch.cat(values)[:samples].numpy())


def _named(model: Model, batch: Batch) -> Batch:
    """Return what the file takes, by its names."""
    if isinstance(model, OnnxModel):
        return model.answer.inputs(batch)
    if "attention_mask" in model.inputs.takes and "input_ids" in batch:  # windows of text have none: all is seen
        batch = {"attention_mask": torch.ones_like(batch["input_ids"]), **batch}
    return {**batch, **arguments_for(batch, model.inputs)}  # pictures are "inputs" in data, and pixel_values there


def _same(first: np.ndarray, second: np.ndarray) -> float:
    """Return the share of places where both have the same likeliest class."""
    return float((first.argmax(-1) == second.argmax(-1)).mean())


def _answers(model: Model, batch: Batch, positions: Sequence[int]) -> np.ndarray:
    """Return log-probabilities ``[..., classes]`` or embeddings, float64; one sample at a time."""
    rows = []
    for place in range(len(next(iter(batch.values())))):
        with torch.no_grad():
            output = model.run({name: tensor[place : place + 1] for name, tensor in batch.items()})
        rows.append((output[:, list(positions)] if positions else output).float().cpu().numpy())
    return _comparable(np.concatenate(rows), model)


def _comparable(values: np.ndarray, model: Model) -> np.ndarray:
    """Return log-probabilities; of an embedding all numbers of a sample as one vector, as the evaluation has them."""
    if model.summary.output is OutputKind.DETECTIONS:
        values = answers_of(torch.from_numpy(values)).numpy()
    if model.summary.output is OutputKind.EMBEDDING:
        values = values.reshape(len(values), -1)
    if model.summary.output is OutputKind.POSITION_CLASSES and values.ndim > 3:  # classes of pixels, along axis 1
        values = np.moveaxis(values.reshape(*values.shape[:2], -1), 1, -1)
    return log_softmax(values) if model.summary.output.is_logits else values.astype(np.float64)

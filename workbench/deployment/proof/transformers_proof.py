"""A quantized model's compressed-tensors folder run by transformers beside what was evaluated."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workbench.deployment.checkpoints.compressed_tensors import CompressedTensorsMethod
from workbench.deployment.checkpoints.write import prove_checkpoint, write_checkpoint
from workbench.deployment.proof.child import SECONDS, carry_out, require_package, threads_of_machine
from workbench.deployment.proof.llama_cpp import Run
from workbench.deployment.proof.losses import cosine_distance, divergence
from workbench.deployment.proof.record import RuntimeProof, require_as_evaluated
from workbench.deployment.proof.rounding import as_in_transformers
from workbench.deployment.proof.runtime_proof import _answers, _embedding_losses, _token_losses, _tokens
from workbench.errors import ExportError
from workbench.models.model import Model
from workbench.models.sources.safetensors_file import weight_files
from workbench.models.sources.stored import tensors_in_files
from workbench.models.summary import ModelSummary, OutputKind
from workbench.progress import Progress, part_of

if TYPE_CHECKING:
    import torch

    from workbench.quantization.quantized_model import QuantizedModel

MEMORY, SPARE = 3.0, 6 << 30
"""The process may hold this many times the weights in float32, and so many bytes more."""
MARKS = ("Error:", "error:", "Killed")


def require_transformers() -> None:
    """Raise BackendUnavailableError, with the line that installs it, where compressed-tensors is not installed."""
    require_package("transformers")


def prove_in_transformers(
    quantized: QuantizedModel, model: Model, file: Path | None, samples: torch.Tensor, positions: Sequence[int], *,
    data: str, text: str = "", ids: Sequence[int] = (), threads: int | None = None, progress: Progress,
) -> RuntimeProof:  # fmt: skip
    """Run the folder of ``quantized`` on ``samples`` (int64 ``[samples, tokens]``) and compare after ``positions``.

    ``file`` is an exported folder, which must hold what was quantized, else one is written and removed.  Otherwise as
    :func:`workbench.deployment.proof.runtime_proof.prove_in_llama_cpp`.
    """
    require_transformers()
    method = CompressedTensorsMethod()
    with tempfile.TemporaryDirectory(prefix="workbench-proof-") as folder:
        place = file or Path(folder) / "model"
        if file is None:
            write_checkpoint(method, quantized, model, place, part_of(progress, 0.0, 0.3))
        else:
            prove_checkpoint(method, quantized, model, place, part_of(progress, 0.0, 0.3))
        size = sum(each.stat().st_size for each in place.iterdir())
        tensors = sum(each.nbytes for each in tensors_in_files(weight_files(place), ExportError).tensors.values())
        request = _request(model.summary, place, samples, positions, text, threads)
        runtime = _run(request, Path(folder), part_of(progress, 0.3, 0.7))
    progress(0.7, "evaluating the same tokens")
    pooled = model.summary.output is OutputKind.EMBEDDING
    ours = [_answers(each, samples, positions) for each in (model, quantized.bind(model))]
    there = as_in_transformers(quantized, model)
    rounded = ours[1] if there is None else _answers(there, samples, positions)
    plan_loss, runtime_loss, difference, agreement = (_embedding_losses if pooled else _token_losses)(runtime, *ours)
    proof = RuntimeProof(
        runtime=runtime.version, plan=quantized.plan.hash, plan_name=quantized.plan.name, file_bytes=size,
        tensor_bytes=tensors, plan_loss=plan_loss, runtime_loss=runtime_loss, difference=difference,
        agreement=agreement, unit="1 - cosine" if pooled else "nats",
        positions=len(samples) * max(len(positions), 1), prompt_speed=runtime.prompt_tokens_per_second,
        generation_speed=runtime.generated_tokens_per_second, peak_bytes=runtime.peak_bytes,
        tokens=_tokens(runtime.tokens, ids, text), data=data,
        rounding=(cosine_distance if pooled else divergence)(ours[1], rounded),
    )  # fmt: skip
    return require_as_evaluated(proof, "transformers")


def _request(
    summary: ModelSummary, folder: Path, samples: torch.Tensor, positions: Sequence[int], text: str,
    threads: int | None,
) -> dict[str, object]:  # fmt: skip
    return {
        "file": str(folder.absolute()), "samples": samples.tolist(), "positions": list(positions), "text": text,
        "embeddings": summary.output is OutputKind.EMBEDDING, "threads": threads or threads_of_machine(),
        "memory": int(MEMORY * 4 * summary.parameters) + SPARE,
    }  # fmt: skip


def _run(request: dict[str, object], folder: Path, progress: Progress) -> Run:
    out, script = str(folder / "out"), Path(__file__).with_name("transformers_process.py")
    carry_out(script, {**request, "out": out}, folder / "log", "transformers", SECONDS, progress, MARKS)
    figures = json.loads(Path(out + ".json").read_text(encoding="utf-8"))
    return Run(
        values=np.load(out + ".npy"), version=figures["runtime"], peak_bytes=figures["peak_bytes"],
        prompt_tokens_per_second=figures["prompt_tokens_per_second"], tokens=tuple(figures["tokens"]),
        generated_tokens_per_second=figures.get("generated_tokens_per_second", 0.0),
    )  # fmt: skip

"""A quantized model's folder run by transformers or by mlx-lm beside what was evaluated."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workbench.deployment.checkpoints.write import Method, prove_checkpoint, write_checkpoint
from workbench.deployment.proof.child import (
    PACKAGES,
    SECONDS,
    carry_out,
    proof_folder,
    require_package,
    threads_of_machine,
)
from workbench.deployment.proof.llama_cpp import Run
from workbench.deployment.proof.losses import cosine_distance, divergence
from workbench.deployment.proof.record import RuntimeProof, require_as_evaluated
from workbench.deployment.proof.rounding import as_in_transformers
from workbench.deployment.proof.runtime_proof import _answers, _embedding_losses, _token_losses, _tokens
from workbench.errors import ExportError
from workbench.measurement.units import COSINE_DISTANCE, NATS
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


METHODS = {
    "transformers": "compressed_tensors.CompressedTensorsMethod", "torchao": "torchao.TorchaoMethod",
    "mlx": "mlx.MlxMethod",
}  # fmt: skip
"""How the folder is stored that each runtime loads, by its place in ``deployment/checkpoints``."""


def prove_in_folder(
    runtime: str, quantized: QuantizedModel, model: Model, file: Path | None, samples: torch.Tensor,
    positions: Sequence[int], *, data: str, text: str = "", ids: Sequence[int] = (), threads: int | None = None,
    progress: Progress,
) -> RuntimeProof:  # fmt: skip
    """Run the folder of ``quantized`` on ``samples`` (int64 ``[samples, tokens]``) and compare after ``positions``.

    ``runtime`` is one of :data:`METHODS`.  ``file`` is an exported folder, which must hold what was quantized, else one
    is written and removed.  Otherwise as :func:`workbench.deployment.proof.runtime_proof.prove_in_llama_cpp`.
    """
    method = _method(runtime, model.summary, int(samples.shape[1]))
    if missing := model.inputs.missing(["input_ids"]):
        raise ExportError(f"folders are run on tokens alone, and {model.summary.name} needs {', '.join(missing)} too")
    with proof_folder() as folder:
        place = file or folder / "model"
        make: Callable[..., object] = write_checkpoint if file is None else prove_checkpoint
        make(method, quantized, model, place, part_of(progress, 0.0, 0.3))
        size = sum(each.stat().st_size for each in place.rglob("*") if each.is_file())
        tensors = sum(each.nbytes for each in tensors_in_files(weight_files(place), ExportError).tensors.values())
        request = _request(model, place, samples, positions, text, threads)
        ran = _run(runtime, request, folder, part_of(progress, 0.3, 0.7))
    progress(0.7, "evaluating the same tokens")
    pooled = model.summary.output is OutputKind.EMBEDDING
    ours = [_answers(each, samples, positions) for each in (model, quantized.bind(model))]
    there = as_in_transformers(quantized, model)
    rounded = ours[1] if there is None else _answers(there, samples, positions)
    plan_loss, runtime_loss, difference, agreement = (_embedding_losses if pooled else _token_losses)(ran, *ours)
    proof = RuntimeProof(
        runtime=ran.version, plan=quantized.plan.hash, plan_name=quantized.plan.name, file_bytes=size,
        tensor_bytes=tensors, plan_loss=plan_loss, runtime_loss=runtime_loss, difference=difference,
        agreement=agreement, unit=COSINE_DISTANCE if pooled else NATS,
        positions=len(samples) * max(len(positions), 1), prompt_speed=ran.prompt_tokens_per_second,
        generation_speed=ran.generated_tokens_per_second, peak_bytes=ran.peak_bytes,
        tokens=_tokens(ran.tokens, ids, text), data=data,
        rounding=(cosine_distance if pooled else divergence)(ours[1], rounded),
    )  # fmt: skip
    return require_as_evaluated(proof, PACKAGES[runtime][2])


def _method(runtime: str, summary: ModelSummary, tokens: int) -> Method:
    """Return how the folder is stored; BackendUnavailableError for a missing package."""
    require_package(runtime)
    if runtime == "mlx":
        _require_computed(summary, tokens)
    module, _, name = METHODS[runtime].partition(".")
    made: Method = getattr(import_module(f"workbench.deployment.checkpoints.{module}"), name)()
    return made


def _require_computed(summary: ModelSummary, tokens: int) -> None:
    """Raise ExportError for samples longer than a sliding window that mlx-lm does not compute."""
    from workbench.deployment.checkpoints.mlx_networks import window_not_computed
    from workbench.deployment.gguf_file import configuration

    window = window_not_computed(configuration(summary)[1])
    if window is not None and tokens > window:
        raise ExportError(
            f"mlx-lm computes no sliding windows for this network: give samples of at most {window:,} tokens, these "
            f"have {tokens:,}"
        )


prove_in_transformers = partial(prove_in_folder, "transformers")


def _request(
    model: Model, folder: Path, samples: torch.Tensor, positions: Sequence[int], text: str, threads: int | None,
) -> dict[str, object]:  # fmt: skip
    return {
        "file": str(folder.absolute()), "samples": samples.tolist(), "positions": list(positions), "text": text,
        "embeddings": model.inputs.pooling if model.summary.output is OutputKind.EMBEDDING else None,
        "threads": threads or threads_of_machine(),
        "memory": int(MEMORY * 4 * model.summary.parameters) + SPARE,
    }  # fmt: skip


def _run(runtime: str, request: dict[str, object], folder: Path, progress: Progress) -> Run:
    script = Path(__file__).with_name("mlx_process.py" if runtime == "mlx" else "transformers_process.py")
    out, title = str(folder / "out"), PACKAGES[runtime][2]
    carry_out(script, {**request, "out": out}, folder / "log", title, SECONDS, progress, MARKS)
    figures = json.loads(Path(out + ".json").read_text(encoding="utf-8"))
    return Run(
        values=np.load(out + ".npy"), version=figures["runtime"], peak_bytes=figures["peak_bytes"],
        prompt_tokens_per_second=figures["prompt_tokens_per_second"], tokens=tuple(figures["tokens"]),
        generated_tokens_per_second=figures.get("generated_tokens_per_second", 0.0),
    )  # fmt: skip

"""A quantized model's folder run by transformers or by mlx-lm beside what was evaluated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

import torch

from workbench.deployment.checkpoints.write import Method, prove_checkpoint, write_checkpoint
from workbench.deployment.gguf_file import configuration
from workbench.deployment.proof import child
from workbench.deployment.proof.llama_cpp import Run, run_of
from workbench.deployment.proof.record import RuntimeProof
from workbench.deployment.proof.rounding import as_in_transformers
from workbench.deployment.proof.runtime_proof import compared, same_tokens
from workbench.errors import ExportError
from workbench.models.model import Model
from workbench.models.sources.safetensors_file import weight_files
from workbench.models.sources.stored import tensors_in_files
from workbench.models.summary import ModelSummary, OutputKind
from workbench.progress import Progress, part_of
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
    with child.proof_folder() as folder:
        place = file or folder / "model"
        make: Callable[..., object] = write_checkpoint if file is None else prove_checkpoint
        make(method, quantized, model, place, part_of(progress, 0.0, 0.3))
        size = sum(each.stat().st_size for each in place.rglob("*") if each.is_file())
        tensors = sum(each.nbytes for each in tensors_in_files(weight_files(place), ExportError).tensors.values())
        request = _request(model, place, samples, positions, text, threads)
        ran = _run(runtime, request, folder, part_of(progress, 0.3, 0.7))
    progress(0.7, "evaluating the same tokens")
    return compared(
        ran, quantized, model, as_in_transformers(quantized, model), samples, positions, child.PACKAGES[runtime][2],
        version=ran.version, file_bytes=size, tensor_bytes=tensors, tokens=same_tokens(ran.tokens, ids, text),
        data=data,
    )  # fmt: skip


def _method(runtime: str, summary: ModelSummary, tokens: int) -> Method:
    """Return how the folder is stored; BackendUnavailableError for a missing package."""
    child.require_package(runtime)
    if runtime == "mlx":
        _require_computed(summary, tokens)
    module, _, name = METHODS[runtime].partition(".")
    made: Method = getattr(import_module(f"workbench.deployment.checkpoints.{module}"), name)()
    return made


def _require_computed(summary: ModelSummary, tokens: int) -> None:
    """Raise ExportError for samples longer than a sliding window that mlx-lm does not compute."""
    from workbench.deployment.checkpoints.mlx_networks import window_not_computed

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
        "threads": threads or child.threads_of_machine(),
        "memory": int(MEMORY * 4 * model.summary.parameters) + SPARE,
    }  # fmt: skip


def _run(runtime: str, request: dict[str, object], folder: Path, progress: Progress) -> Run:
    script = Path(__file__).with_name("mlx_process.py" if runtime == "mlx" else "transformers_process.py")
    out, title = str(folder / "out"), child.PACKAGES[runtime][2]
    child.carry_out(script, {**request, "out": out}, folder / "log", title, child.SECONDS, progress, MARKS)
    return run_of(out)

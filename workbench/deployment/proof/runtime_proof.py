"""A quantized model's GGUF file run by llama.cpp beside what was evaluated: how far apart, how fast, how large."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from workbench.deployment.gguf_file import Content, content_of, prove, write
from workbench.deployment.proof.child import proof_folder
from workbench.deployment.proof.llama_cpp import Run, require_llama_cpp, run
from workbench.deployment.proof.losses import cosine_distance, divergence
from workbench.deployment.proof.record import RuntimeProof, require_as_evaluated
from workbench.deployment.proof.rounding import as_in_llama_cpp
from workbench.deployment.tensors import check
from workbench.measurement.units import COSINE_DISTANCE, NATS
from workbench.models.gguf.values import value_of
from workbench.models.model import Model
from workbench.models.readers.pooling import IN_LLAMA_CPP
from workbench.models.summary import OutputKind
from workbench.progress import Progress, part_of
from workbench.quantization.quantized_model import QuantizedModel


def prove_in_llama_cpp(
    quantized: QuantizedModel, model: Model, file: Path | None, samples: torch.Tensor, positions: Sequence[int], *,
    data: str, text: str = "", ids: Sequence[int] = (), threads: int | None = None, progress: Progress,
) -> RuntimeProof:  # fmt: skip
    """Run the GGUF file of ``quantized`` on ``samples`` (int64 ``[samples, tokens]``) and compare after ``positions``.

    ``file`` is an exported one, which must hold what was quantized, else one is written and removed.  ``text`` is
    split by llama.cpp and must give ``ids``.  Raises ExportError for a file that differs (the first tensor and value),
    that llama.cpp does not run, or whose answers differ by more than its rounding explains; BackendUnavailableError.
    """
    require_llama_cpp()
    content = content_of(quantized, check(quantized, model))
    with proof_folder() as folder:
        place, size = _file(content, file, folder, part_of(progress, 0.0, 0.3))
        pooled = model.summary.output is OutputKind.EMBEDDING
        runtime = run(
            place, samples.tolist(), positions, model.inputs.vocabulary or 0, text=text,
            embeddings=_pooling(content) if pooled else "",
            threads=threads, progress=part_of(progress, 0.3, 0.7),
        )  # fmt: skip
    progress(0.7, "evaluating the same tokens")
    return compared(
        runtime, quantized, model, as_in_llama_cpp(quantized).bind(model), samples, positions, "llama.cpp",
        version=f"llama.cpp (xllamacpp {runtime.version})", file_bytes=size, tensor_bytes=content.nbytes,
        tokens=same_tokens(runtime.tokens, ids, text), data=data,
    )  # fmt: skip


def compared(
    run: Run, quantized: QuantizedModel, model: Model, there: Model | None, samples: torch.Tensor,
    positions: Sequence[int], program: str, *, version: str, file_bytes: int, tensor_bytes: int, tokens: str, data: str,
) -> RuntimeProof:  # fmt: skip
    """Return how the answers of a ``run`` compare with the evaluation; ExportError if something else was computed.

    ``there`` rounds inputs as the runtime does, None where that is as the plan says.
    """
    pooled = model.summary.output is OutputKind.EMBEDDING
    reference, ours = (_answers(each, samples, positions) for each in (model, quantized.bind(model)))
    rounded = ours if there is None else _answers(there, samples, positions)
    losses = (_embedding_losses if pooled else _token_losses)(run, reference, ours)
    plan_loss, runtime_loss, difference, agreement = losses
    proof = RuntimeProof(
        runtime=version, plan=quantized.plan.hash, plan_name=quantized.plan.name, file_bytes=file_bytes,
        tensor_bytes=tensor_bytes, plan_loss=plan_loss, runtime_loss=runtime_loss, difference=difference,
        agreement=agreement, unit=COSINE_DISTANCE if pooled else NATS,
        positions=len(samples) * max(len(positions), 1), prompt_speed=run.prompt_tokens_per_second,
        generation_speed=run.generated_tokens_per_second, peak_bytes=run.peak_bytes, tokens=tokens, data=data,
        rounding=(cosine_distance if pooled else divergence)(ours, rounded),
    )  # fmt: skip
    return require_as_evaluated(proof, program)


def _pooling(content: Content) -> str:
    stated = content.metadata.get(f"{content.architecture}.pooling_type")
    return "own" if stated is not None and stated.plain in IN_LLAMA_CPP.values() else "mean"


def _file(content: Content, file: Path | None, folder: Path, progress: Progress) -> tuple[Path, int]:
    """Return the file to run, and the bytes of the exported one.

    One without a tokenizer is run with a stand-in, which llama.cpp's server needs and no one ships.
    """
    exported = file or folder / "exported.gguf"
    if file is None:
        write(exported, content, part_of(progress, 0.0, 0.5))
    else:
        prove(exported, content, part_of(progress, 0.0, 0.5))
    size = exported.stat().st_size
    tokenizer = content.metadata.get("tokenizer.ggml.model")
    if tokenizer is not None and tokenizer.plain not in ("none", "no_vocab"):
        return exported, size
    if file is None:
        exported.unlink()  # the disk need not hold two
    place = folder / "model.gguf"
    write(place, _with_stand_in(content), part_of(progress, 0.5, 1.0))
    return place, size


def _with_stand_in(content: Content) -> Content:
    """Return ``content`` with a tokenizer of bytes, its other tokens numbered."""
    from tokenizers.pre_tokenizers import ByteLevel

    size = next(tensor.shape[0] for tensor in content.tensors if tensor.name == "token_embd.weight")
    letters = sorted(ByteLevel.alphabet())
    tokens = [letters[place] if place < len(letters) else f"token{place}" for place in range(size)]
    keys: dict[str, object] = {
        "model": "gpt2", "pre": "gpt-2", "tokens": tokens, "token_type": [1] * size, "merges": ["a b"],
        "bos_token_id": 0, "eos_token_id": 0, "add_bos_token": False,
    }  # fmt: skip
    stand_in = {f"tokenizer.ggml.{key}": value_of(value) for key, value in keys.items()}
    return dataclasses.replace(content, metadata={**content.metadata, **stand_in})


def _answers(model: Model, samples: torch.Tensor, positions: Sequence[int]) -> np.ndarray:
    """Return log-probabilities ``[samples, positions, vocabulary]``, ``[samples, classes]`` without positions, or
    embeddings ``[samples, features]``, float64."""
    rows = []
    for sample in samples:
        with torch.no_grad():
            output = model.run({"input_ids": sample[None], "attention_mask": torch.ones_like(sample)[None]})[0]
        if model.summary.output is OutputKind.EMBEDDING:
            rows.append(output.double().numpy())
        else:
            output = output[list(positions)] if positions else output
            rows.append(torch.log_softmax(output.double(), -1).numpy())
    return np.stack(rows)


def _token_losses(runtime: Run, reference: np.ndarray, ours: np.ndarray) -> tuple[float, float, float, float]:
    theirs = runtime.values.astype(np.float64)
    theirs -= np.log(np.exp(theirs).sum(-1, keepdims=True))  # its sums over a vocabulary, in float32, miss 1 by 2e-4
    agreement = float((theirs.argmax(-1) == ours.argmax(-1)).mean())
    return divergence(reference, ours), divergence(reference, theirs), divergence(ours, theirs), agreement


def _embedding_losses(runtime: Run, reference: np.ndarray, ours: np.ndarray) -> tuple[float, float, float, float]:
    theirs, apart = runtime.values.astype(np.float64), cosine_distance
    return apart(reference, ours), apart(reference, theirs), apart(ours, theirs), float("nan")


def same_tokens(theirs: Sequence[int], ours: Sequence[int], text: str) -> str:
    """Say whether a runtime splits ``text`` into our tokens; empty: there is no tokenizer."""
    if not text:
        return "no tokenizer"
    if list(theirs) == list(ours):
        return "equal"
    at = next((at for at, pair in enumerate(zip(theirs, ours, strict=False)) if pair[0] != pair[1]), -1)
    return f"differ at token {at}" if at >= 0 else f"{len(theirs)} for {len(ours)}"

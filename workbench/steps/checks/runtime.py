"""Run the plan's file in the runtime that it is for, beside our evaluation of the same plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workbench.deployment.checkpoints.folder import ORIGINS
from workbench.deployment.networks import unknown_network
from workbench.deployment.proof.record import RuntimeProof
from workbench.deployment.targets import known_target, target
from workbench.errors import DataError
from workbench.models.data.inputs import fast_tokenizer
from workbench.models.model import Batch, Model
from workbench.models.summary import OutputKind
from workbench.plain_file import read_json
from workbench.planning.plan import Plan
from workbench.preflight import Estimate
from workbench.progress import Progress, part_of
from workbench.session.calibrated_ranges import identity
from workbench.session.contents import ANY
from workbench.session.results import StepResult
from workbench.session.session import Session
from workbench.steps import session_data
from workbench.steps.options import EVALUATION_DATA, SAMPLES, SEED, Choice, OptionInfo, option
from workbench.steps.quantize import moments_of, quantize
from workbench.steps.requirements import CALIBRATED, PLAN_CALIBRATED, RUNS, with_moments
from workbench.steps.step import Context, Step, plan_name

if TYPE_CHECKING:
    import torch

    from workbench.quantization.quantized_model import QuantizedModel

NAME = "runtime"
AUTO, TRANSFORMERS, LLAMA_CPP, ONNX_RUNTIME = "auto", "transformers", "llama.cpp", "onnxruntime"
FOLDERS = (TRANSFORMERS, "torchao", "mlx")
"""Runtimes of folders of safetensors files."""
OF_TARGETS = {"gguf": LLAMA_CPP, "gptq": TRANSFORMERS, "vllm": TRANSFORMERS, "tensorrt": ONNX_RUNTIME}
"""The runtimes that stand for targets of other names."""
OF_FILES = {".gguf": LLAMA_CPP, ".onnx": ONNX_RUNTIME}
BASELINE = "floating point"
"""The name of the row in which nothing is quantized."""


def runtimes() -> tuple[Choice, ...]:
    """Return every runtime that exported files are run in."""
    return (
        Choice(LLAMA_CPP, "llama.cpp: GGUF files"),
        Choice(TRANSFORMERS, "transformers: compressed-tensors folders, as vLLM loads them"),
        Choice("torchao", "transformers: torchao folders"), Choice("mlx", "mlx-lm: MLX folders"),
        Choice(ONNX_RUNTIME, "ONNX Runtime: ONNX files"), Choice("openvino", "OpenVINO: ONNX files"),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeOptions:
    """Which runtime and file, and on which samples."""

    runtime: str = option(AUTO, OptionInfo(
        label="Runtime", choices=lambda: (Choice(AUTO, "the one of the file, the target or the model"), *runtimes()),
        help="the program that runs the exported file; auto is the one that the file, the target or the model is for",
    ))  # fmt: skip
    baseline: bool = option(True, OptionInfo(
        label="Floating-point model too", help="run the model as it is in the same runtime, as a row beside the plan"
    ))  # fmt: skip
    file: str = option("", OptionInfo(
        label="Exported file", path="file", metavar="FILE", empty="one is written by the plan, and removed",
        help="the exported file to run; it must hold what the plan says, bit for bit",
    ))  # fmt: skip
    data: str = option("", EVALUATION_DATA)
    samples: int = option(2, replace(SAMPLES, empty="", maximum=1000))
    positions: int = option(8, OptionInfo(
        label="Positions", minimum=1, maximum=4096, metavar="N",
        help="tokens of each sample after which the whole distribution of the next one is compared",
    ))  # fmt: skip
    threads: int | None = option(None, OptionInfo(
        label="Threads", minimum=1, maximum=1024, metavar="N", empty="half the processors",
        help="threads of the runtime",
    ))  # fmt: skip
    seed: int = option(0, SEED)


PASSES = {LLAMA_CPP: 8.0}
"""Readings of the samples for each plan, ours and the runtime's, in times of the floating-point model's: llama.cpp
reads them twice, and one position more at a time."""

USUAL_PASSES = 5.0
"""The same of other runtimes."""


def runtime_of(session: Session, options: RuntimeOptions) -> str:
    """Return the runtime that was chosen, else the one that the file, the session's target or the model is for."""
    if options.runtime != AUTO:
        return options.runtime
    if options.file:
        file = Path(options.file)
        return _of_folder(file) if file.is_dir() else OF_FILES.get(file.suffix.lower(), LLAMA_CPP)
    aim = "" if session.target == ANY else known_target(session.target)
    if aim and (chosen := target(aim).runtime) is not None:
        return OF_TARGETS.get(chosen.name, chosen.name)
    model = session.model
    texts = model.embeddings and model.output in (OutputKind.TOKEN_LOGITS, OutputKind.EMBEDDING)
    is_written = texts and model.source.kind in ORIGINS and not unknown_network("gguf", model)
    return LLAMA_CPP if is_written or model.source.kind == "gguf" else ONNX_RUNTIME


def _of_folder(folder: Path) -> str:
    """Return the runtime of an exported folder by what its settings say of its weights."""
    try:
        settings = read_json(folder / "config.json")
        stated = settings.get("quantization_config", {}).get("quant_method", "mlx" * ("quantization" in settings))
    except (OSError, ValueError, AttributeError):
        return TRANSFORMERS
    return stated if stated in FOLDERS else TRANSFORMERS


def proofs(session: Session) -> tuple[RuntimeProof, ...]:
    """Return the proofs that the session stores, the latest of every plan and runtime."""
    result = session.results.get(NAME)
    return () if result is None else result.rows(RuntimeProof)


def _run(context: Context, options: RuntimeOptions) -> StepResult:
    session = context.session
    model = session_data.shown_inputs(context.model(), session)
    options = replace(options, runtime=runtime_of(session, options))
    run = _runner(options.runtime)
    dataset = session_data.for_evaluation(
        model, session, options.data or None, samples=options.samples, seed=options.seed
    )
    batch = next(iter(dataset.batches(options.samples)))
    quantized = quantize(model, session.plan, session=session, progress=part_of(context.progress, 0.0, 0.2))
    rows = list(proofs(session))
    plans = [(quantized, Path(options.file) if options.file else None)]
    if _has_baseline(session, options):
        plans.append((quantize(model, Plan(name=BASELINE)), None))
    for place, (each, file) in enumerate(plans):
        progress = part_of(context.progress, 0.2 + 0.8 * place / len(plans), 0.2 + 0.8 * (place + 1) / len(plans))
        proof = run(each, model, file, batch, options, dataset.record.name, progress)
        proof = replace(proof, plan=identity(session, each.plan))
        rows = [row for row in rows if (row.plan, row.runtime) != (proof.plan, proof.runtime)] + [proof]
    return StepResult.of(RuntimeProof, rows)


def _has_baseline(session: Session, options: RuntimeOptions) -> bool:
    """Return whether the model as it is runs, too: folders of it are no quantized checkpoints."""
    return options.baseline and bool(session.plan.rules) and runtime_of(session, options) not in FOLDERS


def _costs(context: Context, options: RuntimeOptions) -> Estimate | None:
    from workbench.steps.preflight.costs import proof

    model, session = context.model(), context.session
    data = session_data.for_evaluation(
        model, session, options.data or None, samples=options.samples, seed=options.seed
    )  # fmt: skip
    record = session.calibration
    calibration = None if record is None else session_data.recorded(model, record)
    return proof(
        model, session.plan, data, calibration, moments=moments_of(model, session),
        plans=1 + _has_baseline(session, options), passes=PASSES.get(runtime_of(session, options), USUAL_PASSES),
        answers=options.samples * options.positions,
    )  # fmt: skip


def _runner(runtime: str) -> Callable[..., RuntimeProof]:
    """Return what runs a plan in a runtime; BackendUnavailableError where that is not installed."""
    if runtime in (LLAMA_CPP, *FOLDERS):
        return partial(_on_tokens, _prover(runtime))
    from workbench.deployment.proof.onnx_proof import require_runtime

    require_runtime(runtime)
    return _in_onnx


def _places(length: int, positions: int) -> list[int]:
    return [int(place) for place in np.unique(np.linspace(length // 8, length - 2, positions).astype(int))]


def _on_tokens(
    prove: Callable[..., RuntimeProof], quantized: QuantizedModel, model: Model, file: Path | None, batch: Batch,
    options: RuntimeOptions, data: str, progress: Progress,
) -> RuntimeProof:  # fmt: skip
    samples = _tokens(batch, data)
    text, ids = _text(model, samples)
    places = _places(int(samples.shape[1]), options.positions) if model.summary.output.per_token else []
    return prove(
        quantized, model, file, samples, places, data=data, text=text, ids=ids, threads=options.threads,
        progress=progress,
    )  # fmt: skip


def _in_onnx(
    quantized: QuantizedModel, model: Model, file: Path | None, batch: Batch, options: RuntimeOptions, data: str,
    progress: Progress,
) -> RuntimeProof:  # fmt: skip
    from workbench.deployment.proof.onnx_proof import prove_in_onnx

    places: list[int] = []
    if model.summary.output.per_token and "input_ids" in batch:
        length = int(batch["input_ids"].shape[1])
        if "attention_mask" in batch:
            length = int(batch["attention_mask"].sum(1).min())
        places = _places(max(length, 2), options.positions)
    return prove_in_onnx(
        quantized, model, file, batch, places, runtime=options.runtime, data=data, threads=options.threads,
        progress=progress,
    )  # fmt: skip


def _prover(runtime: str) -> Callable[..., RuntimeProof]:
    """Return what proves a plan in a runtime; BackendUnavailableError where that is not installed."""
    if runtime in FOLDERS:
        from workbench.deployment.proof.child import require_package
        from workbench.deployment.proof.transformers_proof import prove_in_folder

        require_package(runtime)
        return partial(prove_in_folder, runtime)
    from workbench.deployment.proof.llama_cpp import require_llama_cpp
    from workbench.deployment.proof.runtime_proof import prove_in_llama_cpp

    require_llama_cpp()
    return prove_in_llama_cpp


def _tokens(batch: Batch, name: str) -> torch.Tensor:
    """Return the first batch's token ids; DataError for data of another kind or with padding."""
    tokens: torch.Tensor | None = batch.get("input_ids")
    if tokens is None:
        raise DataError(f"{name} holds no token windows; the runtimes read tokens: give a text or token windows")
    mask = batch.get("attention_mask")
    if mask is not None:
        shortest = int(mask.sum(1).min())
        tokens = tokens[:, :shortest]
    if tokens.shape[1] < 3:
        raise DataError(f"the samples of {name} have {tokens.shape[1]} tokens; at least 3 are needed")
    return tokens


def _text(model: Model, samples: torch.Tensor) -> tuple[str, list[int]]:
    """Return the first sample as text, and the tokens that the model's tokenizer splits it into again."""
    from workbench.models.data.text import encode
    from workbench.models.data.tokenizing import texts_of

    tokenizer, folder = fast_tokenizer(model.inputs.tokenizer), model.inputs.tokenizer
    if tokenizer is None or folder is None:
        return "", []
    decode = partial(tokenizer.decode, skip_special_tokens=True)
    text = texts_of(decode, folder, [samples[0].tolist()])[0].strip("�")
    return text, encode(text, model.inputs, Path(model.summary.source.path))


RUNTIME: Step[RuntimeOptions, StepResult] = Step(
    runs_model=True, costs=_costs,
    name=NAME, title="Run in a runtime", options=RuntimeOptions, requires=(RUNS, PLAN_CALIBRATED), run=_run,
    summary="Runs the plan's file in the runtime that it is for: its answers beside the evaluation, speed, memory.",
    heading=lambda options, session: (
        f"Run {plan_name(session)} in {runtime_of(session, options) if session else options.runtime}"
    ),
    needs=lambda session, options: replace(with_moments(session), results={
        name: result for name, result in session.results.items() if name == NAME
    }),
    join=lambda session, options, result: replace(session, results={**session.results, NAME: result}),
    wants=lambda session, options: (
        (CALIBRATED,) if session_data.missing_data(session, options.data, held=True) else ()
    ),
    first=lambda session: RuntimeOptions(data=session_data.last_data(session, session.evaluation)),
)  # fmt: skip

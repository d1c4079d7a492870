"""The forms that a plan can be shipped in: what loads each, its size, and what the runtime refuses of the plan."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from workbench.deployment.checkpoints.sizes import more_bytes
from workbench.deployment.endings import ENDINGS
from workbench.deployment.networks import has_folder, unknown_network
from workbench.deployment.proof.record import RuntimeProof
from workbench.insight import quantities
from workbench.insight.legality import Refusal, by_reason, refusals
from workbench.models.summary import ModelSummary, OutputKind
from workbench.planning.plan import KEEP, Assignment
from workbench.session.calibrated_ranges import identity
from workbench.session.session import Session
from workbench.session.workspace import State

LISTED = 3
"""How many schemes the summary of a plan names."""


@dataclass(frozen=True, slots=True)
class Form:
    """A kind of export: ``target`` names the runtime whose rules hold (empty: none), ``loads`` what loads it.

    ``generates``: what loads it only generates text.  ``loading`` is the command that loads it, where there is one.
    ``runtimes`` are those in which it is measured, each with a word of the version that it gives.
    """

    kind: str
    title: str
    target: str
    loads: str
    generates: bool = False
    loading: str = ""
    runtimes: tuple[tuple[str, str], ...] = ()


NOUNS = {
    OutputKind.TOKEN_CLASSES: "classes of tokens", OutputKind.CLASS_LOGITS: "classes",
    OutputKind.POSITION_CLASSES: "classes of positions", OutputKind.DETECTIONS: "objects",
    OutputKind.EMBEDDING: "embeddings",
}  # fmt: skip

FORMS = (
    Form("gguf", "GGUF file", "gguf", "llama.cpp, Ollama, LM Studio", loading="llama-cli -m",
         runtimes=(("llama.cpp", "llama.cpp"),)),
    Form("compressed-tensors", "compressed-tensors folder", "vllm", "vLLM, transformers", loading="vllm serve",
         runtimes=(("transformers", "compressed-tensors"),)),
    Form("onnx", "ONNX file", "onnxruntime", "ONNX Runtime, OpenVINO",
         runtimes=(("onnxruntime", "ONNX Runtime"), ("openvino", "OpenVINO"))),
    Form("onnx-genai", "ONNX folder", "onnxruntime", "ONNX Runtime GenAI", generates=True),
    Form("torchao", "torchao folder", "torchao", "torchao, transformers", runtimes=(("torchao", "torchao"),)),
    Form("gptq", "GPTQ folder", "gptq", "GPTQModel, vLLM, transformers"),
    Form("mlx", "MLX folder", "mlx", "mlx-lm", generates=True, loading="mlx_lm.generate --model",
         runtimes=(("mlx", "mlx-lm"),)),
    Form("safetensors", "Packed safetensors", "", "Python: load_packed"),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A form for the current plan; ``nbytes`` of its tensors is NaN where the plan cannot be written so.

    ``unfit`` says why it is not a form for the model, whatever the plan (empty: it is one).
    """

    form: Form
    refused: tuple[Refusal, ...]
    nbytes: float
    holds: str
    unfit: str = ""

    @property
    def is_possible(self) -> bool:
        """Whether the plan can be written in this form."""
        return not (self.unfit or self.refused)

    @cached_property
    def verdict(self) -> str:
        """What the runtime refuses, in a few words."""
        if self.unfit:
            return "not this model"
        layers = len({name for refusal in self.refused for name in refusal.layers})
        return f"{quantities.plural(layers, 'layer')} refused" if layers else "runs the whole plan"

    @cached_property
    def reasons(self) -> str:
        """Every reason on a line of its own."""
        return self.unfit or by_reason(self.refused) or self.verdict


def deployments(state: State) -> tuple[Deployment, ...]:
    """Return every form for the plan of ``state``, those that it can be written in first, then those that a repair
    makes possible; nothing without a plan that fits the model."""
    session, totals = state.session, state.totals
    if session is None or totals is None or not state.assignments:
        return ()
    counts = Counter(state.assignments[layer.name].weights for layer in session.model.layers)
    more = f", {len(counts) - LISTED} more" if len(counts) > LISTED else ""
    holds = ", ".join(f"{name} ({quantities.whole(count)})" for name, count in counts.most_common(LISTED)) + more
    refused = {
        target: refusals(session.plan, session.model.layers, target, state.assignments)
        for target in {form.target for form in FORMS}
    }
    unfits = [unfit(form, session.model) for form in FORMS]
    made = tuple(
        Deployment(
            form=form, refused=refused[form.target], unfit=reason,
            holds=f"{holds}; the rest {_rest(form, session.model, state.assignments)}",
            nbytes=math.nan if reason or refused[form.target] else float(
                totals.nbytes + more_bytes(form.kind, session.model.layers, state.assignments)
            ),
        )
        for form, reason in zip(FORMS, unfits, strict=True)
    )  # fmt: skip
    for each in made:
        _ = each.verdict, each.reasons  # here, in a thread: of thousands of layers they take long to add up
    return tuple(sorted(made, key=lambda each: (bool(each.unfit), bool(each.refused))))


def _rest(form: Form, model: ModelSummary, assignments: Mapping[str, Assignment]) -> str:
    """Return the dtypes of the tensors that have no scheme; GGUF stores vectors in float32."""
    dtypes = {layer.dtype for layer in model.stored if assignments[layer.name].weights == KEEP}
    dtypes |= {"float32"} if form.kind == "gguf" else {each.dtype for each in model.others}
    return ", ".join(sorted(dtypes)) or "–"


def measured(form: Form, session: Session, proofs: Iterable[RuntimeProof]) -> list[str]:
    """Return what the session's plan was found to do in each runtime of a form, a sentence each."""
    ran = [each for each in proofs if any(word in each.runtime for _, word in form.runtimes)]
    own = identity(session, session.plan) if ran else ""
    return [
        f"{each.runtime}: loss {quantities.number(each.runtime_loss)} {each.unit} "
        f"(evaluated: {quantities.number(each.plan_loss)}), "
        f"{quantities.number(each.generation_speed or each.prompt_speed)} a second, "
        f"{quantities.data_size(each.peak_bytes)} of memory, file {quantities.data_size(each.file_bytes)}"
        for each in ran if each.plan == own
    ]  # fmt: skip


def unfit(form: Form, model: ModelSummary) -> str:
    """Return why a form cannot hold a model, whatever its plan; empty where it can."""
    if form.kind == "onnx" and model.cannot_run:
        return f"{model.name} has no network to write: {model.cannot_run}"
    if form.kind not in ("onnx", "safetensors", model.source.kind) and not has_folder(model.source):
        return f"{form.loads} reads the config.json and the tokenizer of a Hugging Face folder; {model.name} has none"
    if form.generates and model.output not in (OutputKind.TOKEN_LOGITS, OutputKind.NONE):  # of weights, none knows
        return f"{form.loads} only generates text; {model.name} does not: its outputs are {NOUNS[model.output]}"
    return unknown_network(form.target, model)


def place(state: State, form: Form) -> Path:
    """Return where a form of the plan is written unless the user says otherwise: beside the session, else at home."""
    folder = state.path.parent if state.path is not None else Path.home()
    name = Path(state.session.model.name).name if state.session else "model"
    bits = f"-{state.totals.bits_per_weight:.3g}bit" if state.totals else ""
    ending = ENDINGS[form.kind]
    return folder / (f"{name}{bits}{ending}" if ending == f".{form.kind}" else f"{name}{bits}-{form.kind}{ending}")


def loading(form: Form, out: str) -> str:
    """Return the command line that loads what was written to ``out``; empty where there is none."""
    return f"{form.loading} {shlex.quote(out)}" if form.loading else ""


def command(state: State, form: Form, out: str, settings: tuple[str, ...] = ()) -> str:
    """Return the command line that writes the form from the saved session; empty while there is none."""
    if state.path is None or state.dirty:
        return ""
    words = ("workbench", "export", str(state.path), "--to", form.kind, "--out", out)
    return shlex.join((*words, *(("--set", ",".join(settings)) if settings else ())))

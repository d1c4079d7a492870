"""The forms that a plan can be shipped in: what loads each, its size, and what the runtime refuses of the plan."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from workbench.deployment.checkpoints.sizes import more_bytes
from workbench.deployment.endings import ENDINGS
from workbench.deployment.networks import has_folder, unknown_network
from workbench.insight import quantities
from workbench.insight.legality import Refusal, by_reason, refusals
from workbench.models.summary import ModelSummary, OutputKind
from workbench.session.workspace import State

LISTED = 3
"""How many schemes the summary of a plan names."""


@dataclass(frozen=True, slots=True)
class Form:
    """A kind of export: ``target`` names the runtime whose rules hold (empty: none), ``loads`` what loads it.

    ``generates``: what loads it only generates text.  ``loading`` is the command that loads it, where there is one.
    """

    kind: str
    title: str
    target: str
    loads: str
    generates: bool = False
    loading: str = ""


NOUNS = {
    OutputKind.TOKEN_CLASSES: "classes of tokens", OutputKind.CLASS_LOGITS: "classes",
    OutputKind.POSITION_CLASSES: "classes of positions", OutputKind.DETECTIONS: "objects",
    OutputKind.EMBEDDING: "embeddings",
}  # fmt: skip

FORMS = (
    Form("gguf", "GGUF file", "gguf", "llama.cpp, Ollama, LM Studio", loading="llama-cli -m"),
    Form("compressed-tensors", "compressed-tensors folder", "vllm", "vLLM, transformers", loading="vllm serve"),
    Form("onnx", "ONNX file", "onnxruntime", "ONNX Runtime, OpenVINO"),
    Form("onnx-genai", "ONNX folder", "onnxruntime", "ONNX Runtime GenAI", generates=True),
    Form("torchao", "torchao folder", "torchao", "torchao, transformers"),
    Form("mlx", "MLX folder", "mlx", "mlx-lm", generates=True, loading="mlx_lm.generate --model"),
    Form("safetensors", "Packed safetensors", "", "Python: load_packed"),
)


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
    """Return every form for the plan of ``state``; nothing without a plan that fits the model."""
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
            form=form, refused=refused[form.target], holds=holds, unfit=reason,
            nbytes=math.nan if reason or refused[form.target] else float(
                totals.nbytes + more_bytes(form.kind, session.model.layers, state.assignments)
            ),
        )
        for form, reason in zip(FORMS, unfits, strict=True)
    )  # fmt: skip
    for each in made:
        _ = each.verdict, each.reasons  # here, in a thread: of thousands of layers they take long to add up
    return made


def unfit(form: Form, model: ModelSummary) -> str:
    """Return why a form cannot hold a model, whatever its plan; empty where it can."""
    if form.kind == "onnx" and model.cannot_run:
        return f"{model.name} has no network to write: {model.cannot_run}"
    if form.kind not in ("onnx", "safetensors", model.source.kind) and not has_folder(model.source):
        return f"{form.loads} reads the config.json and the tokenizer of a Hugging Face folder; {model.name} has none"
    if reason := unknown_network(form.target, model):
        return reason
    if not form.generates or model.output in (OutputKind.TOKEN_LOGITS, OutputKind.NONE):  # of weights alone, none knows
        return ""
    return f"{form.loads} only generates text; {model.name} does not: its outputs are {NOUNS[model.output]}"


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


def command(state: State, form: Form, out: str) -> str:
    """Return the command line that writes the form from the saved session; empty while there is none."""
    if state.path is None or state.dirty:
        return ""
    return shlex.join(("workbench", "export", str(state.path), "--to", form.kind, "--out", out))

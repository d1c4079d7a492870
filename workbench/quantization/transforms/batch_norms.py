"""The batch norms of a recorded graph, and folding them into the layers before them; the maths:
numerics/equivalences/folding.py.

The network keeps its modules, so that what is exported loads into it: a folded norm stays behind as one that changes
nothing (variance 1, mean 0, scale 1) but adds the folded bias where the layer has none of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from workbench.errors import TransformError
from workbench.models.summary import ModelSummary
from workbench.models.tracing import LayerCall, Operation, Ref, Trace
from workbench.numerics.equivalences.folding import BatchNorm, folded
from workbench.quantization.transforms.rewrite import Draft
from workbench.quantization.transforms.transform import FoldReport, Outcome, Setting

_PLACES = {
    "native_batch_norm": (1, 2, 3, 4, 5, 7), "batch_norm": (1, 2, 3, 4, 5, 7), "cudnn_batch_norm": (1, 2, 3, 4, 5, 7),
    "_native_batch_norm_legit": (1, 2, 3, 4, 5, 7), "_native_batch_norm_legit_no_training": (1, 2, 3, 4, None, 6),
}  # fmt: skip
"""Where an operation has gamma, beta, mean, variance, whether it normalises by the batch, and epsilon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NormCall:
    """One run of a batch norm by fixed statistics; names of other tensors ``[channels]``, None for 1 and 0.

    ``name`` is the norm's path; ``step``, ``input`` and ``output`` are of the trace.
    """

    name: str
    step: int
    input: int
    output: int
    gamma: str | None
    beta: str | None
    mean: str
    variance: str
    epsilon: float

    @property
    def tensors(self) -> tuple[str, ...]:
        """The other tensors that it has."""
        return tuple(name for name in (self.gamma, self.beta, self.mean, self.variance) if name is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Norms:
    """``behind`` maps a layer to the norm that alone takes its output; ``obstacles`` tells of every other norm why."""

    behind: Mapping[str, NormCall]
    obstacles: Mapping[str, str]


def find_norms(trace: Trace, summary: ModelSummary) -> Norms:
    """Return the batch norms that directly follow a layer: one run of each, on one output row for each channel."""
    calls, uses = trace.calls(), trace.uses()
    once = {name for number, name in trace.names.items() if uses[number] <= 1}
    producers = {step.output: step for step in trace.steps if isinstance(step, LayerCall)}
    behind: dict[str, NormCall] = {}
    obstacles: dict[str, str] = {}
    for index, step in enumerate(trace.steps):
        if not isinstance(step, Operation) or step.name not in _PLACES:
            continue
        norm = _norm(trace, index, step)
        if isinstance(norm, str):
            obstacles[norm] = "normalises by the statistics of each batch"
            continue
        layer = producers.get(norm.input)
        if layer is None:
            obstacles[norm.name] = "follows no convolution or linear layer directly"
        elif uses[norm.input] > 1 or norm.input == trace.output:
            obstacles[norm.name] = f"shares the output of {layer.layer} with other operations"
        elif calls[layer.layer] > 1 or layer.layer in summary.sharing or not once.issuperset(norm.tensors):
            obstacles[norm.name] = f"or {layer.layer} before it is used several times"
        elif not _one_row_each(trace, summary, layer):
            obstacles[norm.name] = f"does not normalise the outputs of {layer.layer} one by one"
        else:
            behind[layer.layer] = norm
    return Norms(behind=behind, obstacles=obstacles)


def _norm(trace: Trace, index: int, step: Operation) -> NormCall | str:
    """Return the norm of an operation, or a name for it where it has no fixed statistics."""
    *places, training, epsilon = _PLACES[step.name]
    members = [step.args[place] if place is not None and place < len(step.args) else None for place in places]
    names = [trace.names.get(each.number) if isinstance(each, Ref) else None for each in members]
    known = next((name for name in names if name is not None), "a batch norm")
    fixed = training is None or not step.args[training]
    gamma, beta, mean, variance = names
    first = step.args[0]
    unknown = any(isinstance(each, Ref) and name is None for each, name in zip(members, names, strict=True))
    if not fixed or unknown or mean is None or variance is None or not isinstance(first, Ref) or epsilon is None:
        return known.rpartition(".")[0] or known
    return NormCall(
        name=mean.rpartition(".")[0] or mean, step=index, input=first.number, output=step.outputs[0], gamma=gamma,
        beta=beta, mean=mean, variance=variance, epsilon=float(step.args[epsilon]),
    )  # fmt: skip


def _one_row_each(trace: Trace, summary: ModelSummary, call: LayerCall) -> bool:
    layer, output = summary.by_name[call.layer], trace.tensors[call.output]
    spatial = len(layer.shape) - 2
    return layer.row_axes == 1 and output.ndim == 2 + spatial and output.shape[1] == layer.matrix[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldNorms:
    """Rounds what runs: the weight with its norm's scale, as runtimes that fuse norms have it."""

    name: str = "fold-norms"

    def rewrite(self, draft: Draft, setting: Setting) -> Outcome:
        """Fold; see the Transform contract.  Raises TransformError naming what stands in the way where nothing can."""
        norms = find_norms(setting.trace, draft.summary)
        notes = [f"the batch norm {name} was not folded: it {why}" for name, why in norms.obstacles.items()]
        if not norms.behind:
            raise TransformError(
                f"{draft.summary.name} has no batch norm that could be folded: "
                f"{'; '.join(notes[:2]) or _behind_the_first_layer(setting.trace)}; take fold-norms out of the plan"
            )
        calls = {step.layer: step for step in setting.trace.steps if isinstance(step, LayerCall)}
        changes = []
        for layer, norm in norms.behind.items():
            biases = [name for name in calls[layer].others if draft.vector(name).ndim == 1]
            if draft.non_finite((layer,), (*norm.tensors, *biases)) is not None:
                notes.append(f"{layer} or {norm.name} holds NaN or infinite values: fold-norms left them alone")
            else:
                _fold(draft, layer, biases[0] if biases else None, norm)
                changes.append(FoldReport(transform=self.name, source=norm.name, layers=(layer,)))
        return Outcome(changes=tuple(changes), notes=tuple(notes))


def _behind_the_first_layer(trace: Trace) -> str:
    for index, step in enumerate(trace.steps):
        if isinstance(step, LayerCall):
            following = next((each for each in trace.steps[index + 1 :] if step.output in each.inputs), None)
            what = "nothing" if following is None else getattr(following, "layer", getattr(following, "name", ""))
            return f"behind its first layer {step.layer} comes {what}, and no batch norm anywhere"
    return "it runs no layer"


def _fold(draft: Draft, layer: str, bias: str | None, norm: NormCall) -> None:
    mean, variance, gamma, beta, shift = (
        None if name is None else draft.vector(name)
        for name in (norm.mean, norm.variance, norm.gamma, norm.beta, bias)
    )  # fmt: skip
    assert mean is not None and variance is not None
    facts = BatchNorm(mean=mean, variance=variance, gamma=gamma, beta=beta, epsilon=norm.epsilon)
    draft.weights[layer], shift = folded(draft.weight(layer), shift, facts)
    draft.folded.add(norm.name)
    factor = (variance.double() + norm.epsilon).rsqrt() * (1.0 if gamma is None else gamma.double())
    draft.scale_rows(layer, torch.where(factor == 0, 1.0, 1 / factor))
    identity = {norm.variance: 1 - norm.epsilon, norm.mean: 0.0, norm.gamma: 1.0, norm.beta: 0.0}
    draft.others |= {name: torch.full_like(mean, value) for name, value in identity.items() if name is not None}
    if bias is None and norm.beta is None:
        draft.others[norm.mean] = -shift
    else:
        draft.others[bias or norm.beta or ""] = shift

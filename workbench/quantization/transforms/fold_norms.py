"""Batch-norm folding on a model: every norm behind a layer moves into it; the maths: numerics/equivalences/folding.py.

The network keeps its modules, so that what is exported loads into it: a folded norm stays behind as one that changes
nothing (variance 1, mean 0, scale 1) but adds the folded bias where the layer has none of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from workbench.errors import TransformError
from workbench.models.tracing import LayerCall, Trace
from workbench.numerics.equivalences.folding import BatchNorm, folded
from workbench.quantization.transforms.batch_norms import NormCall, find_norms
from workbench.quantization.transforms.rewrite import Draft
from workbench.quantization.transforms.transform import FoldReport, Outcome, Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldNorms:
    """Rounds what runs: the weight with its norm's scale, as runtimes that fuse norms have it."""

    name: str = "fold-norms"

    def rewrite(self, draft: Draft, setting: Setting) -> Outcome:
        """Fold; see the Transform contract.  Raises TransformError naming what was found where nothing can be."""
        norms = find_norms(setting.trace, draft.summary)
        notes = [f"the batch norm {name} was not folded: it {why}" for name, why in norms.obstacles.items()]
        if not norms.behind:
            raise TransformError(
                f"{draft.summary.name} has no batch norm that could be folded: "
                f"{'; '.join(notes[:2]) or no_norm(setting.trace)}; take fold-norms out of the plan"
            )
        calls = {step.layer: step for step in setting.trace.steps if isinstance(step, LayerCall)}
        changes = []
        for layer, norm in norms.behind.items():
            biases = [name for name in calls[layer].kept if draft.vector(name).ndim == 1]
            vectors = [draft.vector(name) for name in (*norm.tensors, *biases)]
            if not all(bool(each.isfinite().all()) for each in (draft.weight(layer), *vectors)):
                notes.append(f"{layer} or {norm.name} holds NaN or infinite values: fold-norms left them alone")
            else:
                changes.append(_fold(draft, layer, biases[0] if biases else None, norm))
        return Outcome(changes=tuple(changes), notes=tuple(notes))


def no_norm(trace: Trace) -> str:
    """Say what follows the first layer where no batch norm does."""
    for index, step in enumerate(trace.steps):
        if isinstance(step, LayerCall):
            following = next((each for each in trace.steps[index + 1 :] if step.output in each.inputs), None)
            what = "nothing" if following is None else getattr(following, "layer", getattr(following, "name", ""))
            return f"behind its first layer {step.layer} comes {what}, and no batch norm anywhere"
    return "it runs no layer"


def _fold(draft: Draft, layer: str, bias: str | None, norm: NormCall) -> FoldReport:
    def vector(name: str | None) -> torch.Tensor | None:
        return None if name is None else draft.vector(name)

    mean, variance, gamma = draft.vector(norm.mean), draft.vector(norm.variance), vector(norm.gamma)
    facts = BatchNorm(mean=mean, variance=variance, gamma=gamma, beta=vector(norm.beta), epsilon=norm.epsilon)
    before = draft.weight(layer)
    weight, shift = folded(before, vector(bias), facts)
    factor = (variance.double() + norm.epsilon).rsqrt() * (1.0 if gamma is None else gamma.double())
    draft.weights[layer] = weight
    draft.folded.add(norm.name)
    draft.scale_rows(layer, torch.where(factor == 0, 1.0, 1 / factor))
    zero = torch.zeros_like(mean)
    draft.kept[norm.variance], draft.kept[norm.mean] = torch.full_like(mean, 1 - norm.epsilon), zero
    if norm.gamma is not None:
        draft.kept[norm.gamma] = torch.ones_like(mean)
    if norm.beta is not None:
        draft.kept[norm.beta] = zero
    if bias is not None:
        draft.kept[bias] = shift
    elif norm.beta is not None:
        draft.kept[norm.beta] = shift
    else:
        draft.kept[norm.mean] = -shift
    return FoldReport(
        transform="fold-norms", source=norm.name, layers=(layer,), inputs_before=_largest(before),
        inputs_after=_largest(weight), measure="largest weight of each output",
    )  # fmt: skip


def _largest(weight: torch.Tensor) -> np.ndarray:
    largest: np.ndarray = weight.abs().amax(dim=1).float().numpy()
    return largest

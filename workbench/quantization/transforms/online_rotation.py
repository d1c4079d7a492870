"""Rotation of inputs while the model runs: of the layers behind an activation function, into which no rotation folds.

QuaRot's and SpinQuant's R4 (Ashkboos et al., 2024; Liu et al., "SpinQuant", 2024): ``W x = (W H) (H x)`` for the second
layer of a perceptron, whose input has the largest outliers of a block.  ``H`` is made of Sylvester's Hadamard matrices,
each for as many neighbouring features as the largest power of two that divides the width, as compressed-tensors and
vLLM have it; the columns of the weight are rotated to match, once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from workbench.errors import TransformError
from workbench.models.layer import LayerKind
from workbench.models.summary import ModelSummary
from workbench.models.tracing import LayerCall, Operation, Ref, Trace
from workbench.numerics.equivalences.rotation import online_block
from workbench.planning.plan import KEEP
from workbench.quantization.transforms.labels import MOVING, SAME
from workbench.quantization.transforms.rewrite import Draft
from workbench.quantization.transforms.rotation import dearer_by, predicted_cost
from workbench.quantization.transforms.transform import FoldReport, Outcome, Setting, non_finite_note
from workbench.readable import few

ACTIVATIONS = frozenset({
    "gelu", "silu", "relu", "relu_", "silu_", "tanh", "sigmoid", "hardswish", "hardswish_", "elu", "leaky_relu",
    "leaky_relu_", "softplus", "mish", "relu6", "hardtanh", "hardtanh_", "pow", "square",
})  # fmt: skip
"""Functions of single features, behind which a rotation cannot fold into the layer before."""

PASSING = MOVING | SAME - ACTIVATIONS
"""Operations whose result comes from where their operand came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlineRotation:
    """Rotates the inputs of quantized layers; none where, by the calibration, that is predicted to cost more."""

    name: str = "online-rotation"

    def rewrite(self, draft: Draft, setting: Setting) -> Outcome:
        """Rotate; see the Transform contract."""
        widths, given = {layer.name: layer.matrix[1] for layer in draft.summary.layers}, setting.assignments
        blocks = {
            name: online_block(widths[name]) for name in behind_activations(setting.trace, draft.summary)
            if widths[name] % 2 == 0 and (given[name].weights != KEEP or given[name].inputs)
        }  # fmt: skip
        if not blocks:
            raise TransformError(
                f"{self.name} finds nothing to rotate in {draft.summary.name}: the plan quantizes no linear layer of "
                "an even number of inputs behind an activation function; take it out"
            )
        bad = {name: tensor for name in blocks if (tensor := draft.non_finite((name,)))}
        notes = [non_finite_note(tensor, self.name, (name,)) for name, tensor in bad.items()]
        layers = [name for name in blocks if name not in bad]
        judged = setting.data is not None or not any(given[name].inputs for name in layers)
        before, plain = predicted_cost(draft, setting, layers, layers) if judged else None, draft.copy()
        for name in layers:
            draft.rotate_input(name, blocks[name])
        after = None if before is None else predicted_cost(draft, setting, layers, layers)
        if dearer := dearer_by(before, after):
            draft.restore(plain)
            return Outcome(notes=(*notes, f"{self.name} left {few(layers)} as they are: {dearer}"))
        changes = tuple(FoldReport(transform=self.name, source=name, layers=(name,)) for name in layers)
        return Outcome(changes=changes, notes=tuple(notes))


def behind_activations(trace: Trace, summary: ModelSummary) -> Iterator[str]:
    """Yield linear layers whose every input comes from an activation function or a product of two activations."""
    made = {
        number: step for step in trace.steps if isinstance(step, Operation)
        for number in step.outputs if step.name not in PASSING or number not in step.inputs  # no alias of itself
    }  # fmt: skip
    behind: dict[str, bool] = {}
    for step in trace.steps:
        if isinstance(step, LayerCall):
            behind[step.layer] = behind.get(step.layer, True) and _is_activation(trace, made, step.input)
    for name, value in behind.items():
        layer = summary.by_name[name]
        if value and layer.kind is LayerKind.LINEAR and layer.row_axes == 1 and name not in summary.sharing:
            yield name


def _is_activation(trace: Trace, made: Mapping[int, Operation], number: int) -> bool:
    step = made.get(number)
    while step is not None and step.name in PASSING and isinstance(step.args[0], Ref):
        number, step = step.args[0].number, made.get(step.args[0].number)
    if step is None or step.name in ACTIVATIONS:
        return step is not None
    shapes = [trace.tensors[each].shape for each in step.inputs]
    known = any(each in trace.names for each in step.inputs)
    return step.name in ("mul", "mul_") and len(shapes) == 2 and shapes[0] == shapes[1] and not known

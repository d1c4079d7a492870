"""The tensors of a quantized model under the names and in the shapes that the model stores them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import ExportError
from workbench.models.dtypes import tensor_bytes
from workbench.models.layer import Layer, StoredTensor
from workbench.numerics.formats import parse_scheme
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.planning.plan import KEEP, resolve
from workbench.planning.totals import quantized_inputs, totals
from workbench.planning.transform_names import planned_summary
from workbench.readable import few

if TYPE_CHECKING:
    import torch

    from workbench.models.execution.activation_quantizers import Ranges
    from workbench.models.model import Model
    from workbench.models.summary import ModelSummary
    from workbench.planning.plan import Assignment, Plan
    from workbench.quantization.quantized_model import QuantizedModel
    from workbench.quantization.transforms.rewrite import RewrittenTensors

DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry(StoredTensor):
    """One tensor of a file to be written; ``load`` returns its values."""

    load: Callable[[], np.ndarray | torch.Tensor]

    def data(self) -> np.ndarray:
        """Return the tensor's bytes, row-major and little-endian, as uint8 ``[nbytes]``."""
        values = self.load()
        if not isinstance(values, np.ndarray):
            return tensor_bytes(values)
        return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def check(quantized: QuantizedModel, model: Model | None, *, rotations: bool = False) -> Model:
    """Return ``model`` as the plan's transforms left it, with tensors that are not quantized as they are evaluated.

    Raises if it is missing, is another one, if a tensor is not quantized, or but for ``rotations``, if inputs rotate.

    Layers that could not be quantized (``left``) may be missing: the quantizer keeps them and says why.
    """
    if model is None:
        raise ExportError("this export reads the model's weights: open the model and export again")
    rotated = quantized.changes.rotated
    if rotated and not rotations:
        raise ExportError(
            f"the plan rotates the inputs of {few(rotated, 8)} while the model runs (online-rotation), which this form "
            "cannot say; export to compressed-tensors or script, or take online-rotation out of the plan"
        )
    if model.online and not rotations:
        raise ExportError(
            f"{model.summary.name} rotates activations while it runs ({few(model.online)} in transform_config of its "
            "config.json), which this form cannot say; export to compressed-tensors or script"
        )
    model = quantized.rewritten(model)
    for name, assignment in resolve(quantized.plan, model.summary.layers).items():
        layer = model.summary.by_name[name]
        required = layer.tied_to is None and assignment.weights != KEEP and name not in quantized.left
        if required and name not in quantized.tensors:
            raise ExportError(f"the plan gives {name} the scheme {assignment.weights}, but it was not quantized")
    return model


def planned(plan: Plan, model: Model, ranges: Ranges, changes: RewrittenTensors | None = None) -> QuantizedModel:
    """Return what quantizing ``model`` by ``plan`` would give: schemes and shapes, and no values.

    What an exporter refuses by these it refuses before weights are rounded.  ``changes`` are what the plan's transforms
    made of the model (default: nothing).
    """
    import torch

    from workbench.quantization.correction import corrected
    from workbench.quantization.quantized_model import QuantizedModel
    from workbench.quantization.transforms.rewrite import RewrittenTensors

    changes = changes or RewrittenTensors()
    summary, tensors = model.summary.untied(changes.untied), {}
    left = {name: f"{name} has values that are not finite" for name in summary.non_finite}
    for name, assignment in resolve(plan, summary.layers).items():
        layer = summary.by_name[name]
        if layer.tied_to is None and assignment.weights != KEEP and name not in left:
            scheme = parse_scheme(assignment.weights).name
            tensors[name] = QuantizedTensor(scheme=scheme, shape=layer.matrix, arrays={})
    result = QuantizedModel(summary=summary, plan=plan, tensors=tensors, ranges=ranges, left=left, changes=changes)
    return replace(result, others=dict.fromkeys(corrected(result), torch.empty(0)))


def possible(plan: Plan, model: Model, ranges: Ranges) -> Iterator[QuantizedModel]:
    """Yield what quantizing can give as far as it is known before the model is rewritten: a rotation gives tied layers
    a weight of their own; one without a seed does so where that costs less."""
    from workbench.quantization.transforms.rewrite import RewrittenTensors

    tied = tuple(layer.name for layer in model.summary.tied)
    untied = bool(tied) and not planned_summary(model.summary, plan.transforms).tied
    if untied:
        yield planned(plan, model, ranges, RewrittenTensors(untied=tied))
    if not untied or "rotation" in plan.transforms:
        yield planned(plan, model, ranges)


def expected_nbytes(quantized: QuantizedModel, model: Model) -> int:
    """Return the bytes of all tensors under the plan, with what could not be quantized kept as it is."""
    return totals(model.summary, carried_out(quantized, model.summary)).nbytes


def carried_out(quantized: QuantizedModel, summary: ModelSummary) -> dict[str, Assignment]:
    """Return every layer's assignment, with what could not be quantized kept as it is."""
    assignments = resolve(quantized.plan, summary.layers)
    for layer in summary.stored:
        if layer.name not in quantized.tensors:
            assignments[layer.name] = replace(assignments[layer.name], weights=KEEP)
    return assignments


def refuse_quantized_activations(quantized: QuantizedModel, model: Model, kind: str, target: str = "") -> None:
    """Raise ExportError, with every layer, if the plan quantizes inputs or a KV cache, which a file of weights cannot
    say; ``target`` is the runtime by whose rules the inputs are repaired, where there is one."""
    assignments = resolve(quantized.plan, model.summary.layers)
    inputs = list(quantized_inputs(model.summary, assignments))  # but for tables, whose inputs are tokens
    cached = [name for name, assignment in assignments.items() if assignment.cache is not None]
    for layers, what, schemes in ((inputs, "the inputs", "input"), (cached, "the KV cache", "cache")):
        if layers:
            count = f"{len(layers)} {'layer' if len(layers) == 1 else 'layers'}"
            raise ExportError(
                f"the plan quantizes {what} of {count}, which {kind} cannot express: a program that loads the file "
                "would compute something other than what was evaluated; export to script or safetensors, or remove "
                f"the {schemes} schemes from the plan: {few(layers, 8)}",
                command=_repair(target) if target and layers is inputs else "",
            )


def _repair(target: str) -> str:
    return f"workbench check PLAN.json --model MODEL --target {target} --repair"


def require_that_all_fit(reasons: Mapping[str, str], what: str, target: str) -> None:
    """Raise ExportError that names every layer that ``what`` cannot hold, by reason; ``target`` says how to repair."""
    if not reasons:
        return
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(name)
    listed = "; ".join(f"{few(names, 8)}: {reason}" for reason, names in by_reason.items())
    raise ExportError(
        f"{what} cannot hold {len(reasons)} {'tensor' if len(reasons) == 1 else 'tensors'} as the plan says, nothing "
        f"was written. {listed}",
        command=_repair(target),
    )


def require_same_bytes(
    tensor: StoredTensor, values: np.ndarray, written: np.ndarray, advice: str = "try another place"
) -> None:
    """Raise ExportError that names the first element of a tensor (uint8 ``[nbytes]``) that reads back otherwise."""
    if len(values) != len(written):
        raise ExportError(f"{tensor.name} reads back as {len(values)} bytes, {len(written)} were written; {advice}")
    different = np.flatnonzero(values != written)
    if different.size:
        width = len(written) // math.prod(tensor.shape)
        element = int(different[0]) // width
        first, second = (_shown(each[element * width :][:width], tensor.dtype) for each in (values, written))
        place = ", ".join(str(int(each)) for each in np.unravel_index(element, tensor.shape))
        raise ExportError(f"{tensor.name}[{place}] reads back as {first}, {second} was written; {advice}")


def _shown(raw: np.ndarray, dtype: str) -> str:
    """Return a number, or its bytes where NumPy lacks the dtype."""
    known = dtype in np.sctypeDict
    return str(raw.view(dtype)[0]) if known else f"the bytes {raw.tobytes().hex()}"


def require_equal(name: str, values: torch.Tensor, evaluated: torch.Tensor, *, ulps: int = 0, start: int = 0) -> None:
    """Raise ExportError that names the first value that another reader finds otherwise than it was evaluated.

    Both are float32 of one shape, the first row being the one numbered ``start``.  ``ulps``: how many units in the last
    place a reader may differ that multiplies the same numbers in another order.
    """
    import torch

    if values.shape != evaluated.shape:
        raise ExportError(f"{name} reads back as {tuple(values.shape)}, it is {tuple(evaluated.shape)}; please report")
    first, second = values.float().contiguous(), evaluated.float().contiguous()
    if torch.equal(first, second):
        return
    if ulps:
        wrong = (first - second).abs() > ulps * torch.finfo(torch.float32).eps * second.abs()
    else:
        wrong = (first != second) & ~(first.isnan() & second.isnan())
    if bool(wrong.any()):
        place = tuple(int(each) for each in wrong.nonzero()[0])
        shown = (start + place[0], *place[1:])
        raise ExportError(
            f"{name}[{', '.join(map(str, shown))}] reads back as {float(first[place])!r}, {float(second[place])!r} was "
            "evaluated; please report"
        )


def other_entries(quantized: QuantizedModel, model: Model) -> Iterator[Entry]:
    """Yield what is stored as it is: layers that the plan keeps, norms, biases, buffers; tied tensors once."""

    def weight(layer: Layer) -> torch.Tensor:
        return layer.tensor_of(model.weight(layer.name))

    def other(name: str) -> torch.Tensor:
        tensor = model.other(name)
        return quantized.others.get(name, tensor).to(tensor.dtype)

    for layer in model.summary.stored:
        if layer.name not in quantized.tensors:
            yield Entry(name=layer.parameter, dtype=layer.dtype, shape=layer.shape, load=partial(weight, layer))
    for tensor in model.summary.others:
        yield Entry(name=tensor.name, dtype=tensor.dtype, shape=tensor.shape, load=partial(other, tensor.name))


def decoded_entries(quantized: QuantizedModel, model: Model) -> Iterator[Entry]:
    """Yield every quantized tensor, decoded to float32, in the shape that the model stores it."""
    for layer in model.summary.stored:
        if layer.name in quantized.tensors:
            load = partial(decoded, quantized, layer)
            yield Entry(name=layer.parameter, dtype="float32", shape=layer.shape, load=load)


def decoded(quantized: QuantizedModel, layer: Layer) -> torch.Tensor:
    """Return the float32 values of a quantized layer in its stored shape."""
    stored = quantized.tensors[layer.name]
    return layer.tensor_of(parse_scheme(stored.scheme).decode(stored))


def array_entries(name: str, arrays: Mapping[str, np.ndarray]) -> Iterator[Entry]:
    """Yield one entry for each stored array of a quantized tensor: ``<name>.codes``, ``<name>.scales``, ..."""
    for part, array in arrays.items():
        yield Entry(name=f"{name}.{part}", dtype=array.dtype.name, shape=array.shape, load=partial(np.asarray, array))

"""Which channel every element of a tensor belongs to, followed through a recorded graph.

A channel may be scaled where it arises and unscaled where it ends if all operations on the way commute with a positive
factor for each channel.  Its elements carry the channel's number (a label, -1 for none): operations that only move
elements are applied to the labels themselves, so that splits, transpositions and repeated heads need no case of their
own; for the few that compute, the rule is written here; at any other the channel is blocked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from workbench.models.tracing import LayerCall, Operation, Ref, Trace

MOVING = frozenset({
    "view", "_unsafe_view", "reshape", "permute", "transpose", "t", "expand", "unsqueeze", "squeeze", "slice", "select",
    "clone", "alias", "detach", "split", "split_with_sizes", "unbind", "chunk", "repeat", "index_select", "flatten",
    "unsafe_split", "flip", "contiguous", "repeat_interleave", "lift_fresh", "index", "gather", "roll", "movedim",
})  # fmt: skip
"""Operations that copy elements from one tensor to another place."""

SAME = frozenset({"_to_copy", "to", "neg", "relu", "relu_", "abs", "dropout", "leaky_relu", "leaky_relu_"})
"""Operations of one tensor, element by element, with ``f(s x) = s f(x)`` for ``s > 0``."""

RECTIFIERS = frozenset({"relu", "relu_", "abs", "leaky_relu", "leaky_relu_"})
"""Those of them that pass a positive factor of each channel, but no rotation of several."""

ATTENTION = frozenset({
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention", "scaled_dot_product_attention",
    "_scaled_dot_product_attention_math",
})  # fmt: skip

POOLS = frozenset({
    *(f"{kind}_pool{n}d" for kind in ("avg", "adaptive_avg", "_adaptive_avg", "adaptive_max") for n in (1, 2, 3)),
    "max_pool1d", "max_pool2d", "max_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices",
    "upsample_nearest1d", "upsample_nearest2d", "upsample_bilinear2d",
})  # fmt: skip
"""Operations that put a mean, a maximum or a copy of some positions into one; ``f(s x) = s f(x)`` for ``s > 0``."""

PRODUCTS = frozenset({"mm", "bmm", "matmul"})


@dataclass(slots=True, kw_only=True, eq=False)
class Flow:
    """Where the channels of one producer went.

    ``columns`` maps a layer to the channel of each of its inputs, int64 ``[columns]``, -1 for none.  ``blocked`` are
    channels that met an operation at which a factor cannot pass, ``obstacles`` says which.  ``heads`` are sets of
    channels that a product mixed alike, so that they may be rotated among themselves, unless ``elementwise``: some
    operation told channels apart.
    """

    columns: dict[str, torch.Tensor] = field(default_factory=dict)
    blocked: set[int] = field(default_factory=set)
    obstacles: list[str] = field(default_factory=list)
    heads: list[tuple[int, ...]] = field(default_factory=list)
    elementwise: bool = False

    def block(self, labels: torch.Tensor, what: str) -> None:
        """Note that the channels in ``labels`` cannot be followed through ``what``."""
        channels = set(torch.unique(labels).tolist()) - {-1}
        if channels:
            self.blocked |= channels
            if what not in self.obstacles:
                self.obstacles.append(what)


def follow(
    trace: Trace, start: int, tensor: int, labels: torch.Tensor, linear: Collection[str],
    spatial: Mapping[str, int] | None = None,
) -> Flow:  # fmt: skip
    """Follow ``labels`` (int64, of the shape of tensor number ``tensor``) from step ``start`` to the end of the trace.

    ``linear`` are the layers that may take a factor into their columns; any other blocks what reaches it.  ``spatial``
    says how many axes follow that of the channels in a layer's input: none, but for convolutions.
    """
    flow, at = Flow(), {tensor: labels}
    calls = trace.calls()
    for step in trace.steps[start:]:
        if not any(number in at for number in step.inputs):
            continue
        if isinstance(step, LayerCall):
            labels = at[step.input]
            last = labels.movedim(labels.ndim - 1 - (spatial or {}).get(step.layer, 0), -1)
            _arrive(flow, step, last, step.layer in linear and calls[step.layer] == 1)
        else:
            at |= dict(zip(step.outputs, _through(flow, trace, step, at), strict=True))
    if trace.output in at:
        flow.block(at[trace.output], "the model's output")
    return flow


def _arrive(flow: Flow, step: LayerCall, labels: torch.Tensor, allowed: bool) -> None:
    rows = labels.reshape(-1, labels.shape[-1])
    if not allowed or bool((rows != rows[0]).any()):
        flow.block(labels, f"the layer {step.layer}")
    else:
        flow.columns[step.layer] = rows[0].clone()


def _through(flow: Flow, trace: Trace, step: Operation, at: dict[int, torch.Tensor]) -> list[torch.Tensor]:
    """Return the labels of every output of an operation; -1 throughout where nothing passes."""
    shapes = [trace.tensors[number].shape for number in step.outputs]
    rule = RULES.get(step.name)
    passed = rule(flow, trace, step, at) if rule is not None else None
    if passed is None or [each.shape for each in passed[: len(shapes)]] != shapes[: len(passed)]:
        for number in step.inputs:
            if number in at:
                flow.block(at[number], f"the operation {step.name}")
        passed = []
    return [*passed, *(torch.full(shape, -1) for shape in shapes[len(passed) :])]


Rule = Callable[[Flow, Trace, Operation, dict[int, torch.Tensor]], list[torch.Tensor] | None]


def moved(flow: Flow, trace: Trace, step: Operation, at: dict[int, torch.Tensor]) -> list[torch.Tensor] | None:
    """Return the labels after an operation that moves elements: the operation applied to the labels."""

    def stand_in(leaf: Any) -> Any:
        return at.get(leaf.number, trace.tensors[leaf.number]) if isinstance(leaf, Ref) else leaf

    first = step.args[0]
    if not isinstance(first, Ref) or any(n in at for n in step.inputs if n != first.number):
        return None
    args, kwargs = tree_map(stand_in, (step.args, {k: v for k, v in step.kwargs.items() if k != "memory_format"}))
    try:
        result = step.function(*args, **kwargs)
    except RuntimeError:  # a view that the memory of the labels does not allow
        result = torch.ops.aten.reshape(args[0], args[1]) if step.name in ("view", "_unsafe_view") else None
    return None if result is None else [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]


def _same(flow: Flow, trace: Trace, step: Operation, at: dict[int, torch.Tensor]) -> list[torch.Tensor] | None:
    flow.elementwise |= step.name in RECTIFIERS
    return [at[step.args[0].number]]


def _pooled(flow: Flow, trace: Trace, step: Operation, at: dict[int, torch.Tensor]) -> list[torch.Tensor] | None:
    """A pool or an enlargement: passes where every position that it looks at has one label."""
    labels, shape = at[step.args[0].number], trace.tensors[step.outputs[0]].shape
    flow.elementwise |= "max" in step.name
    for axis in range(len(shape) - (1 if "1d" in step.name else 3 if "3d" in step.name else 2), len(shape)):
        if not _constant(labels, axis):
            return None
        labels = labels.narrow(axis, 0, 1)
    return [labels.expand(shape)]


def _mean(flow: Flow, trace: Trace, step: Operation, at: dict[int, torch.Tensor]) -> list[torch.Tensor] | None:
    """A mean over axes along which the labels stay."""
    labels = at[step.args[0].number]
    axes = step.args[1] if len(step.args) > 1 and step.args[1] else None
    if axes is None or not all(_constant(labels, axis) for axis in axes):
        return None
    keep = bool(step.args[2]) if len(step.args) > 2 else bool(step.kwargs.get("keepdim"))
    return [labels.amax(dim=list(axes), keepdim=keep)]


def _padded(flow: Flow, trace: Trace, step: Operation, at: dict[int, torch.Tensor]) -> list[torch.Tensor] | None:
    """Zeros at the borders, which any factor leaves zero."""
    labels, pads = at[step.args[0].number], step.args[1]
    if len(step.args) > 2 and step.args[2] != 0:
        return None
    for axis in range(len(pads) // 2):
        place = labels.ndim - 1 - axis
        before, after = pads[2 * axis : 2 * axis + 2]
        if _constant(labels, place):
            shape = list(labels.shape)
            shape[place] += before + after
            labels = labels.narrow(place, 0, 1).expand(shape)
        else:
            ends = [0, 0] * axis + [before, after]
            labels = torch.nn.functional.pad(labels, ends, value=-1)
    return [labels]


def _joined(flow: Flow, trace: Trace, step: Operation, at: dict[int, torch.Tensor]) -> list[torch.Tensor] | None:
    parts = [_labels(ref, at, trace.tensors[ref.number].shape) for ref in step.args[0]]
    return [torch.cat(parts, *step.args[1:], **step.kwargs)]


def _product(flow: Flow, trace: Trace, step: Operation, at: dict[int, torch.Tensor]) -> list[torch.Tensor] | None:
    """Element by element: the labels of the one factor that has any."""
    shape = trace.tensors[step.outputs[0]].shape
    a, b = (_labels(each, at, shape) for each in step.args[:2])
    flow.block(torch.where(b >= 0, a, -1), f"the operation {step.name}")
    flow.block(torch.where(a >= 0, b, -1), f"the operation {step.name}")
    plain = [each for each in step.args[:2] if isinstance(each, Ref) and each.number not in at]
    flow.elementwise |= any(trace.tensors[each.number].numel() > 1 for each in plain)
    return [torch.maximum(a, b)]


def _quotient(flow: Flow, trace: Trace, step: Operation, at: dict[int, torch.Tensor]) -> list[torch.Tensor] | None:
    divisor = step.args[1]
    return None if isinstance(divisor, Ref) and divisor.number in at else _product(flow, trace, step, at)


def _sum(flow: Flow, trace: Trace, step: Operation, at: dict[int, torch.Tensor]) -> list[torch.Tensor] | None:
    """Element by element: passes where both have the same label."""
    shape = trace.tensors[step.outputs[0]].shape
    a, b = (_labels(each, at, shape) for each in step.args[:2])
    for labels in (a, b):
        flow.block(torch.where(a == b, -1, labels), f"the operation {step.name}")
    return [torch.where(a == b, a, -1)]


def _labels(operand: Any, at: dict[int, torch.Tensor], shape: torch.Size) -> torch.Tensor:
    """Return an operand's labels, spread over ``shape``; -1 throughout where it has none."""
    known = isinstance(operand, Ref) and operand.number in at
    return at[operand.number].expand(shape) if known else torch.full(shape, -1)


def _matrix_product(
    flow: Flow, trace: Trace, step: Operation, at: dict[int, torch.Tensor]
) -> list[torch.Tensor] | None:
    """A sum over one axis: passes where the summed elements have one label.  The right factor's columns are a head."""
    left, right = step.args[0].number, step.args[1].number
    shape = trace.tensors[step.outputs[0]].shape
    if left in at and right in at or max(len(shape), 2) != trace.tensors[left].ndim:
        return None
    if right in at:
        labels = at[right]
        return None if not _constant(labels, -2) else [_headed(flow, labels[..., :1, :]).expand(shape)]
    labels = at[left]
    flow.elementwise = True
    return None if not _constant(labels, -1) else [labels[..., :1].expand(shape)]


def _attention(flow: Flow, trace: Trace, step: Operation, at: dict[int, torch.Tensor]) -> list[torch.Tensor] | None:
    """Attention passes the channels of its values; several heads of queries may share one of values."""
    query, key, value = (each.number for each in step.args[:3])
    for number in (query, key):
        if number in at:
            flow.block(at[number], f"the operation {step.name}")
    if value not in at:
        return []
    labels, shape = at[value], trace.tensors[step.outputs[0]].shape
    if not _constant(labels, -2) or shape[-3] % labels.shape[-3]:
        return None
    labels = labels.repeat_interleave(shape[-3] // labels.shape[-3], dim=-3)
    return [_headed(flow, labels[..., :1, :]).expand(shape)]


def _headed(flow: Flow, labels: torch.Tensor) -> torch.Tensor:
    """Record the sets of channels that a product mixes alike."""
    for head in labels.reshape(-1, labels.shape[-1]).tolist():
        if tuple(head) not in flow.heads:
            flow.heads.append(tuple(head))
    return labels


def _constant(labels: torch.Tensor, axis: int) -> bool:
    return bool((labels == labels.narrow(axis, 0, 1)).all())


RULES: dict[str, Rule] = {
    **dict.fromkeys(MOVING, moved), **dict.fromkeys(SAME, _same), **dict.fromkeys(PRODUCTS, _matrix_product),
    **dict.fromkeys(ATTENTION, _attention),
    **dict.fromkeys(POOLS, _pooled), "mean": _mean, "constant_pad_nd": _padded,
    "cat": _joined, "mul": _product, "div": _quotient, "add": _sum, "sub": _sum,
}  # fmt: skip
"""What each operation does with labels; any other blocks them."""

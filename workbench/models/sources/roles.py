"""What layers are, from what ran: one forward pass on a small sample, and names only where none can be made.

Things that the field does not quantize get a reason to stay in floating point, which a rule that names them overrides.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from workbench.errors import WorkbenchError
from workbench.models.execution.network import NetworkModel
from workbench.models.execution.products import NO_PRODUCT
from workbench.models.execution.unread import unread
from workbench.models.execution.uses import Use, UseRecorder, Uses
from workbench.models.layer import ROUTER, Layer, LayerKind
from workbench.models.model import Batch
from workbench.models.sources.layers import PER_TOKEN, NetworkParts, transposed_role
from workbench.models.tracing import run_accepted

SAMPLES = 3
"""Samples of the traced batch: few, and seldom the size of anything else in a network."""

MOST_READ = 1 << 28
"""Most weights that are read for the trace: beyond, that would hold up opening, and large ones are not."""

POSITIONS = "a table of positions: it is looked up by place and added"
SHARED_GATE = "a gate beside a router: its one output weighs all that a shared expert adds"
NORMALIZED = "the layer multiplies a weight that is computed from it (weight normalization)"
BY_NAME = "by its name, as no forward pass could be made"
PLAIN = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d,
         nn.Embedding)  # fmt: skip
STATE_SPACE, TABLE = re.compile(r"(^|\.)(A_log|dt_bias)$"), re.compile(r"pos(ition)?(al)?_?(emb|enc|bias)")
GATE = re.compile(r"(router|\bgate)(\.weight|\.linear|\.classifier)?$")


def trace_uses(model: NetworkModel) -> tuple[Uses, Counter[str], str]:
    """Run a small batch and return the uses of all parameters, how often each hooked module ran, and "".

    Where no pass can be made, the third is the reason as a clause.
    """
    network = model.body.network
    parameters = dict(network.named_parameters())
    large = sum(tensor.numel() for tensor in parameters.values()) > MOST_READ
    samples, modules = model.inputs.batch or SAMPLES, dict(network.named_modules())

    def traced(batch: Batch) -> tuple[Uses, Counter[str]]:
        recorder, calls = UseRecorder(parameters, samples), Counter[str]()
        with torch.no_grad(), unread(network) if large else nullcontext(), ExitStack() as stack, recorder:
            for path in set(model.body.hooks.values()):

                def count(*_: Any, path: str = path) -> None:
                    calls[path] += 1

                with suppress(RuntimeError):  # a TorchScript program takes no hooks
                    stack.callback(modules[path].register_forward_hook(count).remove)
            model.run(batch)
        return recorder.uses, calls

    try:
        return *run_accepted(model, samples, traced), ""
    except (WorkbenchError, AttributeError, NotImplementedError, AssertionError, KeyError, ImportError) as error:
        return Uses(), Counter(), str(error)


def refine(parts: NetworkParts, network: nn.Module, uses: Uses, calls: Mapping[str, int], failure: str) -> None:
    """Turn guesses about the layers of ``parts`` into facts: kinds, axes, reasons to keep them, how they are tapped."""
    names = {id(tensor): name for name, tensor in network.named_parameters()}
    modules = dict(network.named_modules(remove_duplicate=False))
    parameters = dict(network.named_parameters(remove_duplicate=False))
    ranked = {len(parameters[router]) for router in uses.routers}
    routers = (layer for layer in parts.layers if names[id(parameters[layer.parameter])] in uses.routers)
    routed = {_block(layer.name) for layer in routers} - {""}
    sharers, called = Counter[str](), Counter[tuple[str, bool]]()
    for layer in parts.layers:
        parameter = names[id(parameters[layer.parameter])]
        sharers[parameter] += 1
        called[parameter, layer.kind is LayerKind.EMBEDDING] += calls.get(parts.hooks.get(layer.name, ""), 0)
    for layer in parts.layers:
        parameter = names[id(parameters[layer.parameter])]
        module = modules[layer.parameter.rpartition(".")[0]]
        if failure or parameter not in uses:
            _plain_only(parts, layer, module)
            if isinstance(module, torch.jit.ScriptModule) and not calls.get(parts.hooks.get(layer.name, "")):
                parts.hooks.pop(layer.name, None)  # programs run their parts without Python, unless Python calls these
            parts.by_name[layer.name] = replace(layer, keep=_by_name(layer, failure))
            continue
        table, alone = layer.kind is LayerKind.EMBEDDING, sharers[parameter] == 1
        products = list(uses.products.get(parameter, ()))
        everything, partly = products, bool(products) and parameter in uses.derived
        if table or not alone:
            others = [use for use in products if (use.kind is LayerKind.EMBEDDING) != table]
            products = [use for use in products if use not in others]
            if others and table and alone:
                partly = not _add_matrix(parts, layer, others) or partly
        reason = _reason(layer, module, parameter, products, uses, routed)
        used = _one_below_the_other(layer, products, ranked) or _as_used(layer, module, products)
        times = 1 if used.kind is LayerKind.EXPERTS else max(len(everything if alone else products), 1)
        changed = parts.by_name[layer.name] = replace(used, keep=reason, calls=times)
        _tap(parts, changed, module, products, called[parameter, table] == len(products))
        if partly:  # a tap would see a part of what the weight does
            parts.hooks.pop(layer.name, None)
            parts.functions.pop(layer.name, None)


def _add_matrix(parts: NetworkParts, table: Layer, products: list[Use]) -> bool:
    """Add the layer that a look-up table is where it is also used as a matrix, without a module of its own.

    False where it is used in another way, or only in part.
    """
    layer = replace(
        table, name=table.parameter, kind=LayerKind.LINEAR, tied_to=table.name, macs=table.parameters,
        calls=len(products),
    )  # fmt: skip
    plain = layer.name not in parts.by_name and all(use.whole and use.summed == (1,) for use in products)
    if plain:
        parts.by_name[layer.name] = layer
        parts.functions[layer.name] = products[0].samples or 0
    return plain


def _reason(layer: Layer, module: nn.Module, parameter: str, products: list[Use], uses: Uses, routed: set[str]) -> str:
    """Return why a layer is kept; ``routed`` are the modules with a router in them."""
    if parameter in uses.routers and layer.tied_to is None:
        return ROUTER
    if layer.matrix[0] == 1 and _block(layer.name) in routed:
        return SHARED_GATE
    if products and all(use.consecutive for use in products):
        return POSITIONS
    known = isinstance(module, PLAIN) and layer.parameter.endswith("weight")
    if products or layer.kind in (LayerKind.RECURRENT, LayerKind.ATTENTION):
        return ""
    others = uses.other.get(parameter, set())
    if parameter in uses.derived:
        return "" if known else NORMALIZED
    if others <= NO_PRODUCT:
        return f"it acts through {', '.join(sorted(others))}, not as the matrix of a product"
    return ""


def _block(layer: str) -> str:
    """Return the module that a layer is in."""
    return layer.removesuffix(".weight").rpartition(".")[0]


def _as_used(layer: Layer, module: nn.Module, products: list[Use]) -> Layer:
    """Return the layer with the kind and the axes of its products, as it is where they differ among themselves."""
    shapes = {(use.kind, use.summed, use.batch) for use in products}
    if len(shapes) != 1 or layer.kind in (LayerKind.ATTENTION, LayerKind.RECURRENT):
        return layer
    use, rank = products[0], len(layer.shape)
    if use.kind is LayerKind.CONV_TRANSPOSE:
        role = transposed_role(layer.shape, use.groups)
        return replace(layer, kind=use.kind, axes=role.axes or tuple(range(rank)), row_axes=role.row_axes)
    if use.kind is not LayerKind.LINEAR:
        return replace(layer, kind=use.kind)
    if layer.kind is LayerKind.EMBEDDING and isinstance(module, nn.Embedding):
        return layer
    rows = (*use.batch, *(axis for axis in range(rank) if axis not in (*use.batch, *use.summed)))
    if len(rows) + len(use.summed) != rank or not use.summed:
        return layer
    kind = LayerKind.EXPERTS if use.batch else LayerKind.LINEAR
    if not use.batch and not use.whole:
        kind = layer.kind if layer.kind is LayerKind.LINEAR else LayerKind.MATRIX
    macs = math.prod(layer.shape) if kind in PER_TOKEN else layer.macs
    return replace(layer, kind=kind, axes=(*rows, *use.summed), row_axes=len(rows), macs=macs)


def _one_below_the_other(layer: Layer, products: list[Use], routed: set[int]) -> Layer | None:
    """Return the layer of experts whose matrices are stored as one; ``routed`` are the numbers that routers rank."""
    numbers, summed = {use.experts for use in products}, {use.summed for use in products}
    if len(layer.shape) != 2 or len(numbers) != 1 or len(summed) != 1 or not numbers <= routed - {0, 1}:
        return None
    (count,), ((axis,), *_) = numbers, summed
    view = (count, layer.shape[0] // count, layer.shape[1])
    return replace(
        layer, kind=LayerKind.EXPERTS, view=view, axes=(0, 2, 1) if axis == 0 else (0, 1, 2), row_axes=2, macs=None,
        calls=1,
    )  # fmt: skip


def _tap(parts: NetworkParts, layer: Layer, module: nn.Module, products: list[Use], called: bool) -> None:
    """Tap the layer by its module where that does nothing else, by the function where its products are plain."""
    _plain_only(parts, layer, module)
    if products and layer.name in parts.hooks and called and not any(use.samples for use in products):
        return
    parts.hooks.pop(layer.name, None)
    if layer.kind is LayerKind.EXPERTS and products and {use.experts for use in products} == {layer.experts}:
        parts.experts[layer.name] = layer.experts
    elif all(use.whole and use.kind is layer.kind for use in products) and len({use.summed for use in products}) == 1:
        parts.functions[layer.name] = products[0].samples or 0


def _plain_only(parts: NetworkParts, layer: Layer, module: nn.Module) -> None:
    """Forget the module's tap where its class does more than the layer: it scales, masks, normalizes, returns more."""
    base = next((base for base in PLAIN if isinstance(module, base)), None)
    if base is not None and any(
        getattr(type(module), name, None) is not getattr(base, name, None) for name in ("forward", "_conv_forward")
    ):
        parts.hooks.pop(layer.name, None)


def _by_name(layer: Layer, failure: str) -> str:
    """Return a reason to keep a layer that did not run in the trace."""
    why = f" ({BY_NAME})" if failure else " (by its name, as it did not run)"
    if STATE_SPACE.search(layer.parameter):
        return "a state-space parameter" + why
    if TABLE.search(layer.parameter):
        return "a table of positions" + why
    return "a router" + why if GATE.search(layer.parameter) and layer.matrix[0] < layer.matrix[1] else ""

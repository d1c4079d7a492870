"""What quantized activations would cost: the noise at each quantizer, weighted by the gradient's second moment there.

    loss of e = 1/2 * mean over units of sum_tj g_tj ** 2 * e_tj ** 2

``e = Q(x) - x`` is what the very quantizer of a plan does to the layer's input (or, for a key-value cache, to what the
layers of keys and values give), and ``g`` the gradient of the log-likelihood at that place, labels drawn from the model
itself.  Rounding errors of different activations are taken as independent, so their products drop out: the diagonal of
the Fisher information, of activations instead of weights.  One backward pass for each batch serves every scheme.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from workbench.errors import MissingResultError, ModelError, nearest
from workbench.measurement.divergence import Divergence
from workbench.measurement.finite import FiniteBatches
from workbench.measurement.gradients import batch_generator, drawn_gradient
from workbench.models.data.batches import Data, require_data, tappable, units_of
from workbench.models.layer import LayerKind
from workbench.models.model import Model
from workbench.models.summary import OutputKind
from workbench.numerics.formats import parse_scheme
from workbench.planning.kv_cache import makes_keys_or_values
from workbench.planning.plan import Plan
from workbench.progress import Progress, silent
from workbench.quantization.quantize import Ranges, Replacement, cache_quantizer, input_quantizers
from workbench.sensitivity.table import Sensitivity, unit_of

if TYPE_CHECKING:
    from workbench.models.model import Batch

Quantizers = Mapping[str, Mapping[str, Replacement]]
"""What each scheme does to a layer's activations, by layer and scheme."""


def score_inputs(
    model: Model, schemes: Sequence[str], dataset: Data, *, ranges: Ranges | None = None, metric: str = "predicted_kl",
    layers: Sequence[str] | None = None, batch_size: int = 8, seed: int = 0, notes: list[str] | None = None,
    progress: Progress = silent,
) -> Sensitivity:  # fmt: skip
    """Return the table of layers x activation schemes: what quantizing that one layer's input costs, in nats.

    ``search`` takes it as ``inputs``.  ``metric`` is ``predicted_kl``, or ``measured_kl``: the model run with that
    input quantized, one run for each cell and batch.  ``ranges`` (a session's ``active_ranges``) serve schemes for
    whole tensors, which are static; others are dynamic.  ``layers`` default to all whose input a tap sees.  A layer
    that no data reach has a row of NaN; a batch whose output holds NaN or infinity is left out, and ``notes`` says so.
    Raises MissingResultError for a static scheme without ranges, SchemeError, ModelError, DataError, CannotRunError.
    """
    require_data(model, dataset, "an activation's loss")
    names = _names(model, layers, [layer.name for layer in tappable(model) if layer.kind is not LayerKind.EMBEDDING])
    quantizers = _quantizers(model, names, schemes, ranges or {})
    finite = FiniteBatches(model=model, notes=[] if notes is None else notes)
    if metric == "measured_kl":
        losses = dict(_measured(model, quantizers, "input", dataset, batch_size, finite, progress))
    else:
        losses = _predicted(model, quantizers, "input", dataset, batch_size, seed, finite, progress)
    return _table(metric, model.summary.output, quantizers, losses, dataset, seed)


def score_cache(
    model: Model, schemes: Sequence[str], dataset: Data, *, metric: str = "predicted_kl", batch_size: int = 8,
    seed: int = 0, layers: Sequence[str] | None = None, notes: list[str] | None = None, progress: Progress = silent,
) -> Sensitivity:  # fmt: skip
    """Return the same for a key-value cache: what rounding the output of that one layer of keys or values costs.

    ``layers`` default to those with the usual names (``k_proj``, ``v_proj``, ``key``, ``value``); scales are dynamic,
    for each token (``int8-token``) or group of its features.  Keys are rounded before their rotation by position.
    Raises ModelError where the model has no such layer, PlanError for a scheme with one scale for the whole tensor.
    """
    require_data(model, dataset, "a key-value cache's loss")
    found = [layer.name for layer in tappable(model) if makes_keys_or_values(layer)]
    if not found and layers is None:
        raise ModelError(
            f"{model.summary.name} has no layer named as those of keys and values are (k_proj, v_proj, key, value); "
            "name them with layers=..."
        )
    names = _names(model, layers, found)
    columns = tuple(dict.fromkeys(parse_scheme(scheme).name for scheme in schemes))
    quantizers = {name: {scheme: cache_quantizer(name, scheme) for scheme in columns} for name in names}
    _require_some(quantizers)
    finite = FiniteBatches(model=model, notes=[] if notes is None else notes)
    if metric == "measured_kl":
        losses = dict(_measured(model, quantizers, "output", dataset, batch_size, finite, progress))
    else:
        losses = _predicted(model, quantizers, "output", dataset, batch_size, seed, finite, progress)
    return _table(metric, model.summary.output, quantizers, losses, dataset, seed)


def _names(model: Model, layers: Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    if layers is None:
        return tuple(known)
    seen = {layer.name for layer in tappable(model)}
    for name in layers:
        if name not in seen:
            raise ModelError(f"no tap sees the activations of a layer {name!r}{nearest(name, seen)}")
    return tuple(dict.fromkeys(layers))


def _quantizers(model: Model, names: Sequence[str], schemes: Sequence[str], ranges: Ranges) -> Quantizers:
    """Return the functions that a plan with these input schemes would quantize with."""
    found: dict[str, dict[str, Replacement]] = {name: {} for name in names}
    for scheme in dict.fromkeys(parse_scheme(scheme).name for scheme in schemes):
        for name, quantizer in input_quantizers(model.summary, Plan().assign(names, inputs=scheme), ranges).items():
            found[name][scheme] = quantizer
    _require_some(found)
    return found


def _require_some(quantizers: Quantizers) -> None:
    if not quantizers or not all(quantizers.values()):
        raise MissingResultError("there is nothing to score: give at least one layer and one activation scheme")


def _table(
    metric: str, output: OutputKind, quantizers: Quantizers, losses: Mapping[str, Mapping[str, float]], data: Data,
    seed: int,
) -> Sensitivity:
    schemes = tuple(next(iter(quantizers.values())))
    score = np.array([[losses.get(name, {}).get(scheme, np.nan) for scheme in schemes] for name in quantizers])
    return Sensitivity(
        metric=metric, unit=unit_of(metric, output), layers=tuple(quantizers), schemes=schemes, score=score,
        samples=len(data), seed=seed, data_hash=data.record.content_hash,
    )  # fmt: skip


def _predicted(
    model: Model, quantizers: Quantizers, tap: str, data: Data, batch_size: int, seed: int, finite: FiniteBatches,
    progress: Progress,
) -> dict[str, dict[str, float]]:  # fmt: skip
    """Return the predicted loss of every cell that the data reach."""
    total, units = -(-len(data) // batch_size), 0
    sums: dict[str, dict[str, float]] = {}
    for number, batch in enumerate(data.batches(batch_size)):
        progress(number / total, f"noise and gradients of batch {number + 1} of {total}")
        one = _Noise(quantizers=quantizers)
        if one.run(model, batch, tap, number, seed, finite):
            units += units_of(batch, model.summary)
            for name, losses in one.sums.items():
                kept = sums.setdefault(name, dict.fromkeys(losses, 0.0))
                for scheme, loss in losses.items():
                    kept[scheme] += loss
    finite.require_any(data)
    progress(1.0, "activations scored")
    return {name: {scheme: loss / units for scheme, loss in losses.items()} for name, losses in sums.items()}


@dataclass(slots=True, kw_only=True)
class _Noise:
    """Half the sums of squared gradients times squared noise in one batch, by layer and scheme."""

    quantizers: Quantizers
    sums: dict[str, dict[str, float]] = field(default_factory=dict)
    leaves: list[torch.Tensor] = field(default_factory=list)

    def run(self, model: Model, batch: Batch, tap: str, number: int, seed: int, finite: FiniteBatches) -> bool:
        """Run forward and backward; False where the output holds NaN or infinity and the batch is left out."""
        at_input = {name: self._entering(name) for name in self.quantizers} if tap == "input" else {}
        starts = {name: self._started for name in self.quantizers} if tap == "output" else {}
        with torch.enable_grad():
            output = model.run(
                batch, tap=self._leaving if tap == "output" else None, inputs=at_input or starts,
                layers=tuple(self.quantizers) if tap == "output" else None,
            )  # fmt: skip
        if not finite.keeps(number, batch, output) or not output.requires_grad or not self.leaves:
            return False
        gradient = drawn_gradient(output, batch, model.summary.output, batch_generator(seed, number))
        torch.autograd.grad(output, self.leaves, gradient, allow_unused=True)
        return True

    def _started(self, tensor: torch.Tensor) -> torch.Tensor:
        """Let gradients flow back to here, and the graph begin where it has not begun before."""
        if not tensor.is_floating_point():
            return tensor
        if tensor.requires_grad:
            self.leaves.append(tensor)
            return tensor
        leaf = tensor.detach().requires_grad_()
        self.leaves.append(leaf)
        return leaf

    def _entering(self, name: str) -> Replacement:
        def enter(tensor: torch.Tensor) -> torch.Tensor:
            if not tensor.is_floating_point():
                return tensor
            own = self._started(tensor)
            own = own.view_as(own)  # a node of the graph for this layer alone
            own.register_hook(self._weighing(name, own.detach()))  # type: ignore[no-untyped-call]
            return own

        return enter

    def _leaving(self, name: str, tensor: torch.Tensor, output: torch.Tensor) -> None:
        output.register_hook(self._weighing(name, output.detach()))  # type: ignore[no-untyped-call]

    def _weighing(self, name: str, values: torch.Tensor) -> Callable[[torch.Tensor], None]:
        def weigh(gradient: torch.Tensor) -> None:
            squares = gradient.detach().float().square()
            kept = self.sums.setdefault(name, {})
            for scheme, quantizer in self.quantizers[name].items():
                noise = (quantizer(values) - values).float().square_()
                kept[scheme] = kept.get(scheme, 0.0) + 0.5 * float((squares * noise).sum(dtype=torch.float64))

        return weigh


def _measured(
    model: Model, quantizers: Quantizers, end: str, data: Data, batch_size: int, finite: FiniteBatches,
    progress: Progress,
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield each layer's measured losses: the divergence of the model run with its ``input`` or ``output`` rounded."""
    sums = {name: dict.fromkeys(schemes, 0.0) for name, schemes in quantizers.items()}
    reached: set[str] = set()
    total, units = -(-len(data) // batch_size), 0
    with torch.no_grad():
        for number, batch in enumerate(data.batches(batch_size)):
            reference = model.run(batch)
            if not finite.keeps(number, batch, reference):
                continue
            units += units_of(batch, model.summary)
            distance = Divergence(reference, batch, model.summary.output)
            for place, (name, schemes) in enumerate(quantizers.items()):
                progress((number + place / len(quantizers)) / total, f"the {end} of {name}, batch {number + 1}")
                for scheme, quantizer in schemes.items():
                    rounded = {name: _noting(reached, name, quantizer)}
                    output = model.run(batch, inputs=rounded) if end == "input" else model.run(batch, outputs=rounded)
                    sums[name][scheme] += float(distance.of(output).sum())
    finite.require_any(data)
    for name in reached:
        yield name, {scheme: loss / units for scheme, loss in sums[name].items()}


def _noting(reached: set[str], name: str, quantizer: Replacement) -> Replacement:
    def enter(tensor: torch.Tensor) -> torch.Tensor:
        reached.add(name)
        return quantizer(tensor)

    return enter

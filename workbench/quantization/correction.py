"""What rounding shifts on average, taken back in tensors that keep their precision: biases and batch norms.

A plan asks for it by ``bias-correction`` and ``norm-reestimation`` among its transforms; both need the calibration's
data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from workbench.errors import CannotRunError, MissingResultError, TransformError
from workbench.models.data.batches import Data, batches_of, numbered_batches, require_data
from workbench.models.execution.network import NetworkModel
from workbench.models.model import Batch, Model
from workbench.models.summary import ModelSummary
from workbench.models.tracing import trace
from workbench.numerics.equivalences.bias_correction import corrected_bias, corrected_mean
from workbench.numerics.formats import parse_scheme
from workbench.progress import Progress, silent
from workbench.quantization.quantized_model import QuantizedModel
from workbench.quantization.sequential import BATCH_SIZE, Stage, stage_inputs, stages
from workbench.quantization.transforms.batch_norms import find_norms
from workbench.readable import few

NORM_BATCH_SIZE = 128
"""Samples that run at once where norms are measured: norms normalize by each batch meanwhile, so batches are large."""


def require_data_for(names: Iterable[str], data: Data | None) -> None:
    """Raise MissingResultError naming the first correction that lacks the calibration's data."""
    name = next(iter(names), None)
    if name is not None and data is None:
        raise MissingResultError(
            f"{name} compares the rounded model with the original on the calibration's data, and none is given; "
            f"calibrate first (--session S.qwb gives the session), or take {name} out of the plan's transforms"
        )


def corrected(planned: QuantizedModel) -> frozenset[str]:
    """Return the biases and the statistics of batch norms that the corrections of a plan may change."""
    names: set[str] = set()
    if "bias-correction" in planned.plan.transforms:
        names |= set(_biases(planned.summary, planned).values())
    if "norm-reestimation" in planned.plan.transforms:
        others = (tensor.name for tensor in planned.summary.others)
        names |= {name for name in others if name.endswith(("running_mean", "running_var"))}
    return frozenset(names)


def correct(
    model: Model, quantized: QuantizedModel, names: Iterable[str], data: Data, *, reference: Model,
    folded: Collection[str] = (), progress: Progress = silent,
) -> QuantizedModel:  # fmt: skip
    """Return the quantized model after the corrections ``names``, in their order.

    ``reference`` is ``model`` as the plan's transforms left it, in floating point; ``folded`` names its batch norms
    that change nothing any more.  Raises CannotRunError, DataError, and TransformError where there is nothing to
    correct.
    """
    for name in names:
        progress(0.0, f"correcting the rounded model: {name}")
        if name == "bias-correction":
            quantized = correct_biases(quantized, data, reference, progress)
        else:
            quantized = reestimate_norms(model, quantized, data, reference, folded)
    dtypes = {tensor.name: getattr(torch, tensor.dtype) for tensor in quantized.summary.others}
    return replace(quantized, others={name: tensor.to(dtypes[name]) for name, tensor in quantized.others.items()})


def correct_biases(quantized: QuantizedModel, data: Data, reference: Model, progress: Progress) -> QuantizedModel:
    """Return the quantized model with the means of its quantized layers' outputs corrected for ``(Q - W) E[x]``.

    Taken off the layer's bias, or by the running mean of the batch norm that directly follows a layer without one; a
    note names layers that have neither.  The means are of the inputs that ``data`` give ``reference``.  Raises
    CannotRunError, DataError, and TransformError where no layer can be corrected.
    """
    require_data(reference, data, "correcting biases")
    biases = _biases(reference.summary, quantized)
    targets = {**_running_means(reference, data, [name for name in quantized.tensors if name not in biases]), **biases}
    if quantized.tensors and not targets:
        raise TransformError(
            f"bias-correction: {next(iter(quantized.tensors))} has neither a bias nor a batch norm behind it, nor has "
            "any other quantized layer; take bias-correction out of the plan"
        )
    order = stages(reference, next(batches_of(reference, data, 1)), targets)
    others = dict(quantized.others)
    view = reference.with_others(others)
    with torch.no_grad():
        means = _mean_inputs(reference, order, data, progress)
    for name, mean in means.items():
        stored, target = quantized.tensors[name], targets[name]
        difference = parse_scheme(stored.scheme).decode(stored).to(reference.device) - reference.weight(name).float()
        change = corrected_bias if name in biases else corrected_mean
        others[target] = change(view.other(target), difference, mean)
    left = [name for name in quantized.tensors if name not in means]
    notes = () if not left else (f"bias-correction left {few(left)} alone: no bias or batch norm takes their mean",)
    return replace(quantized, others=others, notes=(*quantized.notes, *notes))


def _running_means(model: Model, data: Data, names: Collection[str]) -> Mapping[str, str]:
    """Return the running mean of the batch norm that takes the output of each of the layers ``names``."""
    if not names or not any(tensor.name.endswith("running_mean") for tensor in model.summary.others):
        return {}
    norms = find_norms(trace(model, data), model.summary).behind
    return {name: norms[name].mean for name in names if name in norms}


def _biases(summary: ModelSummary, quantized: QuantizedModel) -> dict[str, str]:
    """Return the name of the bias of each quantized layer that has one."""
    names = {tensor.name for tensor in summary.others}
    biases = {}
    for layer in summary.stored:
        head, dot, last = layer.parameter.rpartition(".")
        bias = f"{head}{dot}{last.replace('weight', 'bias')}"
        if layer.name in quantized.tensors and "weight" in last and bias in names:
            biases[layer.name] = bias
    return biases


def _mean_inputs(model: Model, order: list[Stage], data: Data, progress: Progress) -> dict[str, torch.Tensor]:
    """Return ``E[x]`` float64 ``[groups, columns]`` of every layer, from one pass over ``data``."""
    stage_of = {name: stage for stage in order for name in stage.layers}
    sums: dict[str, torch.Tensor] = {}
    counts: dict[str, int] = {}
    for _, batch in numbered_batches(model, data, BATCH_SIZE, progress, "mean inputs") if stage_of else ():

        def tap(name: str, tensor: torch.Tensor, output: torch.Tensor, batch: Batch = batch) -> None:
            values = stage_inputs(stage_of[name], tensor, batch)
            sums[name] = sums.get(name, 0.0) + values.double().sum(dim=1)
            counts[name] = counts.get(name, 0) + values.shape[1]

        model.run(batch, tap=tap, layers=tuple(stage_of))
    progress(1.0, "biases corrected")
    return {name: total / counts[name] for name, total in sums.items()}


def reestimate_norms(
    model: Model, quantized: QuantizedModel, data: Data, reference: Model, folded: Collection[str]
) -> QuantizedModel:
    """Return the quantized model with the running statistics of its batch norms moved as rounding moved what they see.

    ``reference`` and the quantized model are measured on ``data``: means move by the difference, variances by the
    ratio, so that data unlike the training's do not spoil the norms.  As in Sun et al., "Hybrid 8-bit Floating Point
    (HFP8) Training and Inference", NeurIPS 2019, section 3.1, but for that.  Norms in ``folded`` stay as they are.
    Raises CannotRunError, and TransformError where no norm is left.
    """
    if not isinstance(model, NetworkModel):
        raise CannotRunError(f"{model.summary.name} cannot be run, so its batch norms cannot be measured")
    network, views = model.body.network, (reference, quantized.bind(model))
    before, after = (_measured_norms(network, view, data, folded) for view in views)
    if not after:
        first = model.summary.layers[0].name if model.summary.layers else "a layer"
        reason = f"fold-norms folded {few(list(folded))}" if folded else f"none follows {first} or any layer"
        raise TransformError(
            f"norm-reestimation: {model.summary.name} has no batch norm with running statistics ({reason}); take "
            "norm-reestimation out of the plan, or use bias-correction"
        )
    others, tiny = dict(quantized.others), 1e-12
    for name, measured in after.items():
        old, is_mean = reference.other(name), name.endswith("running_mean")
        others[name] = old + (measured - before[name]) if is_mean else old * (measured + tiny) / (before[name] + tiny)
    return replace(quantized, others=others)


@dataclass(slots=True)
class _Sums:
    """Sums over positions, float64 ``[channels]``."""

    count: int = 0
    total: torch.Tensor | float = 0.0
    squares: torch.Tensor | float = 0.0

    def hook(self, module: _BatchNorm, args: Any, output: torch.Tensor) -> torch.Tensor:
        """Add the input of ``module`` and return what it gives when it normalizes by this batch."""
        tensor: torch.Tensor = args[0]
        axes = [axis for axis in range(tensor.dim()) if axis != 1]
        self.count += tensor.numel() // tensor.shape[1]
        self.total = self.total + tensor.double().sum(dim=axes)
        self.squares = self.squares + tensor.double().square().sum(dim=axes)
        return nn.functional.batch_norm(tensor, None, None, module.weight, module.bias, training=True, eps=module.eps)


def _measured_norms(network: nn.Module, view: Model, data: Data, skip: Collection[str]) -> dict[str, torch.Tensor]:
    """Return new running means and variances by the name of their buffer, as training on ``data`` would leave them.

    ``view`` is a model that runs ``network`` with other weights.  Only norms that ``data`` reach and that keep running
    statistics are returned; those in ``skip`` run as they are.
    """
    require_data(view, data, "measuring batch norms")
    sums: dict[str, _Sums] = {}
    with ExitStack() as stack, torch.no_grad():
        for name, module in network.named_modules():
            if isinstance(module, _BatchNorm) and module.running_mean is not None and name not in skip:
                sums[name] = _Sums()
                stack.callback(module.register_forward_hook(sums[name].hook).remove)
        for batch in batches_of(view, data, NORM_BATCH_SIZE):
            view.run(batch)
    norms = {}
    for name, total in sums.items():
        if total.count > 1:
            mean = torch.as_tensor(total.total) / total.count
            variance = (torch.as_tensor(total.squares) / total.count - mean.square()).clamp_min(0)
            norms[f"{name}.running_mean"] = mean.float()
            norms[f"{name}.running_var"] = (variance * total.count / (total.count - 1)).float()
    return norms

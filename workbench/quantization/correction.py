"""What rounding shifts on average, taken back in the tensors that are kept: biases and batch norms.

A plan asks for it by ``bias-correction`` and ``norm-reestimation`` among its transforms; both need the calibration's
data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.errors import CannotRunError, MissingResultError, TransformError
from workbench.models.model import Model
from workbench.progress import Progress, silent
from workbench.quantization.quantized_model import QuantizedModel

if TYPE_CHECKING:
    import torch

    from workbench.models.data.batches import Data
    from workbench.quantization.prefix import Stage

BATCH_SIZE = 32


def require_data_for(names: Iterable[str], data: Data | None) -> None:
    """Raise MissingResultError naming the first correction that lacks the calibration's data."""
    for name in names:
        if data is None:
            raise MissingResultError(
                f"{name} compares the rounded model with the original on the calibration's data, and none is given; "
                f"calibrate first and give the session (--session S.qwb), or take {name} out of the plan's transforms"
            )


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
            quantized = correct_biases(model, quantized, data, progress, reference=reference)
        else:
            quantized = reestimate_norms(model, quantized, data, reference=reference, folded=folded)
    dtypes = {tensor.name: tensor.dtype for tensor in quantized.summary.kept}
    return replace(quantized, kept={name: _stored(kept, dtypes[name]) for name, kept in quantized.kept.items()})


def _stored(tensor: torch.Tensor, dtype: str) -> torch.Tensor:
    import torch

    return tensor.to(getattr(torch, dtype))


def correct_biases(
    model: Model, quantized: QuantizedModel, data: Data, progress: Progress = silent, *, reference: Model | None = None
) -> QuantizedModel:
    """Return the quantized model with the means of its quantized layers' outputs corrected for ``(Q - W) E[x]``.

    Taken off the layer's bias, or by the running mean of the batch norm that directly follows a layer without one; a
    note names layers that have neither.  The means are of the inputs that ``data`` give ``reference`` (default: the
    model as it is).  Raises CannotRunError, DataError, and TransformError where no layer can be corrected.
    """
    import torch

    from workbench.models.data.batches import require_data
    from workbench.numerics.equivalences.bias_correction import corrected_bias, corrected_mean
    from workbench.numerics.formats import parse_scheme
    from workbench.quantization.prefix import stages

    reference = reference or model
    require_data(reference, data, "correcting biases")
    biases = _biases(reference, quantized)
    means_of = _means(reference, data, [name for name in quantized.tensors if name not in biases])
    targets = {**means_of, **biases}
    if quantized.tensors and not targets:
        raise TransformError(
            f"bias-correction: {next(iter(quantized.tensors))} has neither a bias nor a batch norm behind it, nor has "
            "any other quantized layer; take bias-correction out of the plan"
        )
    order = stages(reference, next(iter(data.batches(1))), tuple(targets))
    kept = dict(quantized.kept)
    view = reference.with_kept(kept)
    with torch.no_grad():
        means = _mean_inputs(reference, order, data, progress)
    for name, mean in means.items():
        stored, target = quantized.tensors[name], targets[name]
        difference = parse_scheme(stored.scheme).decode(stored) - reference.weight(name).float()
        change = corrected_bias if name in biases else corrected_mean
        kept[target] = change(view.kept(target), difference, mean)
    left = [name for name in quantized.tensors if name not in means]
    notes = () if not left else (f"bias-correction left {_few(left)} alone: no bias or batch norm takes their mean",)
    return replace(quantized, kept=kept, notes=(*quantized.notes, *notes))


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _means(model: Model, data: Data, names: Collection[str]) -> Mapping[str, str]:
    """Return the running mean of the batch norm that takes the output of each of the layers ``names``."""
    from workbench.models.tracing import trace
    from workbench.quantization.transforms.batch_norms import find_norms

    if not names or not any(tensor.name.endswith("running_mean") for tensor in model.summary.kept):
        return {}
    norms = find_norms(trace(model, data), model.summary).behind
    return {name: norms[name].mean for name in names if name in norms}


def _biases(model: Model, quantized: QuantizedModel) -> dict[str, str]:
    """Return the name of the bias of each quantized layer that has one."""
    names = {tensor.name for tensor in model.summary.kept}
    biases = {}
    for layer in model.summary.stored:
        head, _, last = layer.parameter.rpartition(".")
        bias = f"{head}.{last.replace('weight', 'bias')}".lstrip(".")
        if layer.name in quantized.tensors and last != last.replace("weight", "bias") and bias in names:
            biases[layer.name] = bias
    return biases


def _mean_inputs(model: Model, order: tuple[Stage, ...], data: Data, progress: Progress) -> dict[str, torch.Tensor]:
    """Return ``E[x]`` float64 ``[groups, columns]`` of every layer, from one pass over ``data``."""
    from workbench.models.data.batches import numbered_batches
    from workbench.quantization.prefix import stage_inputs

    stage_of = {name: stage for stage in order for name in stage.layers}
    sums: dict[str, torch.Tensor] = {}
    counts: dict[str, int] = {}
    for _, batch in numbered_batches(data, BATCH_SIZE, progress, "mean inputs"):

        def tap(name: str, tensor: torch.Tensor, output: torch.Tensor, batch: object = batch) -> None:
            values = stage_inputs(stage_of[name], tensor, batch)  # type: ignore[arg-type]
            sums[name] = sums.get(name, 0.0) + values.double().sum(dim=1)
            counts[name] = counts.get(name, 0) + values.shape[1]

        if stage_of:
            model.run(batch, tap=tap, layers=tuple(stage_of))
    progress(1.0, "biases corrected")
    return {name: total / counts[name] for name, total in sums.items()}


def reestimate_norms(
    model: Model, quantized: QuantizedModel, data: Data, *, reference: Model | None = None, folded: Collection[str] = ()
) -> QuantizedModel:
    """Return the quantized model with the running statistics of its batch norms moved as rounding moved what they see.

    ``reference`` (default: the model as it is) and the quantized model are measured on ``data``: means move by the
    difference, variances by the ratio, so that data unlike the training's do not spoil the norms (measured outright on
    JPEG images, ResNet-20 lost 1.5 points).  As in Sun et al., "Hybrid 8-bit Floating Point (HFP8) Training and
    Inference", NeurIPS 2019, section 3.1, but for that.  Norms in ``folded`` stay as they are.  Raises CannotRunError,
    and TransformError where no norm is left.
    """
    from workbench.quantization.batch_norm import measured_norms

    reference = reference or model
    network = getattr(model, "network", None)
    if network is None:
        raise CannotRunError(f"{model.summary.name} cannot be run, so its batch norms cannot be measured")
    before, now = (measured_norms(network, each, data, skip=folded) for each in (reference, quantized.bind(model)))
    if not now:
        reason = f"fold-norms folded {_few(list(folded))}" if folded else f"none follows {_first(model)} or any layer"
        raise TransformError(
            f"norm-reestimation: {model.summary.name} has no batch norm with running statistics ({reason}); take "
            "norm-reestimation out of the plan, or use bias-correction"
        )
    kept = dict(quantized.kept)
    for name, measured in now.items():
        old, tiny = reference.kept(name), 1e-12
        mean = name.endswith("running_mean")
        kept[name] = old + (measured - before[name]) if mean else old * (measured + tiny) / (before[name] + tiny)
    return replace(quantized, kept=kept)


def _first(model: Model) -> str:
    return model.summary.layers[0].name if model.summary.layers else "a layer"

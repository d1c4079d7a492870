"""What rounding shifts on average, taken back in the tensors that are kept: biases and batch norms."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.errors import CannotRunError
from workbench.models.model import Model
from workbench.planning.quantize import QuantizedModel
from workbench.progress import Progress, silent

if TYPE_CHECKING:
    import torch

    from workbench.models.batches import Data
    from workbench.models.prefix import Stage

BATCH_SIZE = 32


def correct_biases(model: Model, quantized: QuantizedModel, data: Data, progress: Progress = silent) -> QuantizedModel:
    """Return the quantized model with the biases of quantized layers corrected for the mean of ``(Q - W) x``.

    The means are of the inputs that ``data`` give the model as it is.  Layers without a bias stay as they are.  Raises
    CannotRunError and DataError.
    """
    import torch

    from workbench.models.batches import require_data
    from workbench.models.prefix import stages
    from workbench.numerics.algorithms.bias_correction import corrected_bias
    from workbench.numerics.formats import parse_scheme

    require_data(model, data, "correcting biases")
    biases = _biases(model, quantized)
    order = stages(model, next(iter(data.batches(1))), tuple(biases))
    kept = dict(quantized.kept)
    view = model.with_kept(kept)
    with torch.no_grad():
        means = _mean_inputs(model, order, data, progress)
    for name, mean in means.items():
        stored = quantized.tensors[name]
        difference = parse_scheme(stored.scheme).decode(stored) - model.weight(name).float()
        kept[biases[name]] = corrected_bias(view.kept(biases[name]), difference, mean)
    return replace(quantized, kept=kept)


def _biases(model: Model, quantized: QuantizedModel) -> dict[str, str]:
    """Return the name of the bias of each quantized layer that has one."""
    names = {tensor.name for tensor in model.summary.kept}
    found = {}
    for layer in model.summary.stored:
        head, _, last = layer.parameter.rpartition(".")
        bias = f"{head}.{last.replace('weight', 'bias')}".lstrip(".")
        if layer.name in quantized.tensors and last != last.replace("weight", "bias") and bias in names:
            found[layer.name] = bias
    return found


def _mean_inputs(model: Model, order: tuple[Stage, ...], data: Data, progress: Progress) -> dict[str, torch.Tensor]:
    """Return ``E[x]`` float64 ``[groups, columns]`` of every layer, from one pass over ``data``."""
    from workbench.models.prefix import stage_inputs

    stage_of = {name: stage for stage in order for name in stage.layers}
    sums: dict[str, torch.Tensor] = {}
    counts: dict[str, int] = {}
    total = -(-len(data) // BATCH_SIZE)
    for number, batch in enumerate(data.batches(BATCH_SIZE)):
        progress(number / total, f"mean inputs, batch {number + 1} of {total}")

        def tap(name: str, tensor: torch.Tensor, output: torch.Tensor, batch: object = batch) -> None:
            found = stage_inputs(stage_of[name], tensor, batch)  # type: ignore[arg-type]
            sums[name] = sums.get(name, 0.0) + found.double().sum(dim=1)
            counts[name] = counts.get(name, 0) + found.shape[1]

        if stage_of:
            model.run(batch, tap=tap, layers=tuple(stage_of))
    progress(1.0, "biases corrected")
    return {name: one / counts[name] for name, one in sums.items()}


def reestimate_norms(model: Model, quantized: QuantizedModel, data: Data) -> QuantizedModel:
    """Return the quantized model with the running statistics of its batch norms moved as rounding moved what they see.

    Both models are measured on ``data``: means move by the difference, variances by the ratio, so that data unlike the
    training's do not spoil the norms (measured outright on JPEG images, ResNet-20 lost 1.5 points).  As in Sun et al.,
    "Hybrid 8-bit Floating Point (HFP8) Training and Inference", NeurIPS 2019, section 3.1, but for that.  Raises
    CannotRunError.
    """
    from workbench.models.batch_norm import measured_norms

    network = getattr(model, "network", None)
    if network is None:
        raise CannotRunError(f"{model.summary.name} cannot be run, so its batch norms cannot be measured")
    before, now = (measured_norms(network, each, data) for each in (model, quantized.bind(model)))
    view = model.with_kept(quantized.kept)
    kept = dict(quantized.kept)
    for name, measured in now.items():
        old, tiny = view.kept(name), 1e-12
        mean = name.endswith("running_mean")
        kept[name] = old + (measured - before[name]) if mean else old * (measured + tiny) / (before[name] + tiny)
    return replace(quantized, kept=kept)

"""Where the error enters and where it grows: signal-to-noise at every block's output, predicted and measured.

Noise of different layers is independent to first order, so the noise at a block's output is the sum of what each layer
before it sends there.  ``noise_gains`` measures how much, once for a model: it perturbs one layer's weights at a time
by a little white noise and compares every block's output.  From then on the budget of any plan is a matrix product,
numpy only: ``noise / signal at block b = sum over layers of gain[layer, b] * relative squared error of its weights``.
``measured_budget`` runs the model as it is and as quantized, and compares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import CannotRunError, MissingResultError
from workbench.models.model import Model
from workbench.models.summary import ModelSummary
from workbench.progress import Progress, silent
from workbench.sensitivity.table import Sensitivity

if TYPE_CHECKING:
    import torch

    from workbench.models.data.batches import Data
    from workbench.models.model import Batch

Watch = Callable[[str, "torch.Tensor"], None]

OUTPUT = "output"
"""The name of the last row: the model's output."""

PROBE = 1e-4
"""Relative squared size of the noise with which gains are measured: small enough to be linear, far above rounding."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoiseGains:
    """``gain[layer, block]`` (float64, at least 0): noise over signal at the block's output for each unit of relative
    squared error of the layer's weights.  The last of ``blocks`` is the model's output."""

    layers: tuple[str, ...]
    blocks: tuple[str, ...]
    gain: np.ndarray
    samples: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ErrorBudget:
    """Noise over signal (float64) at each block's output along the depth; ``share[layer, block]`` is what each layer
    contributes, where it was predicted."""

    blocks: tuple[str, ...]
    noise: np.ndarray
    layers: tuple[str, ...] = ()
    share: np.ndarray | None = None

    @property
    def decibels(self) -> np.ndarray:
        """Signal-to-noise ratio in dB; infinite where there is no noise."""
        with np.errstate(divide="ignore"):
            ratio: np.ndarray = -10 * np.log10(self.noise)
        return ratio

    def worst(self, block: str, count: int = 5) -> tuple[tuple[str, float], ...]:
        """Return the layers that send the most noise to a block's output, with their part of all of it."""
        if self.share is None:
            return ()
        column = self.share[:, self.blocks.index(block)]
        total = float(column.sum())
        order = np.argsort(-column, kind="stable")[:count]
        return tuple((self.layers[n], float(column[n]) / total) for n in order if column[n] > 0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BudgetPair:
    """A plan's error budget, measured and (where weight errors are known) predicted, with the gains for the next."""

    plan_name: str
    plan_hash: str
    gains: NoiseGains
    measured: ErrorBudget
    predicted: ErrorBudget | None


def blocks_of(summary: ModelSummary) -> tuple[str, ...]:
    """Return the model's blocks in order, without those that only hold other blocks, and OUTPUT behind them."""
    names = tuple(dict.fromkeys(layer.block for layer in summary.layers if layer.block))
    inner = [name for name in names if not any(other.startswith(f"{name}.") for other in names)]
    return (*inner, OUTPUT)


def predicted_budget(gains: NoiseGains, schemes: Mapping[str, str], errors: Sensitivity) -> ErrorBudget:
    """Return the budget of weights quantized to ``schemes``, by layer; ``errors`` is the ``weight_error`` table.

    Layers without a scheme stay in floating point.  Activation schemes are not part of it.  Raises MissingResultError
    naming a cell that the table lacks.  numpy only.
    """
    error = np.zeros(len(gains.layers))
    for index, name in enumerate(gains.layers):
        if name in schemes:
            error[index] = errors.of(name, schemes[name])
        if math.isnan(error[index]):
            raise MissingResultError(
                f"the {errors.metric} table has no score for {name} in {schemes[name]}; score that scheme first",
                command=f"workbench sensitivity S.qwb --metric {errors.metric} --schemes {schemes[name]}",
            )
    share = gains.gain * error[:, None]
    return ErrorBudget(blocks=gains.blocks, noise=share.sum(axis=0), layers=gains.layers, share=share)


def noise_gains(
    model: Model, data: Data, *, batch_size: int = 8, seed: int = 0, notes: list[str] | None = None,
    progress: Progress = silent,
) -> NoiseGains:  # fmt: skip
    """Measure the gains on ``data`` (a few samples are enough): one forward pass for each layer and one for the model.

    Batches on which the model gives NaN or infinity are left out, and ``notes`` says which.  Raises CannotRunError for
    a weights-only model, DataError where no batch is left.
    """
    import torch

    from workbench.models.data.batches import require_data

    require_data(model, data, "noise gains")
    names = tuple(layer.name for layer in model.summary.stored)
    blocks = blocks_of(model.summary)
    gain = np.zeros((len(names), len(blocks)))
    references = list(_block_outputs(model, data, batch_size, notes))
    for number, name in enumerate(names):
        progress(number / len(names), f"noise from {name}")
        generator = torch.Generator().manual_seed(seed + number)
        view = model.with_weights({name: _disturbed(model.weight(name), generator)})
        sums = (_sums_of_squares(batch, exact, _outputs(view, batch, blocks, model)) for batch, exact in references)
        gain[number] = _noise(sums, blocks) / PROBE
    progress(1.0, "gains measured")
    return NoiseGains(layers=names, blocks=blocks, gain=gain, samples=len(data), seed=seed)


def measured_budget(
    reference: Model, candidate: Model, data: Data, *, batch_size: int = 8, notes: list[str] | None = None,
    progress: Progress = silent,
) -> ErrorBudget:  # fmt: skip
    """Run both models on ``data`` and return noise over signal at every block's output.

    ``candidate`` is a view of ``reference`` with other weights or quantized inputs.  Batches on which the reference
    gives NaN or infinity are left out, and ``notes`` says which.  Raises CannotRunError for a weights-only model and
    for a candidate that is not a view of the reference, DataError where no batch is left.
    """
    from workbench.models.data.batches import require_data, samples_of

    require_data(reference, data, "an error budget")
    blocks, done, sums = blocks_of(reference.summary), 0, []
    for batch, exact in _block_outputs(reference, data, batch_size, notes):
        sums.append(_sums_of_squares(batch, exact, _outputs(candidate, batch, blocks, reference)))
        done += samples_of(batch)
        progress(done / len(data), "comparing block outputs")
    return ErrorBudget(blocks=blocks, noise=_noise(sums, blocks))


def _block_outputs(
    model: Model, data: Data, batch_size: int, notes: list[str] | None
) -> Iterator[tuple[Batch, dict[str, torch.Tensor]]]:
    """Yield each batch on which the model's output is finite, with what comes out of every block."""
    from workbench.measurement.finite_batches import FiniteBatches

    blocks = blocks_of(model.summary)
    outputs: dict[str, torch.Tensor] = {}

    def run(number: int, batch: Batch) -> torch.Tensor:
        outputs.update(_outputs(model, batch, blocks))
        return outputs[OUTPUT]

    for _, batch, _ in FiniteBatches(model=model, notes=[] if notes is None else notes).of(data, batch_size, run):
        yield batch, dict(outputs)


def _sums_of_squares(
    batch: Batch, exact: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]
) -> dict[str, tuple[float, float]]:
    """Return each block's sums of squared outputs and squared differences; tokens that are padding do not count."""
    from workbench.models.data.batches import Padding

    padding, sums = Padding.of(batch), {}
    for block in exact.keys() & other.keys():
        x, y = (padding.real(outputs[block].double()) for outputs in (exact, other))
        sums[block] = float(x.square().sum()), float((y - x).square().sum())
    return sums


def _noise(sums: Iterable[Mapping[str, tuple[float, float]]], blocks: Sequence[str]) -> np.ndarray:
    """Return noise over signal of each block, float64; 0.0 for a block that nothing reached."""
    total = np.zeros((len(blocks), 2))
    for batch in sums:
        total += [batch.get(block, (0.0, 0.0)) for block in blocks]
    signal, difference = total.T
    ratio: np.ndarray = np.where(signal == 0, 0.0, difference / np.where(signal == 0, 1.0, signal))
    return ratio


def _disturbed(weight: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the weight with white noise of PROBE times its mean square."""
    import torch

    exact = weight.detach().float()
    size = math.sqrt(PROBE * float(exact.double().square().mean()))
    return exact + size * torch.randn(exact.shape, generator=generator).to(exact.device)


def _outputs(model: Model, batch: Batch, blocks: Sequence[str], owner: Model | None = None) -> dict[str, torch.Tensor]:
    """Run one batch and return what comes out of every block, and of the model under OUTPUT.

    ``owner`` is the model whose network runs, where ``model`` is a view of it.
    """
    import torch

    outputs: dict[str, torch.Tensor] = {}
    with torch.no_grad(), _watching(owner or model, blocks, outputs.__setitem__) as tap:
        outputs[OUTPUT] = model.run(batch, tap=tap)
    missing = [block for block in blocks if block not in outputs]
    if len(missing) == len(blocks) - 1 and missing:
        raise CannotRunError(f"no output of a block was seen ({', '.join(missing[:3])}); is this a view of the model?")
    return outputs


@contextmanager
def _watching(model: Model, blocks: Sequence[str], watch: Watch) -> Iterator[Callable[..., None] | None]:
    """Watch the modules that blocks are named after; where there are none, the last layer of each block."""
    from workbench.models.execution.network import NetworkModel

    modules = dict(model.body.network.named_modules()) if isinstance(model, NetworkModel) else {}
    if not all(block in modules for block in blocks if block != OUTPUT):
        block_of = {layer.name: layer.block for layer in model.summary.layers}
        yield lambda layer, _, output: watch(block_of[layer], output.detach())
        return
    handles = [
        modules[block].register_forward_hook(lambda _, __, output, block=block: watch(block, _tensor(output)))
        for block in blocks if block != OUTPUT
    ]  # fmt: skip
    try:
        yield None
    finally:
        for handle in handles:
            handle.remove()


def _tensor(output: object) -> torch.Tensor:
    """Return the first tensor of what a module returned."""
    while isinstance(output, (tuple, list)):
        output = output[0]
    return output.detach()  # type: ignore[attr-defined,no-any-return]

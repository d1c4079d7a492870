"""A model and a plan to quantized tensors, and back to something that runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import AlgorithmError, NonFiniteError
from workbench.models.execution.activation_quantizers import Ranges, cache_quantizer, input_quantizer
from workbench.models.model import Model, Replacement
from workbench.models.summary import ModelSummary
from workbench.numerics.curvature import Curvature
from workbench.numerics.formats import parse_scheme
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.rounding.round_weight import needs_sequence, round_weight
from workbench.planning.kv_cache import cached_layers
from workbench.planning.plan import KEEP, LEARNED, Assignment, Plan, resolve
from workbench.progress import Progress, part_of, silent
from workbench.quantization.transforms.changes import Changes

if TYPE_CHECKING:
    import torch

    from workbench.models.data.batches import Data
    from workbench.models.model import Batch, Tap


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuantizedModel:
    """Data, not a network: the stored form of every quantized weight of the model that ``summary`` describes.

    ``tensors`` maps a layer that owns its weight; layers that are tied to it share it.  ``ranges`` serve static input
    schemes.  ``left`` maps each layer that the plan quantizes but that stayed in floating point to why: NaN or infinite
    weights, an algorithm or a format that cannot serve it; ``notes`` say the same and what else there is to tell.
    ``kept`` maps norms, biases and buffers to corrected ones.
    ``changes`` are what the plan's transforms made of the model before; ``summary`` is then of the rewritten model,
    where tied layers may have got a weight of their own.
    """

    summary: ModelSummary
    plan: Plan
    tensors: Mapping[str, QuantizedTensor]
    ranges: Ranges = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    left: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, torch.Tensor] = field(default_factory=dict)
    changes: Changes = field(default_factory=Changes)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the model."""
        return self.summary.fingerprint

    def bind(self, model: Model) -> Model:
        """Return a view of ``model`` that runs with the decoded weights, quantized layer inputs, keys and values.

        Raises FingerprintMismatchError for another model, MissingResultError for a static scheme without a range.
        """
        model = self.rewritten(model)
        weights = {name: parse_scheme(stored.scheme).decode(stored) for name, stored in self.tensors.items()}
        view = model.with_kept(self.kept).with_weights(weights)
        inputs = input_quantizers(self.summary, self.plan, self.ranges)
        return _BoundModel(view, inputs, cache_quantizers(self.summary, self.plan))

    def rewritten(self, model: Model) -> Model:
        """Return ``model`` as the plan's transforms left it, still in floating point; what is not quantized is exact.

        Raises FingerprintMismatchError for another model.
        """
        model.summary.require_fingerprint(self.fingerprint, "the quantized model")
        return self.changes.apply(model)


def quantize(
    model: Model,
    plan: Plan,
    *,
    ranges: Ranges | None = None,
    curvature: Mapping[str, Curvature] | None = None,
    data: Data | None = None,
    checkpoint: str | Path | None = None,
    progress: Progress = silent,
) -> QuantizedModel:
    """Quantize every weight that ``plan`` gives a scheme; the model is not changed.

    ``ranges`` (a session's ``active_ranges``) serve static input schemes, ``curvature`` algorithms that need the
    inputs' second moment, ``data`` (the calibration's) ``learned`` layers, which are learned together after all others;
    ``checkpoint`` is a file from which a cancelled run goes on.  With ``rtn`` and ``rtn-clip`` the model and the plan
    alone decide every bit; with any other algorithm, what else is given does too, and the same gives the same bits.
    Raises FingerprintMismatchError naming both fingerprints, UnmatchedRuleError, SchemeError, and MissingResultError
    naming the layer that lacks a range or the data that were not given.
    """
    summary = model.summary
    if plan.fingerprint is not None:
        summary.require_fingerprint(plan.fingerprint, f"the plan {plan.name!r}")
    if plan.transforms:
        from workbench.quantization.transforms.quantized import quantize_transformed

        return quantize_transformed(
            model, plan, ranges=ranges or {}, curvature=curvature or {}, data=data, checkpoint=checkpoint,
            progress=progress,
        )  # fmt: skip
    assignments = resolve(plan, summary.layers)
    inputs = input_quantizers(summary, plan, ranges or {})
    wanted = [layer.name for layer in summary.stored if assignments[layer.name].weights != KEEP]
    learned = {name: assignments[name].weights for name in wanted if assignments[name].algorithm == LEARNED}
    sequence = {name: assignments[name] for name in wanted if needs_sequence(assignments[name].algorithm)}
    alone = {name: assignments[name] for name in wanted if name not in learned and name not in sequence}
    share = 1.0 if not learned and not sequence else 0.1
    tensors, left = _round_alone(model, alone, curvature or {}, part_of(progress, 0.0, share))
    if sequence:
        from workbench.quantization.sequential import quantize_in_sequence

        found, untouched = quantize_in_sequence(
            model, sequence, tensors, data=data, inputs=inputs, curvature=curvature or {},
            progress=part_of(progress, share, 0.3 if learned else 1.0),
        )  # fmt: skip
        tensors |= found
        left |= untouched
        share = 0.3
    if learned:
        from workbench.quantization.learning.learn import learn_remaining

        found, untouched = learn_remaining(
            model, learned, tensors, data=data, inputs=inputs, curvature=curvature or {}, checkpoint=checkpoint,
            progress=part_of(progress, share, 1.0),
        )  # fmt: skip
        tensors |= found
        left |= untouched
    progress(1.0, "quantized")
    return QuantizedModel(
        summary=summary, plan=plan, tensors=tensors, ranges=dict(ranges or {}), notes=tuple(left.values()), left=left
    )


def _round_alone(
    model: Model, wanted: Mapping[str, Assignment], curvature: Mapping[str, Curvature], progress: Progress
) -> tuple[dict[str, QuantizedTensor], dict[str, str]]:
    """Quantize layers that need nothing of each other; also return which were kept, and why."""
    tensors: dict[str, QuantizedTensor] = {}
    left: dict[str, str] = {}
    for number, (name, assignment) in enumerate(wanted.items()):
        progress(number / len(wanted), f"quantizing {name} to {assignment.weights}")
        try:
            rounded = round_weight(
                name, model.weight(name), assignment.weights, assignment.algorithm, curvature.get(name)
            )
        except (NonFiniteError, AlgorithmError) as error:
            left[name] = f"{error}; it was kept in floating point"
            continue
        tensors[name] = parse_scheme(assignment.weights).encode(rounded.values, rounded.parameters)
    return tensors, left


def input_quantizers(summary: ModelSummary, plan: Plan, ranges: Ranges) -> dict[str, Replacement]:
    """Return the function that quantizes each layer's input, for the layers whose inputs ``plan`` quantizes."""
    return {
        name: input_quantizer(summary.by_name[name], assignment.inputs, ranges)
        for name, assignment in resolve(plan, summary.layers).items() if assignment.inputs is not None
    }  # fmt: skip


def cache_quantizers(summary: ModelSummary, plan: Plan) -> dict[str, Replacement]:
    """Return the function that rounds what each layer of keys or values gives the cache, where ``plan`` says so."""
    cached = cached_layers(summary.layers, resolve(plan, summary.layers))
    return {name: cache_quantizer(summary.by_name[name], scheme) for name, scheme in cached.items()}


class _BoundModel:
    """A model whose layer inputs, keys and values pass through quantizers; everything else is the inner model's."""

    def __init__(self, model: Model, inputs: Mapping[str, Replacement], cache: Mapping[str, Replacement]) -> None:
        self._model, self._inputs, self._cache = model, inputs, cache

    def _around(self, model: Model) -> Model:
        return _BoundModel(model, self._inputs, self._cache)

    @property
    def summary(self) -> ModelSummary:
        return self._model.summary

    @property
    def tappable(self) -> frozenset[str]:
        own: frozenset[str] = getattr(self._model, "tappable", frozenset())
        return own

    def weight(self, layer: str) -> torch.Tensor:
        return self._model.weight(layer)

    def with_weights(self, weights: Mapping[str, torch.Tensor]) -> Model:
        return self._around(self._model.with_weights(weights))

    def kept(self, name: str) -> torch.Tensor:
        return self._model.kept(name)

    def with_kept(self, kept: Mapping[str, torch.Tensor]) -> Model:
        return self._around(self._model.with_kept(kept))

    def untied(self, layers: Collection[str]) -> Model:
        return self._around(self._model.untied(layers))

    def run(
        self,
        batch: Batch,
        tap: Tap | None = None,
        inputs: Mapping[str, Replacement] | None = None,
        layers: Sequence[str] | None = None,
        outputs: Mapping[str, Replacement] | None = None,
    ) -> torch.Tensor:
        return self._model.run(
            batch, tap=tap, inputs={**self._inputs, **(inputs or {})}, layers=layers,
            outputs={**self._cache, **(outputs or {})},
        )  # fmt: skip

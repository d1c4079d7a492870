"""Weights onto their grids: layer by layer, in the sequence in which they run, or learned together."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path

import torch

from workbench.errors import AlgorithmError, MissingResultError, NonFiniteError
from workbench.measurement.partial_results import Pieces, pieces_of
from workbench.measurement.second_moments import digest_of
from workbench.measurement.shared_weights import curvature_of
from workbench.memory import Spill
from workbench.models.data.batches import Data, batches_of, require_data
from workbench.models.execution.activation_quantizers import Ranges
from workbench.models.layer import LayerKind
from workbench.models.model import Model, Replacement
from workbench.models.placement import ran_on
from workbench.numerics.curvature import Curvature
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.rounding.algorithm import PrefixMoments
from workbench.numerics.rounding.round_weight import encode_weight, is_weights_only
from workbench.planning.plan import Assignment
from workbench.progress import Progress
from workbench.quantization.learning.learn import learn_rounding, without_non_finite
from workbench.quantization.quantized_model import decoded, encoded
from workbench.quantization.sequential import prefix_moments, stages
from workbench.readable import few

COMMAND = "workbench apply ... --session S.qwb"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What decides the result in addition to model and plan; ``transforms`` have rewritten the model already."""

    ranges: Ranges
    curvature: Mapping[str, Curvature]
    data: Data | None
    checkpoint: str | Path | None
    transforms: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Rounding:
    """The stored form of each weight that was quantized so far, and in ``left`` why others stay in floating point.

    ``assignments`` are those of all layers; ``inputs`` quantize layer inputs.
    """

    model: Model
    assignments: Mapping[str, Assignment]
    collected: Collected
    inputs: Mapping[str, Replacement]
    tensors: dict[str, QuantizedTensor] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    saved: Pieces = field(init=False)
    waiting: dict[str, object] = field(default_factory=dict)
    spill: Spill = field(default_factory=Spill)

    def __post_init__(self) -> None:
        self.saved = pieces_of("quantizing", (QuantizedTensor,), self._facts)

    def _facts(self) -> dict[str, object]:
        collected = self.collected
        return {
            "model": self.model.summary.fingerprint, "place": ran_on(self.model), "transforms": collected.transforms,
            "assignments": repr(dict(self.assignments)), "curvature": digest_of(collected.curvature),
            "ranges": repr(sorted(collected.ranges.items(), key=itemgetter(0))),
            "data": "" if collected.data is None else repr(collected.data.record),
        }  # fmt: skip

    def _restored(self, names: Collection[str]) -> set[str]:
        """Take the layers that an interrupted run has rounded; returns them."""
        pieces = {name: piece for name in names if (piece := self.saved.load(name)) is not None}
        for name, piece in pieces.items():
            if isinstance(piece, QuantizedTensor):
                self.tensors[name] = piece
            else:
                self.left[name] = str(piece)
        if pieces:
            self.saved.goes_on(f"quantizing continues after {len(pieces)} of {len(names)} layers")
        return set(pieces)

    def _save(self, names: Collection[str]) -> None:
        """Save rounded layers when it is time."""
        self.waiting |= {name: self.tensors.get(name) or self.left[name] for name in names}
        if self.saved.due():
            self.saved.save(self.waiting)
            self.waiting = {}

    def round_each(self, names: Collection[str], progress: Progress) -> None:
        """Quantize layers that need nothing of each other."""
        done = self._restored(names)
        for number, name in enumerate(names):
            if name not in done:
                progress(number / len(names), f"quantizing {name} to {self.assignments[name].weights}")
                self._round(name)
                self._save([name])

    def round_in_sequence(self, names: Collection[str], progress: Progress) -> None:
        """Quantize layers in the order in which they run, each with the inputs that those before it give it.

        Layers with the same input are one stage: the data run twice up to each.  Raises MissingResultError without
        data.
        """
        first, data = next(iter(names)), self.collected.data
        if data is None:
            raise MissingResultError(
                f"{self.assignments[first].algorithm} quantizes {first} with the calibration's data, and none is "
                "given; calibrate and give the session, or choose rtn-clip, which looks at weights only",
                command=COMMAND,
            )
        require_data(self.model, data, "quantizing layer by layer")
        order = stages(self.model, next(batches_of(self.model, data, 1)), names)
        reached = {name for stage in order for name in stage.layers}
        tables = {name: moments for name in names if (moments := self._looked_up(name)) is not None}
        for name in names:
            if name not in reached and name not in tables:
                algorithm = self.assignments[name].algorithm
                self.left[name] = f"{algorithm} keeps no second moment of the inputs of {name}; it was kept as it is"
        done = self._restored([*tables, *sorted(reached)])
        for name in tables:
            if name not in done:
                self._round(name, tables[name])
                self._save([name])
        weights = decoded(self.tensors)
        for number, stage in enumerate(order):
            if done.issuperset(stage.layers):
                continue
            progress(number / len(order), f"quantizing {few(stage.layers)} with the inputs that it gets")
            moments = prefix_moments(self.model, self.model.with_weights(weights), stage, data, self.inputs)
            for name in stage.layers:
                self._round(name, moments)
            self._save(stage.layers)
            weights |= decoded({name: self.tensors[name] for name in stage.layers if name in self.tensors})

    def _looked_up(self, name: str) -> PrefixMoments | None:
        """Return the moments of an embedding, which no layer before it changes; None for others."""
        if self.model.summary.by_name[name].kind is not LayerKind.EMBEDDING:
            return None
        known = curvature_of(self.model.summary, self.collected.curvature, name)
        if known is None or known.full is None:
            return None
        full = torch.from_numpy(known.full).unsqueeze(0)
        return PrefixMoments(present=full, cross=full, count=known.count)

    def learn(self, names: Collection[str], progress: Progress) -> None:
        """Learn the rounding of layers together, beside all that is quantized already.

        Raises MissingResultError without data, and what :func:`learn_rounding` raises.
        """
        collected = self.collected
        if collected.data is None:
            first = next(iter(names))
            layers = first if len(names) == 1 else f"{first} and {len(names) - 1} more layers"
            raise MissingResultError(
                f"the plan learns the rounding of {layers} on calibration data, and none were given; calibrate and "
                "give the session, or choose rtn-clip",
                command=COMMAND,
            )
        finite, left = without_non_finite(self.model.summary, names)
        self.left |= left
        if not finite:
            return
        schemes = {name: self.assignments[name].weights for name in finite}
        ranges = sorted(collected.ranges.items(), key=itemgetter(0))
        learned = learn_rounding(
            self.model, schemes, collected.data, student=self.model.with_weights(decoded(self.tensors)),
            inputs=self.inputs, curvature=collected.curvature, checkpoint=collected.checkpoint,
            circumstances=(repr(dict(self.assignments)), repr(collected.transforms), repr(ranges)), progress=progress,
        )  # fmt: skip
        self.tensors |= {name: encoded(schemes[name], rounded) for name, rounded in learned.items()}

    def _round(self, name: str, moments: PrefixMoments | None = None) -> None:
        scheme, algorithm = self.assignments[name].weights, self.assignments[name].algorithm
        stored = self.model.encoded(name)
        if stored is not None and stored.scheme == scheme:
            self.tensors[name] = stored
            return
        try:
            curvature = None
            if not is_weights_only(algorithm):
                curvature = curvature_of(self.model.summary, self.collected.curvature, name)
            weight = self.model.weight(name)
            stored = encode_weight(name, weight, scheme, algorithm, curvature, moments, spill=self.spill)
        except (NonFiniteError, AlgorithmError) as error:
            self.left[name] = f"{error}; it was kept in floating point"
        else:
            self.tensors[name] = stored

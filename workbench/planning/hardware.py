"""Hardware profiles: what chips compute with and how fast they are by their data sheets, and the roofline from that.

A roofline (Williams, Waterman and Patterson, 2009) is an estimate from peak rates: real kernels reach a part of them.
It is shown as an estimate, beside what was measured.
"""

from __future__ import annotations

import importlib.resources
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from workbench.errors import PlanError, nearest
from workbench.models.layer import Layer, LayerKind
from workbench.models.summary import ModelSummary
from workbench.planning.acceptance import Acceptance, accepted, refusal
from workbench.planning.plan import KEEP, Assignment
from workbench.planning.totals import layer_bits

DTYPE_RATES = {"float64": "fp32", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Device:
    """An example: ``bandwidth`` in GB/s, ``peaks`` in 1e12 operations a second by arithmetic, dense.

    ``checked`` says with what the figures were compared; ``estimated`` names those that were computed, or not found in
    a document that can be read.
    """

    name: str
    bandwidth: float
    peaks: Mapping[str, float]
    source: str
    checked: str = ""
    estimated: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hardware:
    """A kind of hardware; ``keeps`` are the dtypes in which unquantized layers run."""

    name: str
    title: str
    kind: str
    keeps: tuple[str, ...]
    accepts: tuple[Acceptance, ...]
    devices: tuple[Device, ...]
    sources: tuple[str, ...]
    note: str = ""

    def refuses(self, layer: Layer, weights: str, inputs: str | None) -> str | None:
        """Return why this hardware cannot run the layer so, None if it can."""
        return refusal(self.accepts, self.keeps, layer, weights, inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A roofline's microseconds; ``bound`` is ``memory`` or ``compute``.

    ``how`` names the arithmetic, and says so where the figure that bounds it is itself an estimate.  ``speedup`` is
    over the layer as it is stored, NaN where the hardware does not run that.
    """

    microseconds: float
    bound: str
    how: str
    speedup: float = math.nan


@lru_cache(maxsize=1)
def profiles() -> dict[str, Hardware]:
    """Return every bundled profile by name."""
    folder = importlib.resources.files("workbench_resources").joinpath("hardware")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".json")), key=lambda file: file.name)
    chips = [hardware_from(json.loads(file.read_text(encoding="utf-8"))) for file in files]
    return {profile.name: profile for profile in chips}


def hardware(name: str) -> Hardware:
    """Return the profile called ``name``; PlanError that names the closest ones."""
    known = profiles()
    if name not in known:
        raise PlanError(
            f"there is no hardware profile {name!r}{nearest(name, known)}; choose one of {', '.join(known)}"
        )
    return known[name]


def hardware_from(document: Mapping[str, Any]) -> Hardware:
    """Return the profile that a parsed JSON document (schema: ``resources/hardware.schema.json``) describes."""
    return Hardware(
        name=document["name"], title=document["title"], kind=document["kind"], keeps=tuple(document["keeps"]),
        accepts=tuple(Acceptance(**with_tuples(entry)) for entry in document["accepts"]),
        devices=tuple(Device(**with_tuples(entry)) for entry in document["devices"]),
        sources=tuple(document["sources"]), note=document.get("note", ""),
    )  # fmt: skip


def with_tuples(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object with its lists as tuples."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}


def estimate(layer: Layer, weights: str, inputs: str | None, profile: Hardware, batch: int = 1) -> Estimate | None:
    """Return the roofline of one layer for ``batch`` rows of inputs (samples, for convolutions); None if refused.

    Time is the longer of moving weights, inputs and outputs once and of computing at the peak of the arithmetic used.
    """
    roof = _roofline(layer, weights, inputs, profile, batch)
    stored = _roofline(layer, KEEP, None, profile, batch)
    if roof is None or stored is None:
        return roof
    return replace(roof, speedup=stored.microseconds / roof.microseconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEstimate:
    """A plan's roofline: microseconds of all layers one after another, under the plan and as stored.

    ``refused`` are pairs of a layer that the hardware cannot run and the reason; such layers count as stored.
    """

    microseconds: float
    stored: float
    refused: tuple[tuple[str, str], ...]

    @property
    def speedup(self) -> float:
        """How many times faster than the model as stored, by this estimate."""
        return self.stored / self.microseconds if self.microseconds else math.nan


def plan_estimate(
    summary: ModelSummary, assignments: Mapping[str, Assignment], profile: Hardware, batch: int = 1
) -> PlanEstimate:
    """Return the roofline of a whole plan for ``batch`` rows; embeddings are look-ups and count nothing."""
    planned, before, refused = [], [], []
    known: dict[tuple[object, ...], tuple[Estimate | None, Estimate | None, str | None]] = {}
    for layer in summary.layers:
        if layer.kind is LayerKind.EMBEDDING:
            continue
        weights, inputs = assignments[layer.name].weights, assignments[layer.name].inputs
        key = (layer.kind, layer.shape, layer.axes, layer.row_axes, layer.dtype, layer.macs, weights, inputs)
        if key not in known:
            known[key] = (
                _roofline(layer, weights, inputs, profile, batch), _roofline(layer, KEEP, None, profile, batch),
                profile.refuses(layer, weights, inputs),
            )  # fmt: skip
        roof, stored, reason = known[key]
        if reason:
            refused.append((layer.name, reason))
        if roof is not None or stored is not None:
            planned.append((roof or stored).microseconds)  # type: ignore[union-attr]
            before.append((stored or roof).microseconds)  # type: ignore[union-attr]
    return PlanEstimate(microseconds=math.fsum(planned), stored=math.fsum(before), refused=tuple(refused))


def _roofline(layer: Layer, weights: str, inputs: str | None, profile: Hardware, batch: int) -> Estimate | None:
    """Return the estimate, its speedup unknown; None where the hardware runs no such layer."""
    if weights == KEEP:
        rate, how = DTYPE_RATES.get(layer.dtype, "fp32"), f"{layer.dtype} as stored"
    else:
        way = accepted(profile.accepts, layer, weights, inputs)
        if way is None:
            return None
        rate, how = way.rate, way.title
    device = profile.devices[0]
    peak = device.peaks.get(rate, device.peaks.get("fp32"))
    if peak is None:
        return None
    rows, columns = layer.matrix
    convolves = layer.kind.is_convolution
    positions = batch * (layer.macs / (rows * columns) if convolves and layer.macs else 1.0)
    entering = positions * columns / (math.prod(layer.shape[2:]) if convolves else 1)
    wide = 4 if rate == "fp32" else 2
    moved = layer_bits(layer, weights) / 8 + entering * (1 if inputs else wide) + positions * rows * wide
    memory, compute = moved / device.bandwidth * 1e-3, 2.0 * positions * rows * columns / peak * 1e-6
    bound = "memory" if memory >= compute else "compute"
    figure = "bandwidth" if bound == "memory" else rate if rate in device.peaks else "fp32"
    doubt = f"; the {figure} of {device.name} is an estimate itself" if figure in device.estimated else ""
    return Estimate(microseconds=max(memory, compute), bound=bound, how=how + doubt)

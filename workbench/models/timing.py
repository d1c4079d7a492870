"""Which kernel serves a layer's scheme on this machine, and how long it takes beside the floating-point one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from workbench.models.evaluation import Timing
from workbench.models.layer import Layer, LayerKind
from workbench.models.summary import ModelSummary
from workbench.numerics.formats import parse_scheme
from workbench.numerics.granularity import PerChannel, PerGroup
from workbench.progress import Progress, silent

if TYPE_CHECKING:
    from workbench_kernels.op import Op

TIMED_KINDS = (LayerKind.LINEAR, LayerKind.ATTENTION)
"""Kinds that run as one matrix product of their own."""


class Assigned(Protocol):
    """What a plan gives a layer, as far as a kernel is concerned."""

    @property
    def weights(self) -> str:
        """The weight scheme, or ``keep``."""
        ...

    @property
    def inputs(self) -> str | None:
        """The input scheme."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The kernel for a scheme, and in words how it relates to what the plan says."""

    op: Op
    note: str


def time_layers(
    summary: ModelSummary,
    assignments: Mapping[str, Assigned],
    *,
    batch: int = 1,
    repeats: int = 30,
    progress: Progress = silent,
) -> tuple[Timing, ...]:
    """Time the kernels of every quantized linear layer, once for each distinct shape and scheme.

    ``batch`` is the number of tokens.  A scheme that no kernel of this machine serves is timed as what would run
    instead, the FP32 product of the decoded weight, and the note says so.  Layers that the plan keeps, and kinds that
    are no single matrix product (convolutions, embeddings), have no timing.
    """
    from workbench_kernels.bench import Samples, measure
    from workbench_kernels.linear import FP32

    layers = [x for x in summary.layers if x.kind in TIMED_KINDS and assignments[x.name].weights != "keep"]
    keys = {x.name: (x.matrix, assignments[x.name].weights, assignments[x.name].inputs) for x in layers}
    found: dict[tuple[tuple[int, int], str, str | None], tuple[Choice, Samples]] = {}
    distinct = list(dict.fromkeys(keys.values()))
    for number, key in enumerate(distinct):
        (rows, columns), scheme, inputs = key
        progress(number / len(distinct), f"timing {scheme} at {rows} x {columns}")
        choice = choose((rows, columns), scheme, inputs)
        found[key] = choice, measure(rows, columns, batch, choice.op, FP32, repeats=repeats)
    progress(1.0, "timed")
    return tuple(_timing(layer, assignments[layer.name].weights, batch, *found[keys[layer.name]]) for layer in layers)


def choose(shape: tuple[int, int], scheme_name: str, inputs: str | None) -> Choice:
    """Return the kernel of this machine for a weight scheme; FP32 with the reason where there is none."""
    from workbench_kernels.linear import BF16, FP32, INT4, INT8

    scheme = parse_scheme(scheme_name)
    levels, granularity = len(scheme.values()), scheme.granularity
    nearby = ""
    op: Op | None = None
    if scheme.name == "bf16":
        op = BF16
    elif scheme.family == "integer" and levels == 256 and granularity == PerChannel() and "asym" not in scheme.name:
        op = INT8
        nearby = "" if inputs == "int8-token" else "; the plan's activations are not dynamic INT8, the kernel's are"
    elif scheme.family == "integer" and levels == 16 and isinstance(granularity, PerGroup):
        op = INT4.get(granularity.size)
        nearby = "" if inputs is None else f"; the plan's {inputs} activations are not quantized by the kernel"
    reason = f"no CPU kernel serves {scheme.name}" if op is None else op.available() or op.refuses(*shape)
    if op is None or reason:
        return Choice(op=FP32, note=f"{reason}: timed as FP32 linear of the decoded weight")
    return Choice(op=op, note=op.note + nearby)


def _timing(layer: Layer, scheme: str, batch: int, choice: Choice, samples: object) -> Timing:
    from workbench_kernels.bench import Samples
    from workbench_kernels.linear import FP32

    assert isinstance(samples, Samples)
    return Timing(
        layer=layer.name, scheme=scheme, kernel=choice.op.name, baseline_kernel=FP32.name, shape=layer.matrix,
        batch=batch, device=samples.device, note=choice.note, samples=samples.kernel, baseline_samples=samples.baseline,
    )  # fmt: skip


def cuda_reason() -> str | None:
    """Return why there are no CUDA rows on this machine, None if there is a device."""
    from workbench_kernels.bench import cuda_reason as reason

    return str(found) if (found := reason()) else None

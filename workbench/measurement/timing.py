"""Which kernel serves a layer's scheme on this machine, and how long it takes beside the floating-point one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, TypeVar

from workbench.errors import BackendUnavailableError, DeviceError, DeviceLostError
from workbench.measurement.evaluation import Timing
from workbench.models.layer import Layer, LayerKind
from workbench.models.summary import ModelSummary
from workbench.numerics.formats import parse_scheme
from workbench.numerics.granularity import PerChannel, PerGroup
from workbench.progress import Progress, silent

if TYPE_CHECKING:
    from workbench_kernels.bench.measure import Samples
    from workbench_kernels.gpu.thread import Device, Report
    from workbench_kernels.op import Op

    from workbench.numerics.scheme import Scheme

T = TypeVar("T")

TIMED_KINDS = (LayerKind.LINEAR, LayerKind.ATTENTION)
"""Kinds that run as one matrix product of their own."""
COMPILING = 0.2
"""The share of the progress in which a device's kernels are compiled."""


class Assigned(Protocol):
    """What a plan gives a layer, as far as a kernel is concerned."""

    @property
    def weights(self) -> str:
        """The weight scheme, or ``keep``."""

    @property
    def inputs(self) -> str | None:
        """The input scheme."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingKernel:
    """The kernel for a scheme, and in words how it relates to what the plan says."""

    op: Op
    note: str


class Kernel(NamedTuple):
    """What is timed once: the matrix, its scheme and its input scheme."""

    shape: tuple[int, int]
    scheme: str
    inputs: str | None


Measured: TypeAlias = "tuple[ServingKernel, Samples]"


def time_layers(
    summary: ModelSummary, assignments: Mapping[str, Assigned], *, batch: int = 1, repeats: int = 30,
    progress: Progress = silent,
) -> tuple[Timing, ...]:  # fmt: skip
    """Time the kernels of every quantized linear layer, once for each distinct shape and scheme.

    ``batch`` is the number of tokens.  Where several kernels serve a scheme, the fastest for the shape and batch is
    found by measurement, and the note gives the figures of all.  A scheme that none serves is timed as what would run
    instead, the floating-point product of the decoded weight, and the note says so.  Layers that the plan keeps, and
    kinds that are not a single matrix product (convolutions, embeddings), have no timing.

    With a CUDA device all of it runs on the device's one thread, which compiles the kernels first.  Raises DeviceError
    where the device fails or a kernel's result is wrong.
    """
    from workbench_kernels.catalog import cuda_reason

    layers = [x for x in summary.layers if x.kind in TIMED_KINDS and assignments[x.name].weights != "keep"]
    keys = {x.name: Kernel(x.matrix, assignments[x.name].weights, assignments[x.name].inputs) for x in layers}
    distinct = tuple(dict.fromkeys(keys.values()))
    if cuda_reason() is None and distinct:
        measured = on_gpu(
            "timing kernels", lambda device, report: _compiled_and_measured(device, distinct, batch, repeats, report),
            progress,
        )  # fmt: skip
    else:
        with kernel_errors():
            measured = _measured(distinct, batch, repeats, progress)
    progress(1.0, "timed")
    return tuple(
        _timing(layer, assignments[layer.name].weights, batch, *measured[keys[layer.name]]) for layer in layers
    )


def _compiled_and_measured(
    device: Device, kernels: Sequence[Kernel], batch: int, repeats: int, report: Report
) -> dict[Kernel, Measured]:
    """Measure on a device; the first fifth of the progress is compiling what is neither prebuilt nor cached.

    The clocks right after the measurement end each note.
    """
    from workbench_kernels.bench import ceilings
    from workbench_kernels.catalog import candidates
    from workbench_kernels.gpu.thread import compile_all

    serving = (op for kernel in kernels for op in candidates(_served_as(parse_scheme(kernel.scheme))))
    sources = dict.fromkeys(source for op in serving for source in op.sources)
    compile_all(device, tuple(sources), lambda fraction, what: report(COMPILING * fraction, what))
    measured = _measured(kernels, batch, repeats, lambda f, what: report(COMPILING + (1 - COMPILING) * f, what))
    clocks = ", ".join(f"{name} {value}" for name, value in ceilings.clocks().items() if name.startswith("clocks"))
    return {
        kernel: (replace(choice, note=f"{choice.note}; {clocks}"), samples)
        for kernel, (choice, samples) in measured.items()
    }


def _measured(
    kernels: Sequence[Kernel], batch: int, repeats: int, report: Callable[[float, str], None]
) -> dict[Kernel, Measured]:
    from workbench_kernels.bench.choice import baseline
    from workbench_kernels.bench.measure import measure

    measured: dict[Kernel, Measured] = {}
    for number, kernel in enumerate(kernels):
        rows, columns = kernel.shape
        report(number / len(kernels), f"timing {kernel.scheme} at {rows} x {columns}")
        choice = choose(kernel.shape, kernel.scheme, kernel.inputs, batch)
        measured[kernel] = choice, measure(rows, columns, batch, choice.op, baseline(choice.op), repeats=repeats)
    return measured


def choose(shape: tuple[int, int], scheme_name: str, inputs: str | None, batch: int = 1) -> ServingKernel:
    """Return the kernel of this machine for a weight scheme: where several serve it, the one measured fastest.

    A floating-point product, with the reason, where there is none.
    """
    from workbench_kernels.bench.choice import fastest
    from workbench_kernels.catalog import candidates

    scheme = parse_scheme(scheme_name)
    serving = candidates(_served_as(scheme))
    reasons = {op: op.available() or op.refuses(*shape) for op in serving}
    able = tuple(op for op, reason in reasons.items() if not reason)
    if not able:
        reason = next((text for text in reasons.values() if text), f"no kernel of this machine serves {scheme.name}")
        fallback = _floating_point()
        return ServingKernel(op=fallback, note=f"{reason}: timed as {fallback.note} of the decoded weight")
    if len(able) == 1:
        return ServingKernel(op=able[0], note=able[0].note + _nearby(scheme, inputs))
    winner = fastest(able, *shape, batch)
    note = f"{winner.op.note}{_nearby(scheme, inputs)}; fastest of {len(able)}: {winner.text()}"
    return ServingKernel(op=winner.op, note=note)


def _served_as(scheme: Scheme) -> str:
    """Return the catalog's name for what serves the scheme, an empty string where nothing does."""
    granularity = scheme.granularity
    if scheme.name in ("bf16", "fp16"):
        return scheme.name
    if scheme.name == "fp8-e4m3-channel":
        return "fp8"
    if scheme.family != "integer":
        return ""
    levels = len(scheme.values())
    if levels == 256 and granularity == PerChannel() and "asym" not in scheme.name:
        return "int8"
    return f"int4 group {granularity.size}" if levels == 16 and isinstance(granularity, PerGroup) else ""


def _nearby(scheme: Scheme, inputs: str | None) -> str:
    """State where the kernel's activations are not the plan's."""
    served = _served_as(scheme)
    if served == "int8" and inputs != "int8-token":
        return "; the plan's activations are not dynamic INT8, the kernel's are"
    if served.startswith("int4") and inputs is not None:
        return f"; the plan's {inputs} activations are not quantized by the kernel"
    return ""


def _floating_point() -> Op:
    from workbench_kernels.bench import cuda_layers
    from workbench_kernels.catalog import cuda_reason
    from workbench_kernels.cpu import linear

    return linear.FP32 if cuda_reason() else cuda_layers.FP32


def device_name() -> str:
    """Return the device on which :func:`time_layers` times."""
    from workbench_kernels.bench import cuda_layers
    from workbench_kernels.bench.measure import cpu_name
    from workbench_kernels.catalog import cuda_reason

    return cpu_name() if cuda_reason() else str(cuda_layers.device().name)


def _timing(layer: Layer, scheme: str, batch: int, choice: ServingKernel, samples: Samples) -> Timing:
    from workbench_kernels.bench.choice import baseline

    return Timing(
        layer=layer.name, scheme=scheme, kernel=choice.op.name, baseline_kernel=baseline(choice.op).name,
        shape=layer.matrix, batch=batch, device=samples.device, note=choice.note, samples=samples.kernel,
        baseline_samples=samples.baseline, read=samples.read, occupancy="; ".join(use.text() for use in samples.uses),
    )  # fmt: skip


@contextlib.contextmanager
def kernel_errors() -> Iterator[None]:
    """Raise what the kernels raise as BackendUnavailableError or DeviceError, with the same message.

    A fault of the device is a DeviceLostError: the window's engine starts its process again after it.
    """
    from workbench_kernels import errors

    try:
        yield
    except errors.BackendUnavailable as error:
        raise BackendUnavailableError(str(error)) from error
    except errors.DeviceFault as error:
        raise DeviceLostError(str(error)) from error
    except (errors.CompileError, errors.OutOfDeviceMemory, errors.WrongResultError) as error:
        raise DeviceError(str(error)) from error


def on_gpu(title: str, job: Callable[[Device, Report], T], progress: Progress) -> T:
    """Run a job on the GPU's thread, in a stream of its own, and wait; ``progress`` is called on that thread.

    Raises BackendUnavailableError without a device, DeviceError when its memory runs out (later jobs run),
    DeviceLostError when it fails (no later job of this process runs), and what the job itself raises.
    """
    from workbench_kernels.gpu.thread import shared

    with kernel_errors():
        result: T = shared().run(title, job, lambda fraction, what: progress(fraction, what))
    return result

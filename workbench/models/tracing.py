"""What happens between the layers of a model, as a list of steps: one small batch is run and every operation recorded.

Nothing is read off names or classes: layers are known by their hooks, norms and biases by the tensors that the
model is run with.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, product
from typing import Any, TypeVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from workbench.errors import CannotRunError, DataError, TransformError, WorkbenchError
from workbench.models.data.batches import Data, has_decoder
from workbench.models.execution.stacked import tensors_of
from workbench.models.layer import Layer, LayerKind
from workbench.models.model import Batch, Model

Result = TypeVar("Result")

TOKENS = 6
"""Positions of a probe where there is no data: enough to tell the axes of a tensor apart."""

PIXELS = 32
"""Height and width of a probe for a convolutional network of unknown size."""

SIDES = (PIXELS, 28, 64, 96, 224)
"""Those of further probes, where it does not accept the one before."""

POINTS = (32, 256, 4096)
"""Lengths of probes for a network of sounds or series."""

FITTED, LARGEST, MOST_VALUES = 8, (0, 1 << 18, 1024, 128), 1 << 24
"""How many sizes are tried of a network that takes one alone; the largest, by the axes that have a size, and the most
values of a batch."""

MOST_SHAPES, MOST_PROBES = 20, 256
"""How many shapes of one input are tried, and how many combinations of several inputs."""


@dataclass(frozen=True, slots=True)
class Ref:
    """Stands for the tensor of that number in a step's arguments."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Operation:
    """One operation of torch: ``function(*args, **kwargs)`` with Refs for tensors; ``outputs`` are their numbers."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def name(self) -> str:
        """The operation's name without overload: ``mul``, ``native_layer_norm``."""
        packet = getattr(self.function, "overloadpacket", self.function)
        return str(getattr(packet, "__name__", packet))


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCall:
    """One run of a layer; ``others`` names the other tensors that it used, its bias."""

    layer: str
    input: int
    output: int
    others: tuple[str, ...]

    @property
    def inputs(self) -> tuple[int, ...]:
        """As an operation's."""
        return (self.input,)

    @property
    def outputs(self) -> tuple[int, ...]:
        """As an operation's."""
        return (self.output,)


Step = Operation | LayerCall


@dataclass(slots=True, kw_only=True, eq=False)
class Trace:
    """The steps in order; ``tensors`` by number, all kept alive; ``names`` maps other tensors to their name."""

    steps: list[Step] = field(default_factory=list)
    tensors: list[torch.Tensor] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    output: int = -1

    def calls(self) -> Counter[str]:
        """Return how often each layer ran."""
        return Counter(step.layer for step in self.steps if isinstance(step, LayerCall))

    def uses(self) -> Counter[int]:
        """Return in how many places each tensor is used."""
        uses = Counter(number for step in self.steps for number in step.inputs)
        numbers = {name: number for number, name in self.names.items()}
        uses.update(numbers[name] for step in self.steps if isinstance(step, LayerCall) for name in step.others)
        return uses


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Writes down every operation that happens outside of layers.

    A tensor is known by where its values lie, so that an alias is the tensor itself; all stay alive while recording,
    hence no place is used twice.
    """

    def __init__(self, unquantized: Mapping[str, torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.trace = Trace()
        self._numbers: dict[Any, int] = {}
        self._open: tuple[str, int] | None = None
        self._used: list[str] = []
        self.trace.names = {self.number(tensor): name for name, tensor in unquantized.items()}

    def number(self, tensor: torch.Tensor) -> int:
        """Return the tensor's number, a new one if it was not seen yet."""
        place = _place(tensor)
        if place not in self._numbers:
            self._numbers[place] = len(self.trace.tensors)
            self.trace.tensors.append(tensor)
        return self._numbers[place]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        inputs = tuple(map(self.number, tensors_of((args, kwargs))))
        ref_args, ref_kwargs = tree_map_only(torch.Tensor, lambda leaf: Ref(self.number(leaf)), (tuple(args), kwargs))
        result = func(*args, **kwargs)
        if self._open is not None:
            self._used += [self.trace.names[number] for number in inputs if number in self.trace.names]
            return result
        outputs = tuple(map(self.number, tensors_of(result)))
        self.trace.steps.append(
            Operation(function=func, args=ref_args, kwargs=ref_kwargs, inputs=inputs, outputs=outputs)
        )
        return result

    def enter(self, layer: str, tensor: torch.Tensor) -> torch.Tensor:
        """Note that ``layer`` begins with ``tensor``."""
        self._open, self._used = (layer, self.number(tensor)), []
        return tensor

    def leave(self, layer: str, tensor: torch.Tensor, output: torch.Tensor) -> None:
        """Note the output of ``layer``."""
        if self._open is None or self._open[0] != layer:
            raise TransformError(f"the layer {layer} runs inside of another layer: its graph cannot be traced")
        entered, self._open = self._open[1], None
        used = tuple(dict.fromkeys(self._used))
        self.trace.steps.append(LayerCall(layer=layer, input=entered, output=self.number(output), others=used))


def _place(tensor: torch.Tensor) -> Any:
    if not tensor.numel():
        return id(tensor)
    start = tensor.untyped_storage().data_ptr()
    return start, tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.dtype


def trace(model: Model, data: Data | None = None) -> Trace:
    """Run ``model`` on a :func:`probe` and return what happened between its layers.

    Raises CannotRunError for a weights-only model, TransformError where the model does something that cannot be
    recorded.
    """
    batch, name = probe(model, data), model.summary.name
    if model.summary.cannot_run is not None:
        raise CannotRunError(f"{name} cannot be rewritten: {model.summary.cannot_run}")
    others = {tensor.name: model.other(tensor.name).clone() for tensor in model.summary.others}
    others = {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in others.items()}
    recorder = _Recorder(others)
    inputs = {layer: partial(recorder.enter, layer) for layer in sorted(model.tappable)}
    view = model.with_others(others)
    with torch.no_grad(), recorder:
        try:
            output = view.run(batch, tap=recorder.leave, inputs=inputs)
        except (DataError, NotImplementedError, AssertionError, AttributeError) as error:
            raise TransformError(f"the graph of {name} cannot be traced: {error}") from error
    recorder.trace.output = recorder.number(output)
    return recorder.trace


def probe(model: Model, data: Data | None = None, samples: int = 1, guess: bool = False) -> Batch:
    """Return a batch of ``samples`` to trace the model with: the first of ``data``, else random values.

    ``guess``: the first module says what is not known of the inputs, and the model accepts what it says.
    Raises TransformError where neither data nor what the model says of its inputs suffices.
    """
    if data is not None and len(data):
        batch = next(data.batches(samples))
        return {name: tensor for name, tensor in batch.items() if name != "labels" or has_decoder(batch)}
    for batch in probes(model, samples, guess=False):
        return batch
    if guess:
        with suppress(WorkbenchError):
            return run_accepted(model, samples, lambda batch: (batch, model.run(batch)))[0]
    raise TransformError(
        f"the inputs of {model.summary.name} are not known, so its graph cannot be traced; calibrate it first"
    )


def probes(model: Model, samples: int, guess: bool) -> Iterator[Batch]:
    """Yield random batches that the model may accept, the likeliest first; one where its inputs are known."""
    if made := model.sample(samples):
        yield made
        return
    spec, generator = model.inputs, torch.Generator().manual_seed(0)
    layers = [x for x in model.summary.layers if x.kind is not LayerKind.EXPERTS]
    first = next((x for x in layers if x.kind is not LayerKind.MATRIX), None)
    if len(spec.requires) > 1 and not spec.has_decoder:
        values = _together(layers, samples, len(spec.requires)) if guess else ()
        yield from (dict(zip(spec.requires, tensors, strict=True)) for tensors in values)
    elif spec.tokens or (first is not None and first.kind is LayerKind.EMBEDDING and spec.tokens is not False):
        length = spec.length or min(TOKENS, spec.positions or TOKENS)
        top = spec.vocabulary or (first.shape[0] if first is not None else 1)
        yield {"input_ids": torch.randint(0, top, (samples, length), generator=generator)}
    else:
        shapes: Iterable[tuple[int, ...]] = _entering(layers, spec.channels) if guess else ()
        for shape in [(spec.channels or 3, *spec.size)] if spec.size is not None else shapes:
            yield {"inputs": torch.randn(samples, *shape, generator=generator)}
        yield from _fitted(model, samples, layers) if guess and spec.size is None else ()


def _fitted(model: Model, samples: int, layers: Iterable[Layer]) -> Iterator[Batch]:
    """Yield the sample of a network that flattens its convolutions' output, of the one size at which that is as wide as
    the layer after it takes: a side is tried, and what it gives says the next, on the line through the last two."""
    convolutions = [layer for layer in layers if layer.kind.is_convolution]
    ahead = [layer for layer in layers if layer.kind is LayerKind.LINEAR and layer.name in model.tappable]
    if not convolutions or not ahead:
        return
    kernels = [layer.shape[2:] for layer in convolutions if len(layer.shape) == len(convolutions[0].shape)]
    free = [any(kernel[axis] > 1 for kernel in kernels) for axis in range(len(kernels[0]))]
    depth, axes, entered = model.inputs.channels or convolutions[0].shape[1], max(sum(free), 1), list[int]()
    seen, side = [(0, 0.0)], POINTS[1] if axes == 1 else SIDES[2]

    def note(layer: Layer, tensor: torch.Tensor) -> torch.Tensor:
        entered[:] = tensor.shape[-1], layer.matrix[1]
        return tensor

    for _ in range(FITTED):
        shape = (depth, *(side if is_free else 1 for is_free in free))
        if samples * math.prod(shape) > MOST_VALUES:
            return
        batch = {"inputs": torch.randn(samples, *shape, generator=torch.Generator().manual_seed(0))}
        entered.clear()
        with suppress(DataError, CannotRunError), torch.no_grad():
            model.run(batch, inputs={layer.name: partial(note, layer) for layer in ahead})
            break
        if not entered:  # smaller than a kernel
            side *= 2
        else:
            (before, narrow), wide = seen[-1], entered[0] ** (1 / axes)
            if entered[0] == entered[1] or wide == narrow:
                return
            seen.append((side, wide))
            side = round(side + (entered[1] ** (1 / axes) - wide) * (side - before) / (wide - narrow))
        if not 0 < side <= LARGEST[axes]:
            return
    else:
        return
    yield batch


def _entering(layers: Iterable[Layer], channels: int | None) -> list[tuple[int, ...]]:
    """Return shapes of a sample (vectors, series, sounds, pictures, films) that may enter one of ``layers``."""
    shapes = dict[tuple[int, ...], None]()
    for layer in layers:
        depth = channels or layer.shape[1 % len(layer.shape)]
        axes = {LayerKind.CONV1D: 1, LayerKind.CONV2D: 2, LayerKind.CONV3D: 3}.get(layer.kind, 0)
        shapes |= dict.fromkeys((depth, *[size] * axes) for size in ((), POINTS, SIDES, (PIXELS,))[axes])
        if not axes and layer.kind is not LayerKind.EMBEDDING:
            ends = (layer.shape[0], layer.shape[-1]) if layer.kind is LayerKind.MATRIX else (layer.matrix[1],)
            shapes |= dict.fromkeys((*[TOKENS] * number, width) for width in ends for number in range(3))
    return list(shapes)[:MOST_SHAPES]


def _together(layers: Sequence[Layer], samples: int, count: int) -> Iterator[tuple[torch.Tensor, ...]]:
    """Yield values of ``count`` arguments, the likeliest first: what enters a layer, ids, a mask, times, relations."""
    tables = [layer.shape[0] for layer in layers if layer.kind is LayerKind.EMBEDDING]
    generator, single = torch.Generator().manual_seed(0), (samples, TOKENS)
    entering = [torch.randn(samples, *x, generator=generator) for x in sorted(_entering(layers, None), key=len)]
    kinds = [
        *(torch.randint(0, top, single, generator=generator) for top in sorted(tables)[:1]), *entering[:3],
        torch.zeros(single, dtype=torch.bool), torch.zeros(samples, dtype=torch.int64),
        torch.rand(*single, TOKENS, generator=generator), *entering[3:],
    ]  # fmt: skip
    chosen = product(range(len(kinds)), repeat=count) if len(kinds) ** count < 1 << 17 else ()
    for places in sorted(chosen, key=lambda places: sum({*places}))[:MOST_PROBES]:
        yield tuple(kinds[place] for place in places)


def run_accepted(model: Model, samples: int, run: Callable[[Batch], Result]) -> Result:
    """Return what ``run`` makes of the first of :func:`probes` that the model accepts; raises WorkbenchError."""
    failure: WorkbenchError = TransformError(f"the inputs of {model.summary.name} are not known")
    for number, batch in enumerate(islice(probes(model, samples, guess=True), model.inputs.accepted, None)):
        try:
            return run(batch)
        except (DataError, CannotRunError) as error:
            failure = error if number == 0 else failure
    raise failure

"""The residual stream of a model: what writes to it, what reads it, and whether it may be rotated.

A rotation ``Q`` of the stream changes nothing if every layer that writes to it is followed by ``Q``, every layer that
reads it is preceded by ``Q^T``, and all else that happens to the stream looks at nothing but its length: the square,
mean and product of a root-mean-square norm.  Found by following the embeddings' outputs through the recorded graph.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import torch

from workbench.errors import TransformError
from workbench.models.layer import LayerKind
from workbench.models.summary import ModelSummary
from workbench.models.tracing import LayerCall, Operation, Ref, Trace
from workbench.quantization.transforms.labels import MOVING, RECTIFIERS, SAME, Flow, moved

HINT = "only models with RMS norms and a residual stream can be rotated, Llama and its kin; take it out of the plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """``writers`` and ``readers`` are layers (a layer may be both); ``norms`` the vectors that scale what is read."""

    width: int
    writers: tuple[str, ...]
    readers: tuple[str, ...]
    norms: tuple[str, ...]


@dataclass(slots=True, kw_only=True, eq=False)
class _Walk:
    """``stream`` and ``squares`` are numbers of tensors; ``pending`` maps a layer's output, not added yet, to them."""

    trace: Trace
    kinds: Mapping[str, LayerKind]
    norms: Collection[str]
    width: int = 0
    stream: set[int] = field(default_factory=set)
    squares: set[int] = field(default_factory=set)
    pending: dict[int, frozenset[str]] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)
    writers: dict[str, None] = field(default_factory=dict)
    readers: dict[str, None] = field(default_factory=dict)
    scaled: dict[str, None] = field(default_factory=dict)

    def call(self, step: LayerCall) -> None:
        kind = self.kinds[step.layer]
        if step.input in self.squares or (step.input in self.stream and kind is not LayerKind.LINEAR):
            raise _stuck(f"the layer {step.layer}")
        if step.input in self.stream:
            self.readers[step.layer] = None
        self._leave(step, f"the layer {step.layer}")
        if kind is LayerKind.EMBEDDING:
            self.width = self.width or self.trace.tensors[step.output].shape[-1]
            self.writers[step.layer] = None
            self.stream.add(step.output)
        elif kind is LayerKind.LINEAR:
            self.pending[step.output] = frozenset({step.layer})

    def operation(self, step: Operation) -> None:
        touched = self.stream | self.squares
        if not any(number in touched for number in step.inputs):
            self._pend(step)
        elif step.name == "add" and self._joins(step):
            self.stream.update(step.outputs)
        elif self._keeps(step):
            (self.squares if step.inputs[0] in self.squares else self.stream).update(step.outputs)
        elif self._squares(step):
            self.squares.update(step.outputs)
        elif not self._ends(step):
            raise _stuck(f"the operation {step.name}")

    def _pend(self, step: Operation) -> None:
        """Follow the output of a layer that may yet be added to the stream."""
        layers = frozenset().union(*(self.pending.get(number, frozenset()) for number in step.inputs))
        every = all(number in self.pending for number in step.inputs)
        if layers and (self._moves(step) or _by_number(step) or (step.name == "add" and every)):
            self.pending |= dict.fromkeys(step.outputs, layers)
        else:
            self._leave(step, f"the operation {step.name}")

    def _leave(self, step: LayerCall | Operation, what: str) -> None:
        for number in step.inputs:
            for layer in self.pending.get(number, ()):
                self.elsewhere.setdefault(layer, what)

    def _joins(self, step: Operation) -> bool:
        """Return whether a sum is of the stream and of layers' outputs: these are writers from now on."""
        known = all(number in self.stream or number in self.pending for number in step.inputs)
        same = all(self.trace.tensors[n].shape[-1] == self.width for n in step.inputs)
        if len(step.inputs) < 2 or not known or not same or step.kwargs.get("alpha", 1) != 1:
            return False
        for number in step.inputs:
            self.writers |= dict.fromkeys(self.pending.get(number, ()))
        return True

    def _keeps(self, step: Operation) -> bool:
        """Return whether the output is the stream (or its squares) again, possibly times a number for each position."""
        if self._moves(step) or _by_number(step):
            return True
        if step.name != "mul" or len(step.inputs) != 2 or any(n in self.squares for n in step.inputs):
            return False
        (other, *more) = [number for number in step.inputs if number not in self.stream] or [-1]
        if more or other < 0:
            return False
        if other in self.trace.names and self.trace.names[other] in self.norms:
            self.scaled[self.trace.names[other]] = None
            return True
        derived = self._derived(other)
        if derived is not None:
            self.scaled[derived] = None
            return True
        shape = self.trace.tensors[other].shape
        return not shape or shape[-1] == 1

    def _derived(self, number: int) -> str | None:
        """Return the norm's vector that a tensor was computed from (one plus the stored weight)."""
        for step in self.trace.steps:
            if isinstance(step, Operation) and number in step.outputs:
                names = [self.trace.names[each] for each in step.inputs if each in self.trace.names]
                return next((name for name in names if name in self.norms), None)
        return None

    def _moves(self, step: Operation) -> bool:
        """Return whether an operation leaves the last axis alone."""
        first = step.args[0] if step.args else None
        if step.name not in MOVING | SAME - RECTIFIERS or not isinstance(first, Ref):
            return False
        shape = self.trace.tensors[first.number].shape
        if step.name in SAME:
            return True
        labels = {first.number: torch.arange(shape[-1]).expand(shape)} if shape else {}
        outputs = moved(Flow(), self.trace, step, labels) or []
        return bool(outputs) and all(
            each.ndim > 0 and each.shape[-1] == shape[-1] and bool((each == torch.arange(shape[-1])).all())
            for each in outputs
        )

    def _squares(self, step: Operation) -> bool:
        if step.name == "pow":
            return step.args[1] == 2 and step.inputs[0] in self.stream
        return step.name == "mul" and len(step.inputs) == 2 and step.inputs[0] == step.inputs[1] in self.stream

    def _ends(self, step: Operation) -> bool:
        """Return whether an operation sees the stream's length alone; a fused norm gives the stream back."""
        if step.name in ("mean", "sum") and step.inputs[0] in self.squares:
            axes = step.args[1] if len(step.args) > 1 else None
            last = self.trace.tensors[step.inputs[0]].ndim - 1
            return axes is not None and [axis % (last + 1) for axis in axes] == [last]
        if step.name in ("_fused_rms_norm", "rms_norm") and step.inputs[0] in self.stream:
            names = [self.trace.names.get(number) for number in step.inputs[1:]]
            if tuple(step.args[1]) == (self.width,) and all(name in self.norms for name in names):
                self.scaled |= dict.fromkeys(name for name in names if name)
                self.stream.add(step.outputs[0])
                return True
        return False


def _by_number(step: Operation) -> bool:
    return step.name in ("mul", "div") and len(step.inputs) == 1


def _stuck(what: str) -> TransformError:
    return TransformError(f"the residual stream meets {what}, through which a rotation cannot pass; {HINT}")


def find_stream(trace: Trace, summary: ModelSummary, norms: Iterable[str]) -> Stream:
    """Return the residual stream; ``norms`` are the vectors that can be folded into the layers behind them.

    Raises TransformError naming the operation or the layer at which a rotation stops.
    """
    walk = _Walk(trace=trace, kinds={layer.name: layer.kind for layer in summary.layers}, norms=frozenset(norms))
    for step in trace.steps:
        if isinstance(step, LayerCall):
            walk.call(step)
        else:
            walk.operation(step)
    if trace.output in walk.stream:
        raise _stuck("the model's output")
    mixed = [name for name in walk.writers if name in walk.elsewhere]
    if mixed:
        raise _stuck(f"{walk.elsewhere[mixed[0]]} after {mixed[0]}, which also writes to the stream")
    repeated = [name for name, count in trace.calls().items() if count > 1 and name in {**walk.writers, **walk.readers}]
    if repeated or not walk.readers or len(walk.writers) < 2:
        reason = f"{repeated[0]} runs several times" if repeated else "no layer reads and writes a residual stream"
        raise TransformError(f"{summary.name} cannot be rotated: {reason}; {HINT}")
    return Stream(width=walk.width, writers=tuple(walk.writers), readers=tuple(walk.readers), norms=tuple(walk.scaled))

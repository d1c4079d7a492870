"""A model's floating-point network as an ONNX graph, its parameters by name and still without values."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.func import functional_call

from workbench.deployment.onnx.experts import all_experts
from workbench.deployment.onnx.frequencies import chosen_frequencies, kept_frequencies
from workbench.errors import BackendUnavailableError, CannotRunError, ExportError, WorkbenchError, first_line
from workbench.installed import require_new
from workbench.models.execution.network import NetworkModel, no_fused_attention, one_name_each
from workbench.models.execution.widened import Wrapper
from workbench.models.model import Model
from workbench.models.tracing import probe, probes

OPSET = 21
"""The first with blocks in DequantizeLinear, and with 4-bit integers."""

Forward = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Graph:
    """A model of onnx_ir whose last inputs are the ``weights``: the network's parameters, by name, one for a layer."""

    model: Any
    weights: tuple[str, ...]

    def copy(self) -> tuple[Any, dict[str, Any]]:
        """Return a copy of the model without these inputs, and the values that have to be given in their place."""
        model = self.model.clone()
        inputs = model.graph.inputs
        values = {value.name: value for value in inputs if value.name in set(self.weights)}
        inputs[:] = [value for value in inputs if value.name not in values]
        return model, values


_CAPTURED: WeakKeyDictionary[nn.Module, dict[tuple[str, ...], Graph]] = WeakKeyDictionary()
"""The graphs of networks that are alive, by what was captured and the names that share a tensor."""


def require_onnx() -> None:
    """Raise BackendUnavailableError, with the line that installs them, where a package is missing or too old."""
    for package in ("onnx", "onnxscript", "onnx_ir"):
        if importlib.util.find_spec(package) is None:
            raise BackendUnavailableError(
                f"ONNX files need the package {package.replace('_', '-')}; install it: "
                "pip install 'quantization-workbench[onnx]'"
            )
        require_new(package.replace("_", "-"), "onnx")


def capture(model: Model, batch: Mapping[str, torch.Tensor] | None = None) -> Graph:
    """Return the graph of ``model``, samples and tokens of any number where the network allows it.

    ``batch`` is one that the network takes (default: random samples).  No value of a parameter is read.
    Raises CannotRunError for a model without a network, ExportError with torch's words where it cannot be captured.
    """
    if not isinstance(model, NetworkModel):
        raise CannotRunError(f"{model.summary.name} has no network to write: {model.summary.cannot_run}")
    if model.device.type != "cpu" or model.dtype.itemsize < 4:
        raise ExportError(
            f"{model.summary.name} runs on {model.device} in {str(model.dtype).removeprefix('torch.')}; a graph is "
            "captured on the CPU in float32: export on the CPU (--device cpu) in float32 (--dtype float32)"
        )

    def forward(network: Forward, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        return model.body.call(network, tensors)

    output = "logits" if model.summary.output.is_logits else "embedding" if model.inputs.embeds else "output"
    if batch is not None:
        return captured(model, forward, _in_order(model, batch), (output,))
    return remembered(model, lambda: captured(model, forward, example(model), (output,)))


def remembered(model: NetworkModel, make: Callable[[], Graph], *kind: str) -> Graph:
    """Return the graph of that ``kind`` that was captured of the model's network before, or capture it now."""
    known = _CAPTURED.setdefault(model.body.network, {})
    key = (*kind, *sorted(layer.name for layer in model.summary.tied))
    if key not in known:
        known[key] = make()
    return known[key]


def example(model: NetworkModel) -> dict[str, torch.Tensor]:
    """Return two random samples of everything that the network needs, and an attention mask where it takes one."""
    try:
        batch = dict(probe(model, samples=2, guess=True))
    except WorkbenchError as error:
        raise ExportError(f"what {model.summary.name} takes is not known, so it cannot be captured: {error}") from error
    if "input_ids" in batch and "attention_mask" in model.inputs.takes and "attention_mask" not in batch:
        batch["attention_mask"] = torch.ones_like(batch["input_ids"])
    return _in_order(model, batch)


def _in_order(model: NetworkModel, batch: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return a batch with its inputs as the network's own ``forward`` takes them; others come last."""
    places = {name: place for place, name in enumerate(model.inputs.takes)}
    return dict(sorted(batch.items(), key=lambda each: places.get(each[0], len(places))))


class _Runner(nn.Module):
    """The network with parameters of its own, one for each layer and other tensor, also for layers that share one.

    Buffers that the view stores (means and variances of batch norms) are among them: transforms give them other values.
    """

    def __init__(self, model: NetworkModel, forward: Callable[[Forward, Any], Any]) -> None:
        super().__init__()
        self.model, self.run = [model], forward
        others = {tensor.name for tensor in model.summary.others}
        tensors: dict[str, torch.Tensor] = dict(model.body.network.named_parameters(remove_duplicate=False))
        for name, buffer in model.body.network.named_buffers(remove_duplicate=False):
            if name in others and buffer.is_floating_point():
                tensors[name] = buffer
        self.names = {name: name for name in tensors}
        for layer in model.summary.stored:
            self.names |= dict.fromkeys(model.parameter_names(layer.name), layer.parameter)
        self.names |= {layer.parameter: layer.parameter for layer in model.summary.tied}
        others = {tensor.name for tensor in model.summary.others}
        owned = {layer.parameter for layer in model.summary.layers}
        first: dict[int, str] = {}
        for name, tensor in tensors.items():
            if name not in owned and name in self.names and self.names[name] == name:
                self.names[name] = name if name in others else first.get(id(tensor), name)
                first.setdefault(id(tensor), self.names[name])
        self.places = {name: f"p{place}" for place, name in enumerate(dict.fromkeys(self.names.values()))}
        self.own = nn.ParameterDict({
            place: nn.Parameter(_without_values(tensors[name]), requires_grad=False)
            for name, place in self.places.items()
        })  # fmt: skip

    def forward(self, batch: Any) -> Any:
        network = self.model[0].body.network
        tensors: dict[str, torch.Tensor] = {name: self.own[self.places[owner]] for name, owner in self.names.items()}
        tensors |= {name: buffer.clone() for name, buffer in chosen_frequencies(network).items()}
        tensors = one_name_each(network, tensors)

        def call(*args: Any, **kwargs: Any) -> Any:
            return functional_call(network, tensors, args, kwargs, tie_weights=False)

        return self.run(call, batch)


def _without_values(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the shape and dtype, a plain one: torch captures those that are read from a file for one size
    of a batch alone."""
    return torch.empty(1, dtype=tensor.dtype).expand(tensor.shape) if isinstance(tensor, Wrapper) else tensor.detach()


def captured(
    model: NetworkModel, forward: Callable[[Forward, Any], Any], batch: Any, outputs: Sequence[str],
    shapes: Any = None, names: Sequence[str] | None = None,
) -> Graph:  # fmt: skip
    """Return the graph of ``forward(network, batch)``; ``shapes`` as torch.export takes them (default: see below).

    First every axis of samples and every second axis of integers is of any size, then samples alone, then none.
    """
    require_onnx()
    runner, network = _Runner(model, forward).eval(), model.body.network
    names = list(names or batch)
    errors = []
    for axes in (shapes,) if shapes is not None else _shapes(batch):
        try:
            with (
                model.body.lock, no_fused_attention(), all_experts(network), quietly(), torch.no_grad(),
                kept_frequencies(network),
            ):  # fmt: skip
                program: Any = torch.onnx.export(
                    runner, (), kwargs={"batch": batch}, dynamo=True, dynamic_shapes={"batch": axes},
                    opset_version=OPSET, optimize=False, verbose=False, input_names=names,
                    output_names=list(outputs),
                )  # fmt: skip
            return _named(program, runner)
        except Exception as error:  # torch.export and its translation have many, and no common type
            errors.append(error)
    raise ExportError(f"torch cannot capture {model.summary.name} as an ONNX graph: {_reason(errors[-1])}")


def _shapes(batch: Mapping[str, torch.Tensor]) -> Iterator[dict[str, dict[int, Any]]]:
    free = torch.export.Dim.DYNAMIC
    sequences = {name for name, tensor in batch.items() if tensor.ndim == 2 and not tensor.is_floating_point()}
    tokens = {name: {0: free, 1: free} if name in sequences else {0: free} for name in batch}
    yield tokens
    if any(len(axes) > 1 for axes in tokens.values()):
        yield {name: {0: free} for name in batch}
    yield {name: {} for name in batch}


def fixed_inputs(graph: Graph) -> dict[str, str]:
    """Return the inputs that :func:`_shapes` would have of any number of samples or tokens and that are of one."""
    free = {
        value.name: 2 if len(value.shape) == 2 and not value.dtype.is_floating_point() else 1
        for value in _given(graph)
    }  # fmt: skip
    return {
        value.name: _in_words(value.shape) for value in _given(graph)
        if any(isinstance(size, int) for size in list(value.shape)[: free[value.name]])
    }  # fmt: skip


def guessed_inputs(model: Model, graph: Graph) -> dict[str, str]:
    """Return the inputs whose sizes nothing told: those of pictures, sounds and series where no data are known."""
    if next(iter(probes(model, 1, guess=False)), None) is not None:
        return {}
    return {value.name: _in_words(value.shape) for value in _given(graph) if len(value.shape) > 2}


def _given(graph: Graph) -> list[Any]:
    return [value for value in graph.model.graph.inputs if value.name not in graph.weights and value.shape]


def _in_words(shape: Iterable[Any]) -> str:
    return " x ".join(str(size) if isinstance(size, int) else "any" for size in shape)


def _reason(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return first_line(error)


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Keep the exporter's reports off the terminal."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _named(program: Any, runner: _Runner) -> Graph:
    """Return the graph simplified while its parameters are inputs, which nothing folds or merges."""
    from onnx_ir.passes.common import ClearMetadataAndDocStringPass

    graph = program.model.graph
    values = {}
    for name, place in runner.places.items():
        value = graph.initializers.pop(f"own.{place}", None)
        if value is not None:
            value.const_value = None
            values[name] = value
            graph.inputs.append(value)
    with quietly():
        program.optimize()
    graph = program.model.graph
    by_place = {value.name: value for value in graph.inputs}
    for name in values:
        by_place[f"own.{runner.places[name]}"].name = name
    unused = [value for value in graph.inputs if value.name in values and not value.uses()]
    graph.inputs[:] = [value for value in graph.inputs if not any(value is each for each in unused)]
    ClearMetadataAndDocStringPass()(program.model)  # where torch's trace was: paths of this machine
    program.model.producer_name = "quantization-workbench"
    return Graph(model=program.model, weights=tuple(value.name for value in graph.inputs if value.name in values))

"""A torch network behind the Model contract: run, tapped, with its inputs replaced, or with other weights."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import torch
from torch import nn
from torch.func import functional_call

from workbench.errors import CannotRunError, DataError, WorkbenchError, first_line
from workbench.models.data.inputs import SHAPES, InputSpec
from workbench.models.execution.experts import AllExperts, ExpertProducts
from workbench.models.execution.function_taps import FunctionTaps
from workbench.models.execution.moving import moved
from workbench.models.execution.widened import stored_values
from workbench.models.model import Batch, ExpertTap, Model, Overrides, Replacement, Tap
from workbench.models.summary import ModelSummary, OutputKind
from workbench.readable import few

Forward = Callable[..., Any]
Call = Callable[[Forward, Batch], torch.Tensor]
"""How a batch is handed to a network and what of its answer is the output: ``call(network or its stand-in, batch)``."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Body:
    """A network with what is needed to run and to tap it; shared by all views of one model.

    ``hooks`` maps layers to the module that runs them and is tapped; ``functions`` maps layers that are tapped where
    their weight is used to the axis of its input along which the samples lie, ``experts`` those of mixtures to the
    number of their experts; ``sample`` makes random samples.
    ``exact`` holds, on the host, the tensors that the network has in a narrower dtype than its file.
    """

    network: nn.Module
    call: Call
    hooks: Mapping[str, str]
    functions: Mapping[str, int] = field(default_factory=dict)
    experts: Mapping[str, int] = field(default_factory=dict)
    sample: Callable[[int], Batch] | None = None
    exact: Mapping[str, torch.Tensor] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)


REFUSALS = (RuntimeError, ValueError, LookupError, TypeError, AttributeError, AssertionError)
"""What networks raise for inputs that they do not take; RuntimeError includes NotImplementedError."""


class NetworkModel(Model):
    """A model that can be run.  The parameters of ``body.network`` are never changed, not even by ``with_weights``."""

    def __init__(self, summary: ModelSummary, body: Body, inputs: InputSpec, overrides: Overrides | None = None):
        super().__init__(summary, inputs, overrides or Overrides())
        self.body, self.tappable = body, frozenset((*body.hooks, *body.functions))
        self.routed = body.experts
        self._look_at(body.network)

    def _look_at(self, network: nn.Module) -> None:
        """Note the parameters, and the dtype of what enters (None: as it comes): theirs if that is of 2 or 8 bytes."""
        self._parameters = dict(network.named_parameters(remove_duplicate=False))
        self._copies: dict[str, torch.Tensor] = {}
        dtypes = {parameter.dtype for parameter in self._parameters.values() if parameter.is_floating_point()}
        self._enters = self.dtype if self.dtype.itemsize < 4 or dtypes == {torch.float64} else None

    @property
    def device(self) -> torch.device:
        """Where the model's tensors lie and where it runs."""
        return next((parameter.device for parameter in self._parameters.values()), torch.device("cpu"))

    @property
    def dtype(self) -> torch.dtype:
        """What the network computes in: the dtype of its first floating-point parameter."""
        floating = (each.dtype for each in self._parameters.values() if each.is_floating_point())
        return next(floating, torch.float32)

    def placed(self, device: torch.device, dtype: torch.dtype) -> Self:
        """Return the model on ``device``, its float32 tensors in ``dtype``; this one must not be used any more."""
        if device == self.device and dtype == torch.float32:
            return self
        stored = {layer.parameter: layer.dtype for layer in self.summary.layers}
        stored |= {tensor.name: tensor.dtype for tensor in self.summary.others}
        model = copy.copy(self)
        model.body = replace(self.body, exact=moved(self.body.network, device, dtype, stored))
        model._look_at(model.body.network)
        return model

    def sampled_by(self, sample: Callable[[int], Batch]) -> Self:
        """Return the model with ``sample(count)`` for what it takes, where its source says nothing of its inputs."""
        model = copy.copy(self)
        model.body = replace(self.body, sample=sample)
        return model

    def sample(self, count: int) -> Batch | None:
        """Return random samples of what the network takes; see :class:`workbench.models.model.Model`."""
        return None if self.body.sample is None else self.body.sample(count) or None

    def _view(self, summary: ModelSummary, overrides: Overrides) -> NetworkModel:
        return NetworkModel(summary, self.body, self.inputs, overrides)

    def _stored(self, name: str, dtype: str) -> torch.Tensor:
        exact = self.body.exact.get(name)
        tensor = stored_values(self._tensor(name).detach()) if exact is None else exact.to(self.device)
        return tensor.to(getattr(torch, dtype))

    def held_weight(self, layer: str) -> torch.Tensor:
        """Return a view of the parameter where it is float32; see :class:`workbench.models.model.Model`."""
        facts = self.summary.layer(layer)
        held = stored_values(self._tensor(facts.parameter).detach())
        changed = (facts.tied_to or facts.name) in self.overrides.weights or facts.parameter in self.body.exact
        return self.weight(layer) if changed or held.dtype != torch.float32 else facts.matrix_of(held)

    def _tensor(self, name: str) -> torch.Tensor:
        return self._parameters[name] if name in self._parameters else self.body.network.get_buffer(name)

    def aliases(self) -> Mapping[str, str]:
        """Return the further names of each tensor; see :class:`workbench.models.model.Model`."""
        first, every = dict[int, str](), dict(self.body.network.named_buffers(remove_duplicate=False))
        named = [(name, first.setdefault(id(tensor), name)) for name, tensor in {**self._parameters, **every}.items()]
        return {**{name: owner for name, owner in named if name != owner}, **super().aliases()}

    @property
    def is_original(self) -> bool:
        own = self.overrides
        return not (own.weights or own.others or own.inputs or own.outputs or own.rotations)

    def parameter_names(self, layer: str) -> tuple[str, ...]:
        """Return every name in the network of the parameter of ``layer``: several where weights are tied.

        Names of layers that own their weight in this view are left out.
        """
        facts = self.summary.layer(layer)
        parameter = self._parameters[facts.parameter]
        mine = {other.parameter for other in self.summary.layers if layer in (other.name, other.tied_to)}
        others = {other.parameter for other in self.summary.layers} - mine
        names = [name for name, each in self._parameters.items() if each is parameter and name not in others]
        return tuple(names) or (facts.parameter,)

    def run(
        self, batch: Batch, tap: Tap | None = None, inputs: Mapping[str, Replacement] | None = None,
        layers: Sequence[str] | None = None, outputs: Mapping[str, Replacement] | None = None,
        experts: ExpertTap | None = None, everywhere: bool = False,
    ) -> torch.Tensor:  # fmt: skip
        """Run one batch and return the output; see :class:`workbench.models.model.Model`."""
        inputs = _behind(self.overrides.rotations, {**self.overrides.inputs, **(inputs or {})})
        outputs = {**self.overrides.outputs, **(outputs or {})}
        for name in (*inputs, *outputs, *(layers or ())):
            self.summary.layer(name)
        moved, tensors = self._entering(batch), self._tensors()
        taps = (
            self._hooks(tap, inputs, layers, outputs),
            self._function_taps(tensors, tap, inputs, layers, outputs, experts, self._everywhere(everywhere)),
        )
        with self.body.lock, taps[0], taps[1], no_fused_attention():
            try:
                return _by_sample(self.summary, self.body.call(self._forward(tensors), moved), moved)
            except _CallbackFailed as failed:
                raise failed.cause from failed.cause.__cause__
            except (WorkbenchError, torch.OutOfMemoryError):
                raise
            except REFUSALS as error:
                raise DataError(_rejected(self.summary.name, self.inputs, moved, error)) from error

    def _entering(self, batch: Batch) -> Batch:
        """Return the batch as the network takes it."""
        return {
            name: tensor if self._enters is None or not tensor.is_floating_point() else tensor.to(self._enters)
            for name, tensor in self.on_device(batch).items()
        }

    def _tensors(self) -> dict[str, torch.Tensor]:
        """Return what replaces the network's own tensors, under every name of each."""
        tensors = {name: self._like(self._tensor(name), t, name) for name, t in self.overrides.others.items()}
        for name, matrix in self.overrides.weights.items():
            layer = self.summary.by_name[name]
            tensor = self._like(self._parameters[layer.parameter], layer.tensor_of(matrix), layer.parameter)
            tensors |= dict.fromkeys(self.parameter_names(name), tensor)
        return tensors

    def _like(self, own: torch.Tensor, replacing: torch.Tensor, name: str) -> torch.Tensor:
        """Return a tensor as the network holds its own; a copy that this takes is made once for the view."""
        if replacing.requires_grad or (replacing.device == own.device and replacing.dtype == own.dtype):
            return replacing.to(own)
        if name not in self._copies:
            self._copies[name] = replacing.to(own)
        return self._copies[name]

    def _forward(self, tensors: dict[str, torch.Tensor]) -> Forward:
        if not tensors:
            return self.body.network
        network: nn.Module = self.body.network
        if isinstance(network, torch.jit.ScriptModule):  # functional_call takes them only inside of another module
            network, tensors = ScriptedNetwork(network), {f"program.{name}": each for name, each in tensors.items()}
        else:
            tensors = one_name_each(network, tensors)
        return lambda *args, **kwargs: functional_call(network, tensors, args, kwargs, tie_weights=False)

    def _function_taps(
        self, tensors: Mapping[str, torch.Tensor], tap: Tap | None, inputs: Mapping[str, Replacement],
        layers: Sequence[str] | None, outputs: Mapping[str, Replacement], experts: ExpertTap | None,
        again: AllExperts | None,
    ) -> AbstractContextManager[Any]:  # fmt: skip
        tapped_layers = {*inputs, *outputs, *(() if tap is None else self.body.functions if layers is None else layers)}
        routed = {*inputs, *outputs, *(() if experts is None else self.body.experts if layers is None else layers)}
        facts = [self.summary.by_name[name] for name in self.body.functions if name in tapped_layers]
        mixed = [self.summary.by_name[name] for name in self.body.experts if name in routed]
        if not facts and not mixed:
            return nullcontext()
        tapped = None if tap is None else _only(tap, layers)
        own = {each.name: tensors.get(each.parameter, self._tensor(each.parameter)) for each in (*facts, *mixed)}
        return FunctionTaps(
            {each.name: own[each.name] for each in facts}, {each.name: each.kind for each in facts},
            self.body.functions, None if tapped is None else _carried(tapped), _each_carried(inputs),
            _each_carried(outputs), ExpertProducts({each.name: own[each.name] for each in mixed}, self.body.experts),
            None if experts is None else _carried(experts), again,
        )  # fmt: skip

    def _everywhere(self, all_experts: bool) -> AllExperts | None:
        """Return what lets all experts see all tokens while the network runs."""
        if not all_experts:
            return None
        owners = {name: self.summary.by_name[name].parameter.rpartition(".")[0] for name in self.body.experts}
        return AllExperts(self.body.network, owners, self.body.experts)

    @contextmanager
    def _hooks(
        self, tap: Tap | None, inputs: Mapping[str, Replacement], layers: Sequence[str] | None,
        outputs: Mapping[str, Replacement],
    ) -> Iterator[None]:  # fmt: skip
        for end, names in (("input", inputs), ("output", outputs)):
            if missing := [name for name in names if name not in self.tappable and name not in self.routed]:
                raise CannotRunError(
                    f"the {end} of the layer {missing[0]} cannot be quantized: its weight is used inside a larger "
                    f"module; leave its {end}s in floating point"
                )
        with ExitStack() as stack:
            for name, replace in ((n, r) for n, r in inputs.items() if n in self.body.hooks):
                hook = _carried(partial(_replace_input, replace))
                stack.callback(self._module(name).register_forward_pre_hook(hook, with_kwargs=True).remove)
            for name, replace in ((n, r) for n, r in outputs.items() if n in self.body.hooks):
                hook = _carried(partial(_replace_output, replace))
                stack.callback(self._module(name).register_forward_hook(hook).remove)
            for name in self.body.hooks if layers is None else layers:
                if tap is not None and name in self.body.hooks:
                    hook = _carried(partial(_tap, tap, name))
                    own = name not in outputs  # before the module's own hooks change what its weight gives
                    added = self._module(name).register_forward_hook(hook, with_kwargs=True, prepend=own)
                    stack.callback(added.remove)
            yield

    def _module(self, layer: str) -> nn.Module:
        return self.body.network.get_submodule(self.body.hooks[layer])


def one_name_each(network: nn.Module, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return ``tensors`` with one name for each place: of a module with two names, functional_call would put the first
    name's tensor back, and then the second's, which is the first one's replacement."""
    places: dict[tuple[int, str], str] = {}
    for name in tensors:
        path, _, attribute = name.rpartition(".")
        places.setdefault((id(network.get_submodule(path)), attribute), name)
    return {name: tensors[name] for name in places.values()}


def _behind(first: Mapping[str, Replacement], then: Mapping[str, Replacement]) -> dict[str, Replacement]:
    """Return what each layer's input passes through: ``first``, where there is one, and ``then``."""
    return {**then, **{name: partial(_both, each, then.get(name)) for name, each in first.items()}}


def _both(first: Replacement, then: Replacement | None, tensor: torch.Tensor) -> torch.Tensor:
    return first(tensor) if then is None else then(first(tensor))


class ScriptedNetwork(nn.Module):
    """A module that holds a TorchScript program and does nothing else."""

    def __init__(self, program: torch.jit.ScriptModule) -> None:
        super().__init__()
        self.program = program

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        return self.program(*args, **kwargs)


class _CallbackFailed(Exception):
    """Carries an error of the caller's own function through the network, apart from the network's errors."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _carried(hook: Callable[..., Any]) -> Callable[..., Any]:
    def carried(*args: Any) -> Any:
        try:
            with torch._C.DisableTorchFunction():  # who watches the network's functions need not see ours
                return hook(*args)
        except Exception as error:
            raise _CallbackFailed(error) from error

    return carried


def _each_carried(replacements: Mapping[str, Replacement]) -> dict[str, Replacement]:
    return {name: _carried(replace) for name, replace in replacements.items()}


def _only(tap: Tap, layers: Sequence[str] | None) -> Tap:
    """Return ``tap`` for some of the layers."""
    return tap if layers is None else lambda name, x, output: tap(name, x, output) if name in layers else None


def _tap(tap: Tap, name: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
    if isinstance(output, torch.Tensor):  # a subclass may return more than the layer's output
        tap(name, args[0] if args else next(iter(kwargs.values())), output)


def _replace_input(
    replace: Replacement, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if args:
        return (replace(args[0]), *args[1:]), kwargs
    first = next(iter(kwargs))
    return args, {**kwargs, first: replace(kwargs[first])}


def _replace_output(replace: Replacement, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
    return replace(output)


@contextmanager
def no_fused_attention() -> Iterator[None]:
    """Switch torch's fused encoder layers off: they skip modules, and would give other bits with taps than without."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def _by_sample(summary: ModelSummary, output: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return ``output``, the classes of images' positions along its last axis.

    Raises DataError unless its first axis is that of the samples, and for class logits of more than two axes.
    """
    name = summary.name
    samples = next(iter(batch.values())).shape[0] if batch else 0
    if batch and (output.ndim == 0 or output.shape[0] != samples):
        turned = output.ndim == 3 and output.shape[1] == samples
        advice = "output.transpose(0, 1)" if turned else "its logits or embeddings before they are summed or averaged"
        raise DataError(
            f"{name} returned an output of shape {tuple(output.shape)} for a batch of {samples}; expected one row for "
            f"each sample, samples x ...: let the model return {advice}"
        )
    if summary.output is OutputKind.CLASS_LOGITS and output.ndim > 2:
        raise DataError(
            f"{name} returned {tuple(output.shape)}, class logits are samples x classes; state what they are in its "
            'Python file: OUTPUT = "token_classes" (a class for each token), "position_classes" (pixels: classes along '
            'axis 1) or "embedding"'
        )
    if summary.output is OutputKind.CLASS_LOGITS and batch and output[:1].numel() == 1:
        raise DataError(
            f"{name} returned {tuple(output.shape)}: a single class leaves nothing to classify; state what it is in "
            'its Python file: OUTPUT = "embedding" (a number, compared by its square), or let it return the logits of '
            "both answers"
        )
    if summary.output is OutputKind.DETECTIONS and (output.ndim != 3 or output.shape[2] < 5):
        raise DataError(
            f"{name} returned {tuple(output.shape)}, detections are samples x objects x (a logit of each label, then "
            "the box: the centre's x and y, width and height in parts of the picture)"
        )
    pixels = summary.output is OutputKind.POSITION_CLASSES and output.ndim > 3
    return output.flatten(2).transpose(1, 2) if pixels else output


def _main_shape(spec: InputSpec) -> str:
    """Return the main input's shape in brackets where it is known."""
    return f" ({spec.main}: {spec.shape_of(spec.main)})" if spec.main and (spec.main in SHAPES or spec.tokens) else ""


def _rejected(name: str, spec: InputSpec, batch: Batch, error: Exception) -> str:
    if "on the same device" in str(error) or "Expected all tensors to be on" in str(error):
        return (
            f"{name} makes tensors of its own on another device than its weights: {first_line(error)}; let its code "
            "make them where its inputs are (device=x.device), or run it on the CPU (--device cpu)"
        )
    named = {spec.main or name if name == "inputs" else name: value for name, value in batch.items()}
    shapes = few((f"{name} {tuple(value.shape)} {value.dtype}" for name, value in named.items()), 8)
    return (
        f"{name} does not accept a batch of {shapes.replace('torch.', '')}: {first_line(error)}; give data of the "
        f"shape that the model was made for{_main_shape(spec)}{spec.in_words(batch)}"
    )

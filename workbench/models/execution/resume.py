"""A network run again from the first module that changed: what ran before it answers from memory.

A module that has ended before the first changed one begins got the same inputs and holds the same weights, so its
output is that of the reference run.  Only modules that run once in a pass are answered for; whatever happens between
modules runs as always.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

import torch
from torch import nn
from torch.func import functional_call
from torch.utils import _pytree as pytree

from workbench.errors import DataError
from workbench.models.data.batches import samples_of
from workbench.models.execution.network import NetworkModel
from workbench.models.execution.stacked import repeated, repeated_batch, running, several_weights, tensors_of
from workbench.models.layer import Layer
from workbench.models.model import Batch, Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """When a module began and ended, counted in begins and ends of modules, how often it ran, whether on any row."""

    begin: int
    end: int
    times: int = 1
    filled: bool = True


@dataclass(slots=True, kw_only=True, eq=False)
class Recording:
    """One batch through the model as it is: the order of the modules, the output, and outputs of some modules.

    ``written`` names the modules whose output something later writes into, so that only copies are handed out;
    ``stacked`` holds outputs repeated for several weights.
    """

    calls: dict[str, Call]
    output: torch.Tensor
    outputs: dict[str, Any] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    stacked: dict[tuple[str, int], Any] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of all outputs."""
        return self.output.nbytes + self.nbytes_of(self.outputs)

    def nbytes_of(self, names: Iterable[str]) -> int:
        """Bytes of the outputs of some modules."""
        return sum(tensor.nbytes for tensor in tensors_of([self.outputs[name] for name in names]))


class Resumable:
    """Runs views of one model from the first changed module on."""

    def __init__(self, model: NetworkModel) -> None:
        self._model = model
        self._modules = dict(model.body.network.named_modules())

    def unit_of(self, layer: str) -> str:
        """Return the block that holds ``layer``: an entry of the outermost list of modules, else its own module."""
        words = self._owners(layer)[0].split(".")
        for depth in range(1, len(words)):
            if isinstance(self._modules.get(".".join(words[:depth])), nn.ModuleList | nn.Sequential | nn.ModuleDict):
                return ".".join(words[: depth + 1])
        return ".".join(words)

    def place_of(self, layer: str) -> tuple[str, str]:
        """Return the class of the layer's block and the layer's place in it: alike for blocks that repeat."""
        unit = self.unit_of(layer)
        return type(self._modules[unit]).__qualname__, self._owners(layer)[0].removeprefix(unit)

    def reaches(self, recording: Recording, layer: str) -> bool:
        """Return whether a module that holds the weight of ``layer`` ran itself, on at least one row."""
        return any(name in recording.calls and recording.calls[name].filled for name in self._owners(layer))

    def record(self, batch: Batch) -> Recording:
        """Run ``batch`` through the model as it is and note the order of its modules."""
        calls, begun, clock = dict[str, Call](), dict[str, int](), count()

        def begin(name: str, *_: Any) -> None:
            begun.setdefault(name, next(clock))

        def end(name: str, module: nn.Module, args: Any, output: Any) -> None:
            times = calls[name].times + 1 if name in calls else 1
            sizes = [each.numel() for each in tensors_of(output)] or [1]
            filled = any(sizes) or (name in calls and calls[name].filled)
            calls[name] = Call(begin=begun[name], end=next(clock), times=times, filled=filled)

        with self._model.body.lock, ExitStack() as stack:
            for name, module in self._modules.items():
                if isinstance(module, torch.jit.ScriptModule):  # takes no hooks
                    continue
                stack.callback(module.register_forward_pre_hook(partial(begin, name)).remove)
                stack.callback(module.register_forward_hook(partial(end, name)).remove)
            return Recording(output=self._model.run(batch), calls=calls)

    def keep(self, batch: Batch, recording: Recording, names: set[str]) -> set[str]:
        """Keep the outputs of the modules ``names`` too, resuming from kept ones; return the names of new ones."""
        missing = {name for name in names if name in recording.calls} - set(recording.outputs)
        if not missing:
            return set()
        versions: dict[str, list[tuple[torch.Tensor, int]]] = {}

        def capture(name: str, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            recording.outputs[name] = _copied(output)
            versions[name] = [(tensor, tensor._version) for tensor in tensors_of(output)]

        def run(answering: set[str]) -> None:
            with self._answering(recording, answering), ExitStack() as stack:
                for name in missing:
                    stack.callback(self._modules[name].register_forward_hook(partial(capture, name)).remove)
                self._model.run(batch)

        try:
            run(self._before(recording, min(recording.calls[name].begin for name in missing)))
        except DataError:  # modules hand over more than their outputs
            run(set())
        recording.written |= {
            name for name, tensors in versions.items() if any(t._version != version for t, version in tensors)
        }
        return missing

    def before_unit(self, recording: Recording, layer: str) -> set[str]:
        """Return the modules, the largest ones, that end before the block of ``layer`` begins."""
        begin = min(self._begin(recording, (self.unit_of(layer),)), self._begin(recording, self._owners(layer)))
        return self._before(recording, begin)

    def before(self, recording: Recording, layer: str) -> set[str]:
        """Return the modules, the largest ones, that end before the first one that uses the weight of ``layer``."""
        return self._before(recording, self._begin(recording, self._owners(layer)))

    def run(self, view: NetworkModel, batch: Batch, recording: Recording, layer: str) -> torch.Tensor:
        """Run a view in which the weight of ``layer`` alone differs from the recorded model.

        Raises DataError where modules that are left out hand over more than their outputs (Gemma 3n's keys and values).
        """
        with self._answering(recording, self.before(recording, layer)):
            return view.run(batch)

    def stackable(self, recording: Recording, layer: str) -> bool:
        """Return whether :meth:`run_stacked` may be tried: one module, which a tap sees, runs once with this weight."""
        names = self._model.parameter_names(layer)
        module = names[0].rpartition(".")[0]
        call = recording.calls.get(module)
        hooked = self._model.body.hooks.get(layer) == module
        return len(names) == 1 and hooked and call is not None and call.times == 1 and self._model.is_original

    def most_stacked(self, recording: Recording, layer: str, nbytes: int) -> int:
        """Return how many weights may share a run so that no recorded output takes more than ``nbytes`` then."""
        names = self.before(recording, layer) & recording.outputs.keys()
        tensors = tensors_of([recording.output, *(recording.outputs[name] for name in names)])
        return max(nbytes // max([1, *(tensor.nbytes for tensor in tensors)]), 1)

    def run_stacked(
        self, batch: Batch, recording: Recording, layer: str, matrices: Sequence[torch.Tensor]
    ) -> list[torch.Tensor]:
        """Return the output for each of ``matrices`` as the weight of ``layer``, all in one run.

        Only for a ``stackable`` layer of a network that takes samples one by one: compare with a whole run.  Raises
        UnevenSamplesError where the layer's input does not hold sample after sample, DataError where the network does
        not take the larger batch.
        """
        times, samples = len(matrices), samples_of(batch)
        facts = self._model.summary.by_name[layer]
        place, _, parameter = facts.parameter.rpartition(".")
        module = self._modules[place]
        names = self.before(recording, layer) & recording.outputs.keys()
        for name in names:
            if (name, times) not in recording.stacked:
                recording.stacked[name, times] = repeated(recording.outputs[name], samples, times)
        stacked = replace(recording, outputs={name: recording.stacked[name, times] for name in names})
        tensors = _as_stored(facts, matrices, module.get_parameter(parameter))
        with self._answering(stacked, names), several_weights(module, parameter, tensors):
            return list(self._model.run(repeated_batch(batch, times)).chunk(times))

    def _owners(self, layer: str) -> list[str]:
        """Return the modules that hold the layer's parameter, under each of its names."""
        return [name.rpartition(".")[0] for name in self._model.parameter_names(layer)]

    def _begin(self, recording: Recording, modules: Sequence[str]) -> int:
        """Return when the first of ``modules`` begins; one that never runs itself is used by the module around it."""
        begins = []
        for name in modules:
            while name not in recording.calls and name:
                name = name.rpartition(".")[0]
            begins.append(recording.calls[name].begin if name in recording.calls else 0)
        return min(begins)

    def _before(self, recording: Recording, begin: int) -> set[str]:
        ended = {name for name, call in recording.calls.items() if call.times == 1 and call.end < begin}
        return {name for name in ended if not any(outer in ended for outer in _around(name))}

    @contextmanager
    def _answering(self, recording: Recording, names: set[str]) -> Iterator[None]:
        """Let the modules of ``names`` whose output is recorded answer with it instead of running."""
        with self._model.body.lock, ExitStack() as stack:
            for name in names & recording.outputs.keys():
                forward = partial(_answer, recording.outputs[name], name in recording.written)
                stack.enter_context(running(self._modules[name], forward))
            yield


def _answer(output: Any, copied: bool, *args: Any, **kwargs: Any) -> Any:
    """Return the recorded output, always in containers of its own: networks assign to the fields of theirs."""
    return _copied(output) if copied else pytree.tree_map(lambda leaf: leaf, output)


def _around(name: str) -> Iterator[str]:
    """Yield the names of the modules that hold the module ``name``."""
    while name:
        name = name.rpartition(".")[0]
        yield name


def _copied(output: Any) -> Any:
    """Return ``output`` with copied tensors, so that nothing that is written into them reaches the original."""
    return pytree.tree_map_only(torch.Tensor, torch.clone, output)


def _as_stored(facts: Layer, matrices: Sequence[torch.Tensor], stored: torch.Tensor) -> list[torch.Tensor]:
    return [facts.tensor_of(matrix).to(stored) for matrix in matrices]


def _runs_alone(model: NetworkModel, layer: str) -> bool:
    """Return whether a layer's module, given its own inputs once more, does what it did in the network: without hooks,
    which would change them again."""
    own, hooks = model.overrides, model.body.hooks
    if own.inputs or layer in own.rotations or layer not in hooks:
        return False
    module = model.body.network.get_submodule(hooks[layer])
    return not (module._forward_pre_hooks or module._forward_hooks)


def layer_outputs(model: Model, batch: Batch, layer: str, matrices: Sequence[torch.Tensor]) -> list[list[torch.Tensor]]:
    """Return, for each of ``matrices`` as its weight, what ``layer`` makes of its inputs in the model as it is.

    One output for each time that the layer runs.  The network runs once, the layer alone for each matrix.
    """
    if not isinstance(model, NetworkModel) or not _runs_alone(model, layer):
        return [_tapped(model.with_weights({layer: matrix}), batch, layer) for matrix in matrices]
    facts, body = model.summary.by_name[layer], model.body
    module = body.network.get_submodule(body.hooks[layer])
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def catch(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        calls.append(_copied((args, kwargs)))

    with body.lock:
        handle = module.register_forward_pre_hook(catch, with_kwargs=True)
        try:
            model.run(batch)
        finally:
            handle.remove()
        name = facts.parameter.rpartition(".")[2]
        tensors = _as_stored(facts, matrices, module.get_parameter(name))
        return [[functional_call(module, {name: each}, *call) for call in calls] for each in tensors]


def _tapped(model: Model, batch: Batch, layer: str) -> list[torch.Tensor]:
    outputs: list[torch.Tensor] = []
    model.run(batch, tap=lambda name, tensor, output: outputs.append(output), layers=(layer,))
    return outputs

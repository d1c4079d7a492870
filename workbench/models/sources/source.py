"""The contract of a model source, and what every source does with a network that it has built."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from torch import nn

from workbench.errors import DeviceError, first_line
from workbench.models.data.inputs import InputSpec
from workbench.models.execution.network import Body, Call, NetworkModel
from workbench.models.layer import LayerKind
from workbench.models.model import Batch, Model
from workbench.models.placement import Placement
from workbench.models.sources.layers import NetworkParts
from workbench.models.sources.probabilities import answer_of, read_off, several, with_samples_first
from workbench.models.sources.roles import refine, trace_uses
from workbench.models.summary import ModelSource, ModelSummary, OutputKind
from workbench.readable import few


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A request to open ``path``, which a session records as ``recorded``; the other fields as for ``open_model``."""

    path: Path
    recorded: str
    factory: str | None = None
    weights: Path | None = None
    trust: bool = False
    placement: Placement = field(default_factory=Placement)
    contents: bool = True


@runtime_checkable
class Source(Protocol):
    """One kind of model source; implementations are frozen dataclasses without fields."""

    name: str
    """The kind that a session records."""

    description: str
    """What it opens, with an article, for messages: "a .pt2 exported program"."""

    def detects(self, path: Path) -> bool:
        """Tell, without reading more than names and first bytes, whether ``path`` is of this kind."""
        ...

    def open(self, request: Opening) -> Model:
        """Open it, or raise one of the ModelErrors."""
        ...


def display_name(path: Path) -> str:
    """A model's name: the folder's or the file's, the folder where the file's says nothing.

    In the Hugging Face cache (``models--OWNER--NAME/snapshots/COMMIT``) a folder's name is that of the model.
    """
    if not path.is_dir() and path.stem not in {"model", "network", "pytorch_model", "weights"}:
        return path.stem
    folder = path if path.is_dir() else path.parent
    name = folder.parent.parent.name.rpartition("--")[2] if folder.parent.name == "snapshots" else ""
    return name or folder.name


def network_model(
    source: ModelSource, network: nn.Module, parts: NetworkParts, fingerprint: str, output: OutputKind, call: Call,
    inputs: InputSpec, sample: Callable[[int], Batch] | None = None, stated: bool = True,
) -> NetworkModel:  # fmt: skip
    """Assemble a model that can be run, its layers traced; the network is put into evaluation mode.

    ``sample`` makes random samples for it, where the source knows more of its inputs than ``inputs`` says.  Unless
    ``output`` was ``stated``, a sample's answer tells which logits they are, probabilities or single numbers.
    """
    network.eval()
    for parameter in network.parameters():
        if parameter.is_floating_point():
            parameter.requires_grad_(True)
    summary = ModelSummary(
        name=display_name(Path(source.path.removeprefix("demo:"))), source=source, fingerprint=fingerprint,
        output=output, layers=parts.layers, others=tuple(parts.others),
        non_finite=tuple(dict.fromkeys(parts.non_finite)),
    )  # fmt: skip
    body, notes = Body(network=network, call=call, hooks=parts.hooks, sample=sample), tuple[str, ...]()
    if not stated or source.kind == "python_module":
        answer = answer_of(NetworkModel(replace(summary, output=OutputKind.EMBEDDING), body, inputs))
        call = with_samples_first(answer, call)
        body = replace(body, call=call)
    if not stated:
        tables = [layer.shape[0] for layer in parts.layers if layer.kind is LayerKind.EMBEDDING]
        output, call, note = read_off(answer, output, call, inputs.vocabulary if inputs.tokens else None, tables)
        summary, body, notes = replace(summary, output=output), replace(body, call=call), (note, several(answer))
        inputs = replace(inputs, accepted=0 if answer is None else answer[3])
    refine(parts, network, *trace_uses(NetworkModel(summary, body, inputs)))
    body = replace(body, functions=parts.functions, experts=parts.experts)
    model = NetworkModel(replace(summary, layers=parts.layers), body, inputs)
    model.notes = tuple(filter(None, (*notes, _complex(network))))
    return model


def _complex(network: nn.Module) -> str:
    """Return a sentence that names the matrices of complex numbers, empty where there are none."""
    names = [name for name, tensor in network.state_dict().items() if tensor.is_complex() and tensor.ndim > 1]
    return "" if not names else (
        f"complex numbers have no formats, and {few(names)} stay{'s' * (len(names) == 1)} as stored; a network that "
        "keeps real and imaginary parts as real numbers (torch.view_as_real) has layers there"
    )  # fmt: skip


def placed(model: Model, placement: Placement) -> Model:
    """Return the model where and in the dtype that ``placement`` says; one that cannot be run stays on the host.

    An exported program keeps its dtypes, which its graph states.  Raises DeviceError where the weights do not fit.
    """
    device = placement.resolved()
    if not isinstance(model, NetworkModel):
        return model
    summary = model.summary
    dtype = torch.float32 if summary.source.kind == "exported_program" else placement.run_dtype(usual_dtype(summary))
    try:
        return model.placed(device, dtype)
    except torch.OutOfMemoryError as error:
        raise DeviceError(
            f"the weights of {summary.name}, {summary.nbytes / 1e9:.3g} GB as stored, do not fit into the memory of "
            f"{device}: {first_line(error)}; choose the stored dtype (--dtype stored), another device, or the CPU "
            "(--device cpu)"
        ) from None


def usual_dtype(summary: ModelSummary) -> str | None:
    """Return the dtype that most of the model's floating-point numbers are stored in."""
    sizes = Counter[str]()
    for layer in summary.stored:
        sizes[layer.dtype] += layer.parameters
    return max(sizes, key=sizes.__getitem__, default=None)


def guessed_inputs(parts: NetworkParts) -> InputSpec:
    """What a network of unknown make seems to take: token ids if its first layer is an embedding, else arrays."""
    first = next(iter(parts.layers), None)
    if first is not None and first.kind is LayerKind.EMBEDDING:
        return InputSpec(tokens=True, vocabulary=first.shape[0])
    convolution = first is not None and first.kind is LayerKind.CONV2D and first.name in parts.hooks
    return InputSpec(tokens=False, channels=first.shape[1] if first is not None and convolution else None)


def absolute(path: Path) -> Path:
    """Return the path from the root, with ``~`` expanded, symbolic links kept."""
    return Path(os.path.abspath(os.path.expanduser(path)))

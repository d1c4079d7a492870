"""A network moved to a device and a dtype: parameters that are shared stay shared, exact values stay readable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import torch
from torch import nn


def moved(
    network: nn.Module, device: torch.device, dtype: torch.dtype, stored: Mapping[str, str]
) -> dict[str, torch.Tensor]:  # fmt: skip
    """Move ``network`` in place and return the tensors, on the host, whose stored values ``dtype`` does not hold.

    ``stored`` maps names to the dtypes of the file.  Parameters and the buffers that belong to the state become
    ``dtype`` where they are float32; other buffers (rotary frequencies) and tensors of other dtypes keep theirs.
    """
    graphs_on(network, device)
    exact: dict[str, torch.Tensor] = {}
    uses = Counter(id(each) for _, each in network.named_parameters(remove_duplicate=False))
    shared: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    for path, module in network.named_modules():
        for members in (module._parameters, module._buffers):
            for key, tensor in members.items():
                if tensor is None:
                    continue
                name = f"{path}.{key}" if path else key
                transient = members is module._buffers and key in module._non_persistent_buffers_set
                target = tensor.dtype if transient or tensor.dtype != torch.float32 else dtype
                if target != tensor.dtype and stored.get(name, "float32") != str(target).removeprefix("torch."):
                    exact[name] = tensor.detach()
                if uses[id(tensor)] < 2:
                    members[key] = _moved(tensor, device, target)
                else:
                    if id(tensor) not in shared:
                        shared[id(tensor)] = tensor, _moved(tensor, device, target)
                    members[key] = shared[id(tensor)][1]
        for key, value in vars(module).items():
            if isinstance(value, torch.Tensor):
                vars(module)[key] = _moved(value, device, value.dtype)
        if isinstance(module, nn.RNNBase):
            module._init_flat_weights()
    return exact


def graphs_on(network: nn.Module, device: torch.device) -> None:
    """Let the graphs of an exported program make their tensors on ``device``: each operation states where."""
    for module in network.modules():
        graph = getattr(module, "graph", None)
        for node in graph.nodes if isinstance(graph, torch.fx.Graph) else ():
            if node.kwargs.get("device") is not None:
                node.kwargs = {**node.kwargs, "device": device}
            node.args = tuple(device if isinstance(each, torch.device) else each for each in node.args)


def _moved(tensor: torch.Tensor, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    values = tensor.detach().to(device=device, dtype=dtype)
    return nn.Parameter(values, requires_grad=tensor.requires_grad) if isinstance(tensor, nn.Parameter) else values

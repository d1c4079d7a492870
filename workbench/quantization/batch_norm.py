"""Batch norms of a network measured again: their running statistics belong to the weights of the training."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from workbench.models.data.batches import Data, require_data
from workbench.models.model import Model


@dataclass(slots=True)
class _Sums:
    """Sums over positions, float64 ``[channels]``."""

    count: int = 0
    total: torch.Tensor | float = 0.0
    squares: torch.Tensor | float = 0.0


def measured_norms(
    network: nn.Module, view: Model, data: Data, batch_size: int = 128, skip: Collection[str] = ()
) -> dict[str, torch.Tensor]:
    """Return new running means and variances by the name of their buffer, as training on ``data`` would leave them.

    ``view`` is a model that runs ``network`` with other weights.  Each norm normalises by its own batch meanwhile, so
    take large batches.  Only norms that ``data`` reach and that keep running statistics are returned; those in ``skip``
    run as they are.
    """
    require_data(view, data, "measuring batch norms")
    sums: dict[str, _Sums] = {}
    with ExitStack() as stack, torch.no_grad():
        for name, module in network.named_modules():
            if isinstance(module, _BatchNorm) and module.running_mean is not None and name not in skip:
                sums[name] = _Sums()
                stack.callback(module.register_forward_hook(_measuring(sums[name])).remove)
        for batch in data.batches(batch_size):
            view.run(batch)
    norms = {}
    for name, total in sums.items():
        if total.count > 1:
            mean = torch.as_tensor(total.total) / total.count
            variance = (torch.as_tensor(total.squares) / total.count - mean.square()).clamp_min(0)
            norms[f"{name}.running_mean"] = mean.float()
            norms[f"{name}.running_var"] = (variance * total.count / (total.count - 1)).float()
    return norms


def _measuring(sums: _Sums) -> Callable[[_BatchNorm, Any, torch.Tensor], torch.Tensor]:
    def hook(module: _BatchNorm, args: Any, output: torch.Tensor) -> torch.Tensor:
        tensor: torch.Tensor = args[0]
        axes = [axis for axis in range(tensor.dim()) if axis != 1]
        sums.count += tensor.numel() // tensor.shape[1]
        sums.total = sums.total + tensor.double().sum(dim=axes)
        sums.squares = sums.squares + tensor.double().square().sum(dim=axes)
        return nn.functional.batch_norm(tensor, None, None, module.weight, module.bias, training=True, eps=module.eps)

    return hook

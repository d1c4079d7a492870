"""Weights that a network computes before each run (parametrizations, weight and spectral norm, pruning masks), put in
place once: what runs, and what a deployed network holds."""

from __future__ import annotations

import warnings

from torch import nn
from torch.nn.utils import parametrize, prune, remove_spectral_norm, remove_weight_norm
from torch.nn.utils.spectral_norm import SpectralNorm, SpectralNormLoadStateDictPreHook
from torch.nn.utils.weight_norm import WeightNorm


def fold_weights(network: nn.Module) -> int:
    """Replace each computed weight by its value in evaluation mode; return how many there were."""
    network.eval()
    count = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # weight_norm of the past
        for module in [*network.modules()]:
            for name in _parametrized(module):
                parametrize.remove_parametrizations(module, name)
                count += 1
            for hook in [*module._forward_pre_hooks.values()]:
                if isinstance(hook, WeightNorm):
                    remove_weight_norm(module, hook.name)
                elif isinstance(hook, SpectralNorm):
                    remove_spectral_norm(module, hook.name)
                    _forget_old_names(module)
                elif isinstance(hook, prune.BasePruningMethod):
                    prune.remove(module, hook._tensor_name)  # type: ignore[no-untyped-call]
                else:
                    continue
                count += 1
    return count


def _forget_old_names(module: nn.Module) -> None:
    """Remove the hook that asks a state dict for the names of before, which torch leaves, and no other hook."""
    for key, wrapped in [*module._load_state_dict_pre_hooks.items()]:
        if isinstance(getattr(wrapped, "hook", wrapped), SpectralNormLoadStateDictPreHook):
            del module._load_state_dict_pre_hooks[key]


def _parametrized(module: nn.Module) -> list[str]:
    parts = getattr(module, "parametrizations", None)
    return [*parts] if isinstance(parts, nn.ModuleDict) and parametrize.is_parametrized(module) else []

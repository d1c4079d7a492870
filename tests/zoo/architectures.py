"""The zoo: architectures of transformers (``zoo.toml``), shrunk to a few thousand random weights."""

from __future__ import annotations

import contextlib
import tomllib
from pathlib import Path
from typing import Any

import torch

ZOO = tomllib.loads((Path(__file__).parent / "zoo.toml").read_text(encoding="utf-8"))
NAMES = {group: names.split() for group, names in ZOO["groups"].items()}
BATCH_NORMS = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d)
SPECIAL = ("cls_token_id", "sep_token_id", "mask_token_id", "unk_token_id", "forced_eos_token_id")


def shrink(config: Any, **own: Any) -> Any:
    """Set the sizes of a configuration, and of those within it, to small ones; ``own`` (``a__b`` for nested) wins."""
    for name in getattr(config, "sub_configs", {}):
        part = getattr(config, name, None)
        if part is not None and not isinstance(part, dict):
            shrink(part)
    for name, value in ZOO["sizes"].items():
        try:
            present = getattr(config, name, None)
        except RuntimeError:  # differs from layer to layer
            continue
        if present is None or isinstance(present, dict) or isinstance(present, list | tuple) != isinstance(value, list):
            continue
        with contextlib.suppress(AttributeError, NotImplementedError, TypeError, ValueError):
            setattr(config, name, value)
    for name in ("layer_types", "mlp_layer_types", "layers_block_type"):
        present = getattr(config, name, None)
        if isinstance(present, list) and len(present) > 2:
            with contextlib.suppress(AttributeError, NotImplementedError):
                setattr(config, name, (list(dict.fromkeys(present)) * 2)[:2])
    for name in SPECIAL:
        if isinstance(getattr(config, name, None), int):
            setattr(config, name, 3)
    for name, value in own.items():
        *within, last = name.split("__")
        target = config
        for part in within:
            target = getattr(target, part)
        setattr(target, last, value)
    if hasattr(config, "stage_names"):
        stages = len(config.depths) if getattr(config, "depths", None) else config.num_hidden_layers
        config.stage_names = ["stem", *(f"stage{number}" for number in range(1, stages + 1))]
        config._out_features, config._out_indices = [config.stage_names[-1]], [stages]
    return config


def save(folder: Path, name: str, **own: Any) -> None:
    """Save a network of transformers' class ``name`` with random weights of a usual spread; ``own`` settings win."""
    import transformers

    kind = getattr(transformers, name)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = kind(shrink(kind.config_class(), **{**ZOO.get("own", {}).get(name, {}), **own})).eval()
        spread(network)
    network.save_pretrained(folder)
    if any(isinstance(module, BATCH_NORMS) for module in network.modules()):
        with_statistics(network, folder)
        network.save_pretrained(folder)


def spread(network: torch.nn.Module) -> None:
    """Give weights that begin near zero a usual spread: 0.02 makes a tiny network's layers all but linear."""
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim > 1 and parameter.numel() > 64 and float(parameter.std()) < 0.05:
                parameter.normal_(0.0, 1.0 / parameter[0].numel() ** 0.5)


def with_statistics(network: Any, folder: Path) -> None:
    """Give batch norms the statistics of random samples; with those of no training the signal dies out in depth."""
    from workbench.models.sources import open_model

    model = open_model(folder)
    batch = model.sample(32)
    assert batch is not None
    norms = [module for module in model.body.network.modules() if isinstance(module, BATCH_NORMS)]
    for norm in norms:
        norm.train().momentum = None
        norm.reset_running_stats()
    with torch.no_grad():
        model.run(batch)
    network.load_state_dict(model.body.network.state_dict())

"""GPTQ, a plain script from the paper (Frantar et al., ICLR 2023): asymmetric groups, ranges clipped for the least
squared error, columns by falling activation, 1 % damping, blocks of the model one after another.

No tool of the environment offers it for these formats on a CPU.
"""

from __future__ import annotations

from typing import Any

import torch
from measure import Quantized, Task, Work, affine_bits, linear, main
from torch import nn

Grid = tuple[torch.Tensor, torch.Tensor]


def grids(weight: torch.Tensor, bits: int, group: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return scale and zero point ``[rows, columns]`` of the range of each group with the least squared error."""
    top, scales, zeros = 2**bits - 1, [], []
    for part in torch.split(weight, group, dim=1):
        low, high = part.amin(1, keepdim=True).clamp_max(0), part.amax(1, keepdim=True).clamp_min(0)
        best: tuple[torch.Tensor, ...] | None = None
        for step in range(60):
            share = 1 - step / 100
            scale = ((high - low) * share / top).clamp_min(1e-8).half().float()
            zero = (-low * share / scale).round().clamp(0, top)
            error = (nearest(part, scale, zero, top) - part).square().sum(1, keepdim=True)
            if best is None:
                best = scale, zero, error
            better = error < best[2]
            best = tuple(torch.where(better, new, old) for new, old in zip((scale, zero, error), best, strict=True))
        assert best is not None
        scales.append(best[0].expand_as(part))
        zeros.append(best[1].expand_as(part))
    return torch.cat(scales, 1), torch.cat(zeros, 1)


def nearest(values: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, top: int) -> torch.Tensor:
    """Round to the grid."""
    return ((values / scale + zero).round().clamp(0, top) - zero) * scale


def gptq(weight: torch.Tensor, moment: torch.Tensor, bits: int, group: int) -> torch.Tensor:
    """Return the rounded weight; ``moment`` is the sum of ``x x^T`` over the inputs."""
    order = moment.diagonal().argsort(descending=True)
    scale, zero = (part[:, order] for part in grids(weight, bits, group))
    left, moment = weight[:, order].clone(), moment[order][:, order].double()
    dead = moment.diagonal() == 0
    moment += torch.diag(dead.double() + 0.01 * moment.diagonal().mean())
    root = torch.linalg.cholesky(torch.cholesky_inverse(torch.linalg.cholesky(moment)), upper=True).float()
    result = torch.empty_like(left)
    for column in range(left.shape[1]):
        at = slice(column, column + 1)
        result[:, at] = nearest(left[:, at], scale[:, at], zero[:, at], 2**bits - 1)
        error = (left[:, at] - result[:, at]) / root[column, column]
        left[:, column:] -= error * root[column, column:][None]
    return result[:, order.argsort()]


def moments(model: nn.Module, layers: list[nn.Linear], windows: torch.Tensor) -> list[torch.Tensor]:
    """Return the sum of ``x x^T`` over all tokens for each layer."""
    sums = [torch.zeros(layer.in_features, layer.in_features) for layer in layers]

    def hook(place: int) -> Any:
        def seen(module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
            rows = inputs[0].flatten(0, -2)
            sums[place] += rows.T @ rows

        return seen

    handles = [layer.register_forward_pre_hook(hook(place)) for place, layer in enumerate(layers)]
    for batch in torch.split(windows, 16):
        model(input_ids=batch, use_cache=False)
    for handle in handles:
        handle.remove()
    return sums


def blockwise(bits: int, group: int) -> Work:
    """Return the work of one row."""

    @torch.no_grad()
    def quantized(task: Task) -> Quantized:
        blocks: dict[str, list[nn.Linear]] = {}
        for name, module in linear(task.model):
            blocks.setdefault(".".join(name.split(".")[:3]), []).append(module)
        for layers in blocks.values():
            for layer, moment in zip(layers, moments(task.model, layers, task.calibration), strict=True):
                layer.weight.copy_(gptq(layer.weight, moment, bits, group))
        return Quantized(model=task.model, bits=affine_bits(bits, group, bits))

    return quantized


if __name__ == "__main__":
    main({
        "int3-g64-asym": blockwise(3, 64), "int3-g32-asym": blockwise(3, 32), "int4-g64-asym": blockwise(4, 64),
        "int4-g32-asym": blockwise(4, 32),
    })  # fmt: skip

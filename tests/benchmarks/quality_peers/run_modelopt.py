"""NVIDIA ModelOpt: auto_quantize by gradients among 2, 3, 4, 5, 6 and 8 bits in groups of 64, rounded to nearest."""

from __future__ import annotations

from typing import Any

import modelopt.torch.quantization as mtq
import torch
from measure import Quantized, Task, Work, linear, main, mean_bits

GROUP = 64


def config(bits: int) -> dict[str, Any]:
    """Return symmetric integers in groups, weights only."""
    return {
        "quant_cfg": [
            {"quantizer_name": "*weight_quantizer", "cfg": {"num_bits": bits, "block_sizes": {-1: GROUP}}},
            {"quantizer_name": "*input_quantizer", "enable": False},
        ],
        "algorithm": "max",
    }


def planned(bits: float) -> Work:
    """Return the work of one row, of ``bits`` per weight with the scales, which ModelOpt does not count."""

    def quantized(task: Task) -> Quantized:
        model = task.padded(GROUP)
        model.requires_grad_(True)
        data = [{"input_ids": batch} for batch in task.calibration.split(8)]
        model, _ = mtq.auto_quantize(
            model, constraints={"effective_bits": _effective(model, bits - 16 / GROUP)},
            quantization_formats=[config(width) for width in (2, 3, 4, 5, 6, 8)], data_loader=data,
            forward_step=lambda network, batch: network(**batch, use_cache=False),
            loss_func=lambda output, batch: _loss(output.logits, batch["input_ids"]), disabled_layers=["*lm_head*"],
            num_calib_steps=len(data), num_score_steps=len(data),
        )  # fmt: skip
        return Quantized(model=model.eval(), bits=mean_bits(model, {n: _bits(m) for n, m in linear(model)}))

    return quantized


def _effective(model: Any, bits: float) -> float:
    """Return what ModelOpt calls so: its mean over the head as well, which stays in 16 bits."""
    head = model.lm_head.weight.numel()
    weights = sum(module.weight.numel() for _, module in linear(model))
    result: float = (weights * bits + head * 16) / (weights + head)
    return result


def _loss(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def _bits(module: Any) -> float:
    quantizer = module.weight_quantizer
    return quantizer.num_bits + 16 / GROUP if quantizer.is_enabled else 16.0


if __name__ == "__main__":
    main({"auto-3.0": planned(3.0), "auto-4.0": planned(4.0), "auto-5.0": planned(5.0)})

"""Matrices on which every reference is compared: random, adversarial, and those of the bundled demo model."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file

_DEMO = Path(__file__).parents[4] / "resources" / "demo" / "digits-classifier" / "weights.safetensors"


def weights(multiple: int = 128) -> dict[str, torch.Tensor]:
    """Return float32 matrices whose width is a multiple of ``multiple``, by name."""
    generator = torch.Generator().manual_seed(0)
    normal = torch.randn(48, 4 * multiple, generator=generator)
    ties = torch.randint(-24, 25, normal.shape, generator=generator) / 8
    spread = normal * 2.0 ** torch.linspace(-18, 18, 48).unsqueeze(1)
    outliers = normal.clone()
    outliers[:, ::37] *= 50
    outliers[5], outliers[6] = 0.0, 1.5
    real = torch.cat([tensor.reshape(-1).float() for tensor in load_file(_DEMO).values() if tensor.is_floating_point()])
    rows = real.numel() // (2 * multiple)
    return {
        "normal": normal,
        "ties": ties,
        "spread": spread,
        "outliers": outliers,
        "demo": real[: rows * 2 * multiple].reshape(rows, 2 * multiple).contiguous(),
    }

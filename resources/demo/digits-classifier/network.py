"""The demo classifier: handwritten digits of 8 x 8 pixels, ten classes.

Use it, with its trained weights, like this:

    network = build()
    network.load_state_dict(safetensors.torch.load_file("weights.safetensors"))
    logits = network.eval()(preprocess(numpy.load("evaluation.npz")["images"]))
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import nn

BRIGHTEST = 16  # pixel values run from 0 to this


def block(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """Convolution without bias, batch norm, ReLU; (N, inputs, H, W) -> (N, outputs, H / stride, W / stride)."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class DigitsClassifier(nn.Module):
    """Float32 images (N, 1, 8, 8) in 0..1 -> logits (N, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = block(1, 16, kernel=3)
        self.widen = block(16, 32, kernel=3)
        self.depthwise = block(32, 32, kernel=3, stride=2, groups=32)
        self.pointwise = block(32, 64, kernel=1)
        self.deep = block(64, 64, kernel=3)
        self.head = nn.Linear(64, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits, one row for each image."""
        features = self.widen(self.stem(images))
        features = self.deep(self.pointwise(self.depthwise(features)))
        logits: torch.Tensor = self.head(features.mean(dim=(2, 3)))
        return logits


def build() -> nn.Module:
    """The network with fresh weights."""
    return DigitsClassifier()


def preprocess(images: ArrayLike | torch.Tensor) -> torch.Tensor:
    """Images (N, 8, 8) with values 0..16, any number type -> float32 (N, 1, 8, 8) in 0..1."""
    pixels = images if isinstance(images, torch.Tensor) else torch.from_numpy(np.array(images))
    if pixels.ndim != 3 or tuple(pixels.shape[1:]) != (8, 8):
        raise ValueError(f"expected images of shape (N, 8, 8), got {tuple(pixels.shape)}")
    return pixels.to(torch.float32).unsqueeze(1) / BRIGHTEST

"""ResNet-20 for CIFAR-10 (He et al. 2015) with option-A shortcuts: a Python model source for the tests."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """Two 3 x 3 convolutions; the shortcut takes every second pixel and pads channels with zeros on both sides."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.stride, self.padding = stride, (outputs - inputs) // 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        shortcut = x[:, :, :: self.stride, :: self.stride]
        return functional.relu(y + functional.pad(shortcut, (0, 0, 0, 0, self.padding, self.padding)))


class ResNet20(nn.Module):
    """Float32 images (N, 3, 32, 32), normalised -> logits (N, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = self._stage(16, 16, 1)
        self.layer2 = self._stage(16, 32, 2)
        self.layer3 = self._stage(32, 64, 2)
        self.linear = nn.Linear(64, 10)

    @staticmethod
    def _stage(inputs: int, outputs: int, stride: int) -> nn.Sequential:
        return nn.Sequential(Block(inputs, outputs, stride), Block(outputs, outputs, 1), Block(outputs, outputs, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean(dim=(2, 3)))


def build() -> nn.Module:
    """The network with fresh weights."""
    return ResNet20()


def preprocess(images: object) -> torch.Tensor:
    """Images uint8 (N, 32, 32, 3) -> float32 (N, 3, 32, 32), normalised as in training."""
    values = torch.as_tensor(images).permute(0, 3, 1, 2).to(torch.float32) / 255
    mean = torch.tensor([0.485, 0.456, 0.406]).reshape(1, 3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225]).reshape(1, 3, 1, 1)
    return (values - mean) / std

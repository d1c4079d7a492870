"""Small ONNX files made by the packages that users make theirs with."""

from __future__ import annotations

import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from workbench.deployment.proof.onnx_process import saturates

FEATURES, CLASSES, CHANNELS, SIZE, WORDS = 32, 5, 3, 8, 40


class Perceptron(nn.Module):
    """Two linear layers with a norm between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(FEATURES, 64), nn.LayerNorm(64), nn.Linear(64, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.nn.functional.gelu(self.norm(self.first(x))))


class Convolutions(nn.Module):
    """Convolutions of several kinds, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.deep = nn.Conv2d(CHANNELS, 8, 3, padding=1), nn.Conv2d(8, 8, 3, groups=8, padding=1, bias=False)
        self.norm, self.down, self.head = nn.BatchNorm2d(8), nn.Conv2d(8, 16, 3, stride=2), nn.Linear(16, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.deep(torch.relu(self.stem(x)))))
        return self.head(torch.relu(self.down(x)).mean((2, 3)))


class Words(nn.Module):
    """A language model of one attention block whose table of embeddings is its head."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.norm = nn.Embedding(WORDS, FEATURES), nn.LayerNorm(FEATURES)
        self.q, self.k, self.v, self.o = (nn.Linear(FEATURES, FEATURES, bias=at == 3) for at in range(4))

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(input_ids)
        q, k, v = self.q(x), self.k(x), self.v(x)
        length = x.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool).tril()
        scores = (q @ k.transpose(1, 2) / FEATURES**0.5).masked_fill(~mask, -1e9)
        x = self.norm(x + self.o(torch.softmax(scores, -1) @ v))
        return x @ self.embed.weight.T


NETWORKS: dict[str, tuple[type[nn.Module], str]] = {
    "perceptron": (Perceptron, "x"), "convolutions": (Convolutions, "x"), "words": (Words, "input_ids"),
}  # fmt: skip


def batch(kind: str, samples: int = 4, seed: int = 0) -> torch.Tensor:
    """Return random samples for a network."""
    generator = torch.Generator().manual_seed(seed)
    if kind == "words":
        return torch.randint(0, WORDS, (samples, 7), generator=generator)
    shape = (samples, FEATURES) if kind == "perceptron" else (samples, CHANNELS, SIZE, SIZE)
    return torch.randn(shape, generator=generator)


def exported(kind: str, path: Path, *, old: bool = False) -> nn.Module:
    """Write a network by torch's exporter, the present or the old one; returns it."""
    network, document = _exported(kind, old)
    path.write_bytes(document)
    return network


@lru_cache
def _exported(kind: str, old: bool) -> tuple[nn.Module, bytes]:
    import warnings

    torch.manual_seed(1)
    cls, name = NETWORKS[kind]
    network = cls().eval()
    axes: Any = {0: torch.export.Dim.DYNAMIC, **({1: torch.export.Dim.DYNAMIC} if kind == "words" else {})}
    if old:
        more: dict[str, Any] = {"dynamic_axes": {name: {0: "batch", **({1: "tokens"} if kind == "words" else {})}}}
    else:
        more = {"dynamic_shapes": ({**axes},)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.onnx"
            torch.onnx.export(
                network, (batch(kind, 2),), str(path), dynamo=not old, input_names=[name], output_names=["logits"],
                verbose=False, external_data=False, **more,
            )  # fmt: skip
            return network, path.read_bytes()


def run(path: Path, kind: str, values: torch.Tensor) -> np.ndarray:
    """Return what ONNX Runtime gives for the whole file."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {NETWORKS[kind][1]: values.numpy()})[0])


def calibration(kind: str) -> Any:
    """Return samples as ONNX Runtime's tool reads them."""
    from onnxruntime.quantization import CalibrationDataReader

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.left = [batch(kind, 4, seed) for seed in (1, 2)]

        def get_next(self) -> Any:
            return {NETWORKS[kind][1]: self.left.pop().numpy()} if self.left else None

    return Reader()


def statically(kind: str, path: Path, out: Path, *, signed: bool, per_channel: bool) -> None:
    """Quantize a file by ONNX Runtime's own tool, weights and inputs of every product."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    quantize_static(
        str(path), str(out), calibration(kind), quant_format=QuantFormat.QDQ, per_channel=per_channel,
        op_types_to_quantize=["MatMul", "Gemm", "Conv"], weight_type=QuantType.QInt8,
        activation_type=QuantType.QInt8 if signed else QuantType.QUInt8,
    )  # fmt: skip


def in_blocks(path: Path, out: Path, *, symmetric: bool, block: int = 16, bits: int = 4) -> None:
    """Quantize the products of a file by ONNX Runtime's own tool into MatMulNBits."""
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer = MatMulNBitsQuantizer(onnx.load(str(path)), block_size=block, is_symmetric=symmetric, bits=bits)
    quantizer.process()
    onnx.save(quantizer.model.model, str(out))


def in_integers(kind: str, path: Path, out: Path, *, dynamic: bool, per_channel: bool) -> None:
    """Quantize a file by ONNX Runtime's own tool into operators of integers, which are right on every processor."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static

    if dynamic:
        weights = QuantType.QInt8 if per_channel else QuantType.QUInt8
        quantize_dynamic(str(path), str(out), per_channel=per_channel, weight_type=weights, reduce_range=saturates())
        return
    quantize_static(
        str(path), str(out), calibration(kind), quant_format=QuantFormat.QOperator, per_channel=per_channel,
        reduce_range=saturates(),
        weight_type=QuantType.QInt8, activation_type=QuantType.QInt8 if per_channel else QuantType.QUInt8,
    )  # fmt: skip

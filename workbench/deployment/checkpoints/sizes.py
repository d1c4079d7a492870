"""The bytes that a kind of checkpoint takes beyond the plan's, by schemes and shapes alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from workbench.deployment.checkpoints.compressed_tensors import CompressedTensorsMethod
from workbench.deployment.checkpoints.gptq import GptqMethod
from workbench.deployment.checkpoints.mlx import MlxMethod
from workbench.deployment.checkpoints.torchao import TorchaoMethod
from workbench.deployment.checkpoints.write import Method
from workbench.deployment.targets import FLOATING
from workbench.models.layer import Layer, LayerKind
from workbench.models.summary import ModelSummary
from workbench.numerics.formats import parse_scheme
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.planning.plan import Assignment
from workbench.planning.totals import totals

METHODS: dict[str, Method] = {
    each.kind: each for each in (CompressedTensorsMethod(), GptqMethod("gptq"), MlxMethod(), TorchaoMethod())
}

WHY = {
    "torchao": "torchao stores an integer of any width in a byte, and a zero point beside each scale",
    "mlx": "MLX stores a bias beside each scale, for symmetric integers too, which -asym-zfp16 makes use of",
    "gptq": "GPTQ stores zero points for symmetric integers too, and an index for each input of a layer",
    "compressed-tensors": "compressed-tensors stores each layer's shape, and fills rows up to words of four bytes",
}

FOLDERS = {
    "vllm": "compressed-tensors", "transformers": "compressed-tensors", "gptq": "gptq", "torchao": "torchao",
    "mlx": "mlx",
}  # fmt: skip
"""The kind of checkpoint that a runtime loads."""

TOLD = 0.005
"""The part of the plan's bytes from which on a difference is told."""


def more_bytes(kind: str, layers: Iterable[Layer], assignments: Mapping[str, Assignment]) -> int:
    """Return by how many bytes the tensors of a checkpoint of ``kind`` exceed the plan's; 0 for other forms.

    ``assignments`` are ones that the checkpoint can hold.
    """
    if kind not in METHODS:
        return 0
    return sum(
        _more(kind, of.weights, of.inputs, layer.matrix, _pieces(layer)) for layer in layers
        if layer.tied_to is None and (of := assignments[layer.name]).weights not in FLOATING
    )  # fmt: skip


def size_remark(kind: str, summary: ModelSummary, assignments: Mapping[str, Assignment]) -> str:
    """Return a sentence where a checkpoint takes clearly more than the plan counts, with the reason; else nothing."""
    counted = totals(summary, assignments).nbytes
    more = more_bytes(kind, summary.layers, assignments)
    if more < TOLD * counted:
        return ""
    return f"the tensors take {counted + more:,} bytes, {more / counted:.1%} more than the plan counts: {WHY[kind]}"


def _pieces(layer: Layer) -> int:
    """Return in how many tensors a weight lies: experts one by one, gates and what they gate apart."""
    return layer.experts * (1 + ("gate_up" in layer.name)) if layer.kind is LayerKind.EXPERTS else 1


@lru_cache(maxsize=4096)
def _more(kind: str, weights: str, inputs: str | None, matrix: tuple[int, int], pieces: int) -> int:
    scheme = parse_scheme(weights)
    stored = QuantizedTensor(scheme=scheme.name, shape=(matrix[0] // pieces, matrix[1]), arrays={})
    entries = METHODS[kind].entries(stored, inputs, None)
    return pieces * sum(entry.nbytes for entry in entries) - scheme.bits(matrix) // 8

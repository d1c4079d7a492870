"""ONNX files made node by node, and what ONNX Runtime gives for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.deployment.onnx.running import session_of
from workbench.models.model import Model


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    """Return random float32 numbers, smaller where more of them are added up."""
    values = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return values / np.float32(np.sqrt(shape[-1]))


def save(
    path: Path, nodes: Sequence[Any], takes: Mapping[str, tuple[int, Sequence[Any]]], gives: Sequence[str],
    tensors: Mapping[str, np.ndarray], opset: int = 18, domains: Mapping[str, int] | None = None,
) -> Path:  # fmt: skip
    """Write a graph; ``takes`` are inputs by name: ONNX's number of the dtype, the shape.

    ``domains`` are versions of other sets of operators that it uses.
    """
    import onnx
    from onnx import helper

    graph = helper.make_graph(
        list(nodes), "g", [helper.make_tensor_value_info(name, *each) for name, each in takes.items()],
        [helper.make_tensor_value_info(name, 1, None) for name in gives], initializers(tensors),
    )  # fmt: skip
    versions = [helper.make_opsetid(*each) for each in {"": opset, **(domains or {})}.items()]
    onnx.save(helper.make_model(graph, opset_imports=versions, ir_version=8), str(path))
    return path


def initializers(tensors: Mapping[str, np.ndarray]) -> list[Any]:
    """Return arrays as onnx has them."""
    from onnx import numpy_helper

    return [numpy_helper.from_array(array, name) for name, array in tensors.items()]


def onnxruntime_output(path: Path, batch: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the first output that ONNX Runtime gives for the whole file."""
    return np.asarray(session_of(path).run(None, dict(batch))[0])


def output_of(model: Model, batch: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return what the model gives, run by ONNX Runtime between its layers."""
    with torch.no_grad():
        return np.asarray(model.run({name: torch.from_numpy(each) for name, each in batch.items()}).numpy())


def refusal(model: Model) -> str:
    """Return why an opened graph has no gradients, "" where it has."""
    from workbench.models.onnx.network import execution

    return execution(model.body.network).refusal  # type: ignore[attr-defined]

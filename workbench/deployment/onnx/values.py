"""The weights of an ONNX file as values, decoded by what its own operators say: nothing of the workbench's formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from workbench.errors import ExportError
from workbench.models.layer import Layer
from workbench.models.onnx.inner import with_inner


class Decoder:
    """A file opened with the package onnx; its tensors are read one at a time."""

    def __init__(self, path: Path) -> None:
        """Read the graph; raises what the package raises for a damaged file."""
        import onnx

        self.folder = str(path.parent)
        self.model = onnx.load(str(path), load_external_data=False)
        self.initializers = {tensor.name: tensor for tensor in self.model.graph.initializer}
        self.users: dict[str, list[Any]] = {}
        self.makers: dict[str, Any] = {}
        for node in with_inner(self.model.graph.node):
            for name in node.input:
                self.users.setdefault(name, []).append(node)
            self.makers |= dict.fromkeys(node.output, node)

    def _loaded(self, name: str) -> Any:
        from onnx import TensorProto
        from onnx.external_data_helper import load_external_data_for_tensor

        tensor = TensorProto()
        tensor.CopyFrom(self.initializers[name])
        if tensor.data_location == TensorProto.EXTERNAL:
            load_external_data_for_tensor(tensor, self.folder)
            tensor.data_location = TensorProto.DEFAULT
        return tensor

    def raw_bytes(self, name: str) -> np.ndarray:
        """Return a tensor's bytes, uint8 ``[nbytes]``."""
        tensor = self._loaded(name)
        if tensor.HasField("raw_data"):
            return np.frombuffer(tensor.raw_data, np.uint8)
        return np.ascontiguousarray(self.array(name)).reshape(-1).view(np.uint8)

    def array(self, name: str) -> np.ndarray:
        """Return a tensor in its own dtype, those that numpy does not have in that of the package ml_dtypes."""
        from onnx import numpy_helper

        return np.asarray(numpy_helper.to_array(self._loaded(name)))

    def _behind_casts(self, name: str) -> np.ndarray:
        """Return the value ``name``, an initializer or one cast to float32."""
        while name in self.makers and self.makers[name].op_type == "Cast":
            name = self.makers[name].input[0]
        return self.array(name).astype(np.float32)

    def matrix(self, layer: Layer) -> np.ndarray:
        """Return a layer's weight as outputs x inputs, float32; ExportError where the file does not say it."""
        name = layer.parameter
        if name in self.initializers:
            stored = self.array(name).astype(np.float32)
        else:
            node = next(iter(self.users.get(f"{name}.codes", [])), None)
            if node is None:
                raise ExportError(f"the file has no tensor {name}; please report")
            if node.op_type == "MatMulNBits":
                return self._blocks(node)
            stored = self._dequantized(node)
            if stored.shape == layer.matrix[::-1] and self._is_second_factor(node.output[0]):
                return stored.T
            if stored.shape == layer.matrix:
                return stored
        return stored.reshape(layer.viewed).transpose(layer.axes).reshape(layer.matrix)

    def _is_second_factor(self, name: str) -> bool:
        """Whether a value is what products take as inputs x outputs."""
        if [node.op_type for node in self.users[name]] == ["Reshape"]:
            name = self.users[name][0].output[0]
        return all(node.op_type == "MatMul" and node.input[1] == name for node in self.users[name])

    def _dequantized(self, node: Any) -> np.ndarray:
        """Return what DequantizeLinear gives by the package's own reference."""
        from onnx import TensorProto, helper
        from onnx.reference import ReferenceEvaluator

        scales = self._behind_casts(node.input[1])
        names, initializers = list(node.input), [self._loaded(node.input[0])]
        names[1] = "scales"
        if len(names) > 2:
            initializers.append(self._loaded(names[2]))
        alone = helper.make_node("DequantizeLinear", names, ["values"])
        alone.attribute.extend(node.attribute)
        graph = helper.make_graph(
            [alone], "one", [helper.make_tensor_value_info("scales", TensorProto.FLOAT, scales.shape)],
            [helper.make_tensor_value_info("values", TensorProto.FLOAT, None)], initializers,
        )  # fmt: skip
        model = helper.make_model(graph, opset_imports=self.model.opset_import, ir_version=self.model.ir_version)
        evaluator: Any = ReferenceEvaluator(model)
        return np.asarray(evaluator.run(None, {"scales": scales})[0], np.float32)

    def _blocks(self, node: Any) -> np.ndarray:
        """Return what MatMulNBits multiplies with: (code - zero point) * scale, 2**(bits - 1) without zero points."""
        attributes = {attribute.name: attribute.i for attribute in node.attribute}
        rows, columns, bits, size = (attributes[name] for name in ("N", "K", "bits", "block_size"))
        groups, mask = -(-columns // size), (1 << bits) - 1

        def codes(raw: np.ndarray, count: int) -> np.ndarray:
            shifts = np.arange(0, 8, bits, dtype=np.uint8)
            split: np.ndarray = (raw.reshape(rows, -1, 1) >> shifts) & mask
            return split.reshape(rows, -1)[:, :count].astype(np.float32)

        values = codes(self.array(node.input[1]), groups * size).reshape(rows, groups, size)
        scales = self._behind_casts(node.input[2]).reshape(rows, groups, 1)
        zero: np.ndarray | float = float(1 << (bits - 1))
        if len(node.input) > 3 and node.input[3]:
            zero = codes(self.array(node.input[3]), groups).reshape(rows, groups, 1)
        return np.asarray(((values - zero) * scales).reshape(rows, -1)[:, :columns], np.float32)

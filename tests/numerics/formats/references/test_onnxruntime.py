"""Against ONNX Runtime: what MatMulNBits multiplies with is what blockwise int4 decodes to."""

from __future__ import annotations

import numpy as np
import pytest

from tests.numerics.formats.references.weights import weights
from workbench.numerics.formats import parse_scheme

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
onnx = pytest.importorskip("onnx", reason="onnx is not installed")


@pytest.mark.parametrize("kind", list(weights()))
@pytest.mark.parametrize(
    ("name", "block"), [("int4-g32-asym-sfp32", 32), ("int4-g128-asym-sfp32", 128), ("int4-g32-sfp32", 32)]
)
def test_blockwise_int4(name: str, block: int, kind: str) -> None:
    """Multiplied by the identity at accuracy level 1 (float32) it gives the weights back."""
    weight = weights()[kind]
    rows, columns = weight.shape
    scheme = parse_scheme(name)
    stored = scheme.encode(weight, scheme.fit(weight))
    arrays = {
        "b": stored.arrays["codes"].reshape(rows, columns // block, block // 2),
        "scales": stored.arrays["scales"].reshape(-1),
    }
    if "zero_points" in stored.arrays:
        arrays["zero_points"] = _padded(stored.arrays["zero_points"], rows, columns // block)
    helper = onnx.helper
    node = helper.make_node(
        "MatMulNBits", ["a", *arrays], ["y"], domain="com.microsoft",
        K=columns, N=rows, bits=4, block_size=block, accuracy_level=1,
    )  # fmt: skip
    graph = helper.make_graph(
        [node], "one",
        [helper.make_tensor_value_info("a", onnx.TensorProto.FLOAT, [columns, columns])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [columns, rows])],
        [onnx.numpy_helper.from_array(array, key) for key, array in arrays.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    theirs = session.run(None, {"a": np.eye(columns, dtype=np.float32)})[0].T
    ours = scheme.decode(stored).numpy()
    scale = np.abs(stored.arrays["scales"]).max()
    assert np.abs(theirs - ours).max() <= 16 * scale * 2.0**-22


def _padded(packed: np.ndarray, rows: int, groups: int) -> np.ndarray:
    """Return zero points with every row on whole bytes; ours are one stream, the same where groups are even."""
    assert groups % 2 == 0
    return packed.reshape(rows, groups // 2)

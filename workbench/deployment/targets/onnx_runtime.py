"""What ONNX Runtime runs."""

from __future__ import annotations

from workbench.deployment.targets.runtime import HALVES, Runtime
from workbench.models.layer import LayerKind
from workbench.planning.acceptance import Acceptance

ONNX_RUNTIME = Runtime(
    name="onnxruntime", title="ONNX Runtime", source="onnxruntime.ai: quantize ONNX models; operator MatMulNBits",
    kinds=frozenset(LayerKind) - {LayerKind.RECURRENT},
    accepts=(
        Acceptance(title="MatMulNBits", weights=("int2", "int4", "int8"), granularity=("group",), native=False,
                   group_sizes=(16, 32, 64, 128, 256)),
        Acceptance(title="QDQ, static activations", weights=("int8",), granularity=("channel", "tensor"),
                   inputs=("int8",), input_granularity=("tensor",), rate="int8"),
        Acceptance(title="DequantizeLinear, weights only", weights=("int4", "int8"), granularity=("channel", "tensor"),
                   native=False),
        Acceptance(title="FP8 QDQ", weights=("fp8-e4m3", "fp8-e5m2"), granularity=("tensor",), inputs=("fp8-e4m3",),
                   input_granularity=("tensor",), rate="fp8"),
        HALVES,
    ),
)  # fmt: skip

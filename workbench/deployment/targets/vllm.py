"""What vLLM runs."""

from __future__ import annotations

from workbench.deployment.targets.runtime import HALVES, Runtime
from workbench.planning.acceptance import Acceptance
from workbench.planning.groups import EXPERTS, FUSED_GATE_UP, FUSED_QKV, FUSED_W1_W3

VLLM = Runtime(
    name="vllm", title="vLLM (compressed-tensors)", sharing=(FUSED_QKV, FUSED_GATE_UP, FUSED_W1_W3, EXPERTS),
    source="docs.vllm.ai: LLM Compressor, compression schemes and supported hardware; vLLM's Marlin shape limits",
    accepts=(
        Acceptance(title="W4A16 (Marlin)", weights=("int4",), granularity=("group", "channel"), native=False,
                   group_sizes=(32, 64, 128), rows=64, columns=128, whole_groups=True),
        Acceptance(title="W8A16 (Marlin)", weights=("int8",), granularity=("group", "channel"), symmetric=True,
                   native=False, group_sizes=(32, 64, 128), rows=64, columns=128, whole_groups=True),
        Acceptance(title="W8A8 INT8", weights=("int8",), granularity=("channel", "tensor"), symmetric=True, rate="int8",
                   inputs=("int8",), input_granularity=("token", "tensor"), rows=16, columns=16),
        Acceptance(title="W8A8 FP8", weights=("fp8-e4m3",), granularity=("channel", "tensor", "block"), rate="fp8",
                   inputs=("fp8-e4m3",), input_granularity=("token", "tensor", "group"), rows=16, columns=16),
        Acceptance(title="W8A16 FP8 (Marlin)", weights=("fp8-e4m3",), granularity=("channel", "tensor"), native=False,
                   rows=64, columns=64),
        Acceptance(title="NVFP4", weights=("nvfp4",), inputs=("nvfp4",), rate="fp4", rows=16, columns=16),
        Acceptance(title="NVFP4 weights (Marlin)", weights=("nvfp4",), native=False, rows=64, columns=64),
        Acceptance(title="MXFP4", weights=("mxfp4",), inputs=("mxfp4",), rate="fp4", rows=16, columns=32),
        HALVES,
    ),
)  # fmt: skip

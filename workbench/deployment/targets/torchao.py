"""What torchao runs."""

from __future__ import annotations

from workbench.deployment.targets.runtime import HALVES, Runtime
from workbench.models.layer import LayerKind
from workbench.planning.acceptance import Acceptance

TORCHAO = Runtime(
    name="torchao", title="torchao", source="docs.pytorch.org/ao: quantization workflows and granularities",
    kinds=frozenset({LayerKind.LINEAR, LayerKind.EMBEDDING}),
    accepts=(
        Acceptance(title="Int4WeightOnly", weights=("int4",), granularity=("group",), group_sizes=(32, 64, 128, 256),
                   whole_groups=True, native=False),
        Acceptance(title="Int8WeightOnly", weights=("int8",), granularity=("channel", "group"), symmetric=True,
                   native=False),
        Acceptance(title="Int8DynamicActivationInt8Weight", weights=("int8",), granularity=("channel",),
                   symmetric=True, inputs=("int8",), input_granularity=("token",), rate="int8"),
        Acceptance(title="Int8DynamicActivationInt4Weight", weights=("int4",), granularity=("group",), symmetric=True,
                   group_sizes=(32, 64, 128, 256), whole_groups=True, inputs=("int8",), input_granularity=("token",),
                   rate="int8", native=False),
        Acceptance(title="Float8DynamicActivationFloat8Weight", weights=("fp8-e4m3",), rate="fp8",
                   granularity=("channel", "tensor"), inputs=("fp8-e4m3",), input_granularity=("token", "tensor")),
        Acceptance(title="Float8WeightOnly", weights=("fp8-e4m3",), granularity=("channel", "tensor"), native=False),
        Acceptance(title="MX and NVFP4 (prototype)", weights=("mxfp4", "mxfp8-e4m3", "nvfp4"), whole_groups=True,
                   native=False),
        HALVES,
    ),
)  # fmt: skip

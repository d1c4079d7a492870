"""What each runtime accepts, alone or on a kind of hardware: ``vllm``, ``nvidia-9.0``, ``vllm@nvidia-9.0``."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from workbench.errors import PlanError, nearest
from workbench.models.layer import Layer, LayerKind
from workbench.planning.acceptance import Acceptance, refusal
from workbench.planning.groups import EXPERTS, FUSED_GATE_UP, FUSED_QKV, FUSED_W1_W3, Bond, Sharing, bonds_of
from workbench.planning.hardware import Hardware, hardware, profiles
from workbench.planning.plan import KEEP

FLOATS = ("float16", "bfloat16", "float32")
PRODUCTS = frozenset({LayerKind.LINEAR, LayerKind.ATTENTION, LayerKind.EXPERTS})
HALVES = Acceptance(title="stored as 16 bits", weights=("fp16", "bf16"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """A program that runs exported models: the formats it loads, for which kinds of layers, what must share.

    ``source`` names the public documentation that this was taken from.
    """

    name: str
    title: str
    accepts: tuple[Acceptance, ...]
    source: str
    keeps: tuple[str, ...] = FLOATS
    kinds: frozenset[LayerKind] = PRODUCTS
    sharing: tuple[Sharing, ...] = ()

    def refuses(self, layer: Layer, weights: str, inputs: str | None) -> str | None:
        """Return why the runtime cannot run the layer so, None if it can."""
        if weights != KEEP and layer.kind not in self.kinds:
            return f"{self.title} quantizes no {layer.kind} layers"
        return refusal(self.accepts, self.keeps, layer, weights, inputs)


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

GGUF = Runtime(
    name="gguf", title="GGUF (llama.cpp)", source="github.com/ggml-org/ggml: docs/gguf.md and ggml-quants",
    kinds=PRODUCTS | {LayerKind.EMBEDDING},
    accepts=(
        Acceptance(title="GGUF blocks", weights=("q?_?", "q?_k", "iq4_nl", "mxfp4-gguf", "tq?_0"), whole_groups=True,
                   native=False),
        HALVES,
    ),
)  # fmt: skip

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

RUNTIMES: tuple[Runtime, ...] = (VLLM, ONNX_RUNTIME, GGUF, TORCHAO)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Target:
    """A runtime, a kind of hardware, or both."""

    name: str
    runtime: Runtime | None = None
    chip: Hardware | None = None
    _known: dict[tuple[object, ...], str | None] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What a person reads."""
        return " on ".join(part.title for part in (self.runtime, self.chip) if part is not None)

    def legal(self, layer: Layer, weights: str, inputs: str | None = None) -> str | None:
        """Return why the target cannot run ``layer`` so, None if it can; remembered by kind, shape and schemes."""
        key = (layer.kind, layer.matrix, layer.dtype, weights, inputs)
        if key not in self._known:
            parts = (part for part in (self.runtime, self.chip) if part is not None)
            reasons = (part.refuses(layer, weights, inputs) for part in parts)
            self._known[key] = next((reason for reason in reasons if reason), None)
        return self._known[key]

    def bonds(self, layers: tuple[Layer, ...]) -> tuple[Bond, ...]:
        """Return the layers that the runtime joins, which must share one scheme."""
        return bonds_of(layers, self.runtime.sharing) if self.runtime else ()


def target_names() -> tuple[str, ...]:
    """Return the runtimes and the hardware profiles; ``runtime@hardware`` joins two of them."""
    return (*(runtime.name for runtime in RUNTIMES), *profiles())


@lru_cache(maxsize=64)
def target(name: str) -> Target:
    """Return the target called ``name``; PlanError that names the closest ones."""
    first, _, second = name.strip().lower().partition("@")
    by_name = {runtime.name: runtime for runtime in RUNTIMES}
    if first in by_name:
        return Target(name=name, runtime=by_name[first], chip=hardware(second) if second else None)
    if first in profiles() and not second:
        return Target(name=name, chip=hardware(first))
    raise PlanError(
        f"there is no target {name!r}{nearest(name, target_names())}; there are {', '.join(target_names())}, and "
        "runtime@hardware such as vllm@nvidia-9.0"
    )


def legal(scheme: str, layer: Layer, target_name: str | Target, inputs: str | None = None) -> str | None:
    """Return why a target cannot run ``layer`` with weights in ``scheme``, None if it can."""
    chosen = target(target_name) if isinstance(target_name, str) else target_name
    return chosen.legal(layer, scheme, inputs)

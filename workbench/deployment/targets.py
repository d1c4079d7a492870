"""What a plan can be made for: runtimes, as data in ``resources/runtimes``, chips, or a runtime on a chip."""

from __future__ import annotations

import importlib.resources
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache

from workbench.errors import PlanError, WorkbenchError, nearest
from workbench.models.layer import Layer, LayerKind
from workbench.planning.acceptance import Acceptance, refusal
from workbench.planning.groups import (
    EXPERTS,
    EXPERTS_OF_PROJECTION,
    FUSED_EXPERTS,
    FUSED_GATE_UP,
    FUSED_QKV,
    FUSED_W1_W3,
    Bond,
    Sharing,
    bonds_of,
)  # fmt: skip
from workbench.planning.hardware import Hardware, hardware, profiles, with_tuples
from workbench.planning.plan import KEEP

SHARING: dict[str, Sharing] = {
    "fused-qkv": FUSED_QKV, "fused-gate-up": FUSED_GATE_UP, "fused-w1-w3": FUSED_W1_W3, "experts": EXPERTS,
    "fused-experts": FUSED_EXPERTS, "experts-of-projection": EXPERTS_OF_PROJECTION,
}  # fmt: skip


FLOATING = (KEEP, "fp32", "fp16", "bf16")
"""Schemes that quantize nothing."""

ONE_BY_ONE = re.compile(r"(?:.*\.)?(?:mlp|feed_forward)\.experts\.(?:gate_up|down)_proj")
"""Experts whose matrices, outputs x inputs, transformers stores one by one: Mixtral's, Qwen's, DeepSeek's, OLMoE's, but
not gpt-oss's, Llama 4's or Granite's."""


def what_it_is(layer: Layer) -> str:
    """Return what a layer is that is not a plain linear one, in the plural."""
    if layer.kind is LayerKind.EXPERTS:
        return "experts whose matrices the checkpoint stores as one tensor"
    if layer.kind is not LayerKind.LINEAR:
        return f"{layer.kind} ones"
    turned = layer.axes != (0, 1)
    return "ones that the model stores inputs x outputs" if turned else "weights of other modules, such as routers"


def is_linear(layer: Layer) -> bool:
    """Return whether a layer is the weight of a plain linear module, stored outputs x inputs."""
    return layer.kind is LayerKind.LINEAR and layer.axes == (0, 1) and layer.parameter == f"{layer.name}.weight"


def is_table(layer: Layer) -> bool:
    """Return whether a layer is the weight of a plain embedding."""
    return layer.kind is LayerKind.EMBEDDING and layer.parameter == f"{layer.name}.weight"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """A program that runs exported models: the formats it loads, for which kinds of layers, what must share.

    ``float32_only`` are patterns of the parameters that it reads in float32 alone.  ``keeps_tied``: a weight that
    several layers share has to stay.  ``modules``: of linear layers and tables it quantizes modules alone.  ``source``
    names the public documentation that this was taken from.
    """

    name: str
    title: str
    source: str
    keeps: tuple[str, ...]
    kinds: frozenset[LayerKind]
    sharing: tuple[Sharing, ...]
    accepts: tuple[Acceptance, ...]
    float32_only: tuple[str, ...] = ()
    keeps_tied: bool = False
    modules: bool = False

    def refuses(self, layer: Layer, weights: str, inputs: str | None) -> str | None:
        """Return why the runtime cannot run the layer so, None if it can."""
        if weights != KEEP and layer.kind not in self.kinds:
            return f"{self.title} quantizes no {layer.kind} layers"
        if weights not in (KEEP, "fp32") and self.is_float32_only(layer):
            return f"{self.title} reads tables of positions, of token types and gates of experts in float32 alone"
        if weights not in FLOATING and self.is_no_module(layer):
            return f"{self.title} quantizes linear modules stored outputs x inputs, not {what_it_is(layer)}"
        return refusal(self.accepts, self.keeps, layer, weights, inputs)

    def is_float32_only(self, layer: Layer) -> bool:
        """Return whether the layer is one that the runtime reads in float32 alone."""
        return _matches(layer.parameter, self.float32_only)

    def is_no_module(self, layer: Layer) -> bool:
        """Return whether the layer is none of the modules, one weight each, that alone the runtime quantizes."""
        if layer.kind is LayerKind.EXPERTS:
            return self.modules and not (layer.axes == (0, 1, 2) and ONE_BY_ONE.fullmatch(layer.name))
        return self.modules and not is_linear(layer) and not is_table(layer)


@lru_cache(maxsize=1 << 16)
def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _runtime(name: str) -> Runtime:
    file = importlib.resources.files("workbench_resources").joinpath("runtimes", f"{name}.json")
    document = json.loads(file.read_text(encoding="utf-8"))
    return Runtime(
        name=name, title=document["title"], source=document["source"], keeps=tuple(document["keeps"]),
        kinds=frozenset(map(LayerKind, document["kinds"])), sharing=tuple(SHARING[key] for key in document["sharing"]),
        accepts=tuple(Acceptance(**with_tuples(entry)) for entry in document["accepts"]),
        float32_only=tuple(document.get("float32_only", ())), keeps_tied=document.get("keeps_tied", False),
        modules=document.get("modules", False),
    )  # fmt: skip


RUNTIMES: tuple[Runtime, ...] = tuple(
    map(_runtime, ("vllm", "transformers", "onnxruntime", "openvino", "tensorrt", "gguf", "gptq", "torchao", "mlx"))
)
"""A new one is a file and its name here."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Target:
    """A runtime, a kind of hardware, or both; ``tied`` are the layers whose weight others share and that have to stay
    (see :meth:`among`)."""

    name: str
    runtime: Runtime | None = None
    chip: Hardware | None = None
    tied: frozenset[str] = frozenset()
    _known: dict[tuple[object, ...], str | None] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What the user reads."""
        return " on ".join(part.title for part in (self.runtime, self.chip) if part is not None)

    def among(self, layers: Iterable[Layer]) -> Target:
        """Return the target for all the layers of a model: which weights are shared is not a fact of one of them."""
        if self.runtime is None or not self.runtime.keeps_tied:
            return self
        return replace(self, tied=frozenset(layer.tied_to for layer in layers if layer.tied_to))

    def legal(self, layer: Layer, weights: str, inputs: str | None = None) -> str | None:
        """Return why the target cannot run ``layer`` so, None if it can; remembered by what it depends on."""
        key = (*self.kind_of(layer), weights, inputs)
        if layer.name in self.tied and weights not in FLOATING:
            return f"{self.title} quantizes only one of the layers that share this tensor; it has to stay"
        if key not in self._known:
            parts = (part for part in (self.runtime, self.chip) if part is not None)
            reasons = (part.refuses(layer, weights, inputs) for part in parts)
            self._known[key] = next((reason for reason in reasons if reason), None)
        return self._known[key]

    def kind_of(self, layer: Layer) -> tuple[object, ...]:
        """Return what a refusal depends on: layers of the same kind are refused the same schemes."""
        runtime = self.runtime
        apart = runtime and (runtime.is_float32_only(layer), runtime.is_no_module(layer) and layer.axes)
        return layer.kind, layer.matrix, layer.dtype, apart, layer.name in self.tied

    def bonds(self, layers: tuple[Layer, ...]) -> tuple[Bond, ...]:
        """Return the layers that the runtime joins, which must share one scheme."""
        return bonds_of(layers, self.runtime.sharing) if self.runtime else ()


def target_names() -> tuple[str, ...]:
    """Return the runtimes and the hardware profiles; ``runtime@hardware`` joins two of them."""
    return (*(runtime.name for runtime in RUNTIMES), *profiles())


def _programs() -> dict[str, str]:
    """Return the runtime of each program that is the only one in parentheses behind a title."""
    programs = {runtime.name: runtime.title.partition("(")[2].rstrip(")").lower() for runtime in RUNTIMES}
    count = Counter(programs.values())
    return {program: name for name, program in programs.items() if count[program] == 1}


@lru_cache(maxsize=64)
def target(name: str) -> Target:
    """Return the target called ``name``, also as the program is called that runs it (``llama.cpp``); PlanError that
    names the closest ones."""
    first, _, second = name.strip().lower().partition("@")
    by_name = {runtime.name: runtime for runtime in RUNTIMES}
    first = _programs().get(first, first)
    if first in by_name:
        name = f"{first}@{second}" if second else first
        return Target(name=name, runtime=by_name[first], chip=hardware(second) if second else None)
    if first in profiles() and not second:
        return Target(name=name, chip=hardware(first))
    raise PlanError(
        f"there is no target {name!r}{nearest(name, target_names())}; choose one of {', '.join(target_names())}, or "
        "runtime@hardware such as vllm@nvidia-9.0"
    )


def known_target(name: str) -> str:
    """Return the name of a target, empty for one of a later version, or of a package that is not installed here."""
    try:
        return target(name).name if name else ""
    except WorkbenchError:
        return ""

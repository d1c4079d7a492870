"""Runtimes as data, the formats they load and the layers they join; a target is a runtime, a chip, or both."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.models.layer import Layer, LayerKind
from workbench.planning.acceptance import Acceptance, refusal
from workbench.planning.groups import Bond, Sharing, bonds_of
from workbench.planning.hardware import Hardware
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Target:
    """A runtime, a kind of hardware, or both."""

    name: str
    runtime: Runtime | None = None
    chip: Hardware | None = None
    _known: dict[tuple[object, ...], str | None] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What the user reads."""
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

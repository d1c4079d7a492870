"""Number formats by name.

A family is one file here: its elements as data, and a ``FAMILY`` that parses the names of its schemes.  To add one,
write the file and put its ``FAMILY`` into ``FAMILIES``; third parties publish theirs as a ``workbench.formats`` entry
point.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, runtime_checkable

from workbench.errors import SchemeError, nearest
from workbench.numerics.formats import cast, codebook, floating, integer, microscaling
from workbench.numerics.formats.gguf import family as gguf
from workbench.numerics.formats.gguf import lattice as gguf_lattice
from workbench.numerics.formats.gguf import stored as gguf_stored
from workbench.numerics.granularity import PerTensor
from workbench.numerics.scheme import Parameters, Scheme
from workbench.registry import Registry


@runtime_checkable
class Family(Protocol):
    """A family of number formats."""

    @property
    def name(self) -> str:
        """The family's name, as in ``Scheme.family``."""

    @property
    def title(self) -> str:
        """What a table calls the family."""

    @property
    def examples(self) -> tuple[str, ...]:
        """Canonical names of typical schemes, for menus and for "did you mean"."""

    def parse(self, name: str) -> Scheme | None:
        """Return the scheme called ``name`` (lower case), None if another family has to; SchemeError if malformed."""


FAMILIES: tuple[Family, ...] = (
    cast.FAMILY, integer.FAMILY, floating.FAMILY, microscaling.FAMILY, codebook.FAMILY, gguf.FAMILY,
    gguf_lattice.FAMILY, gguf_stored.FAMILY,
)  # fmt: skip

REGISTRY: Registry[Family] = Registry(
    FAMILIES, "workbench.formats", kind="number format family", error=SchemeError, member_type=Family
)

_STANDARD = (
    "int2-g32-asym", "int2-g16-asym", "int3-g64-asym", "int3-g32-asym", "mxfp4", "int4-g64-asym", "int4-g32",
    "nf4-b64", "nvfp4", "int4-g32-asym", "int5-g64-asym", "int5-g32-asym", "int6-g64-asym", "int6-g32-asym",
    "fp8-e4m3-channel", "int8-channel", "bf16", "fp16",
)  # fmt: skip

_ACTIVATIONS = (
    "int8-token", "int8-token-asym", "int8-tensor", "int8-tensor-asym", "fp8-e4m3-token", "fp8-e4m3-tensor",
)  # fmt: skip


def parse_scheme(name: str) -> Scheme:
    """Return the scheme called ``name``, in any case and with optional parts left out.

    Raises SchemeError that names the closest schemes.
    """
    lower = name.strip().lower()
    examples: list[str] = []
    for family in REGISTRY:
        scheme = family.parse(lower)
        if scheme is not None:
            return scheme
        examples.extend(family.examples)
    raise SchemeError(f"no number format is called {name!r}{nearest(lower, examples)}")


def standard_schemes() -> tuple[Scheme, ...]:
    """Return the candidates that the sensitivity heatmap starts with, fewest bits on a 4096 x 4096 matrix first."""
    return tuple(parse_scheme(name) for name in _STANDARD)


def all_schemes() -> tuple[Scheme, ...]:
    """Return every typical scheme of every family, third parties' too, family by family: what menus offer."""
    return tuple(parse_scheme(name) for family in REGISTRY for name in family.examples)


def activation_schemes() -> tuple[Scheme, ...]:
    """Return the schemes offered for the inputs of layers; ``token`` ones need no calibrated range."""
    return tuple(parse_scheme(name) for name in _ACTIVATIONS)


def takes_range(scheme: Scheme) -> bool:
    """Return whether an input in this scheme takes a calibrated range, as static ones do, and NVFP4's tensor scale."""
    static = isinstance(scheme.granularity, PerTensor) and scheme.family != cast.FAMILY.name
    return static or isinstance(scheme, microscaling.NvScheme)


def within(scheme: Scheme, low: float, high: float) -> tuple[Scheme, Parameters | None]:
    """Return what rounds an input within its calibrated range: a scheme, and parameters where all are static.

    NVFP4 has its scale for the tensor from the range, and fits those of its blocks as they come.
    """
    if isinstance(scheme, microscaling.NvScheme):
        return replace(scheme, largest=max(-low, high)), None
    return scheme, scheme.fit_range(low, high)

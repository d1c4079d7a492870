"""What a runtime or a chip runs: weight and activation formats, granularity, symmetry, alignment, as data."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from workbench.models.layer import Layer
from workbench.numerics.formats import parse_scheme
from workbench.numerics.granularity import PerBlock, PerChannel, PerGroup, PerTensor
from workbench.numerics.scheme import Scheme
from workbench.planning.plan import KEEP

Refusal = tuple[int, str]
"""How many checks passed before the one that failed, and why it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """One way to run a layer; empty or None does not limit.

    ``weights`` and ``inputs`` are element formats (``int8``) or scheme names (``q4_k``), with shell patterns;
    ``inputs`` None is floating point.  Outputs must be a multiple of ``rows``, inputs of ``columns``, and of the
    group's size where ``whole_groups``.  ``rate`` names the peak that holds; ``native`` is False where weights are
    decoded first.  ``zero_points`` of asymmetric weights are ``whole`` numbers, or ``floating`` ones in the format of
    the scales, which are stored as ``scales``.  ``kinds`` are those of the layers that are run so, ``dtypes`` what
    those are stored in.
    """

    title: str
    weights: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    rate: str = "fp16"
    native: bool = True
    granularity: tuple[str, ...] = ()
    group_sizes: tuple[int, ...] = ()
    symmetric: bool | None = None
    inputs: tuple[str, ...] | None = None
    input_granularity: tuple[str, ...] = ()
    input_symmetric: bool | None = None
    rows: int = 1
    columns: int = 1
    whole_groups: bool = False
    zero_points: str = ""
    scales: str = ""

    def refuses(self, layer: Layer, weights: Scheme, inputs: Scheme | None) -> Refusal | None:
        """Return why this way cannot run the layer, None if it can."""
        for passed, reason in enumerate(self._checks(layer, weights, inputs)):
            if reason:
                return passed, f"{self.title}: {reason}"
        return None

    def _elements(self) -> str:
        """Return in words which weights it runs: ``int[2-8]`` are int2 to int8, and many names are its title."""
        names = [re.sub(r"(\w+)\[(\d)-(\d)]", r"\1\2 to \1\3", pattern) for pattern in self.weights]
        return self.title if any(sign in name for name in names for sign in "?*[") else " or ".join(names)

    def _checks(self, layer: Layer, weights: Scheme, inputs: Scheme | None) -> Iterator[str]:
        """Yield why each check fails, empty where it passes: kind, formats, scales, symmetry, group size, alignment."""
        yield "" if not self.kinds or layer.kind in self.kinds else f"it runs no {layer.kind} layers"
        weights_fit = _matches(weights, self.weights)
        stored_fit = not self.dtypes or not weights_fit or layer.dtype in self.dtypes
        yield "" if stored_fit else f"models stored as {' or '.join(self.dtypes)} are run so, not {layer.dtype}"
        yield "" if weights_fit else f"weights must be {self._elements()}, not {element_of(weights)}"
        expected = "floating-point" if self.inputs is None else " or ".join(self.inputs)
        inputs_fit = inputs is None if self.inputs is None else inputs is not None and _matches(inputs, self.inputs)
        came = "floating-point" if inputs is None else element_of(inputs)
        yield "" if inputs_fit else f"activations must be {expected}, not {came}"
        sentence = "one scale per {} is needed for %s, not per {}"
        yield _one_of(granularity_of(weights), self.granularity, sentence % "weights")
        yield _symmetry(weights, self.symmetric, "weights")
        yield _zero_points(weights, self.zero_points)
        scales = getattr(getattr(weights, "scale_format", None), "name", "")
        yield f"scales must be {self.scales} (-s{self.scales}), not {scales}" if self.scales not in ("", scales) else ""
        group = weights.granularity.size if isinstance(weights.granularity, PerGroup) else None
        if group is not None and self.group_sizes:
            yield _one_of(str(group), tuple(map(str, self.group_sizes)), "groups of {} are needed, not of {}")
        if inputs is not None:
            yield _one_of(granularity_of(inputs), self.input_granularity, sentence % "activations")
            yield _symmetry(inputs, self.input_symmetric, "activations")
        rows, columns = layer.matrix
        width = weights.granularity.columns if isinstance(weights.granularity, PerBlock) else group or 1
        multiple = math.lcm(self.columns, width) if self.whole_groups else self.columns
        yield f"outputs must be a multiple of {self.rows}, the layer has {rows}" if rows % self.rows else ""
        yield f"inputs must be a multiple of {multiple}, the layer has {columns}" if columns % multiple else ""


def refusal(
    accepts: Iterable[Acceptance], keeps: Iterable[str], layer: Layer, weights: str, inputs: str | None
) -> str | None:
    """Return why none of ``accepts`` runs the layer, by the one that came closest; None if one does.

    A layer that is kept runs where ``keeps`` names its stored dtype and its inputs are floating point.
    """
    if weights == KEEP:
        known = tuple(keeps)
        if layer.dtype not in known:
            there = f"only {', '.join(known)}" if known else "no floating point"
            return f"the layer is stored as {layer.dtype}, and there is {there}"
        return None if inputs is None else "its activations are quantized but its weights are not"
    schemes = parse_scheme(weights), None if inputs is None else parse_scheme(inputs)
    refusals = [each.refuses(layer, *schemes) for each in accepts]
    if any(each is None for each in refusals):
        return None
    reasons = (each for each in refusals if each is not None)
    return max(reasons, key=lambda reason: reason[0], default=(0, "nothing runs"))[1]


def accepted(accepts: Iterable[Acceptance], layer: Layer, weights: str, inputs: str | None) -> Acceptance | None:
    """Return the first of ``accepts`` that runs the layer, native ones first."""
    schemes = parse_scheme(weights), None if inputs is None else parse_scheme(inputs)
    ordered = sorted(accepts, key=lambda each: not each.native)
    return next((each for each in ordered if each.refuses(layer, *schemes) is None), None)


def element_of(scheme: Scheme) -> str:
    """Return the element format of integers and floats, the whole name of any other scheme."""
    if scheme.family in ("integer", "floating"):
        return str(getattr(scheme, "element").name)  # noqa: B009
    return scheme.name


def granularity_of(scheme: Scheme) -> str:
    """Return what shares one scale, in a word."""
    words = {PerTensor: "tensor", PerChannel: "channel", PerGroup: "group", PerBlock: "block"}
    return words.get(type(scheme.granularity), "token")


def _matches(scheme: Scheme, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(element_of(scheme), pattern) for pattern in patterns)


def _one_of(word: str, accepted: tuple[str, ...], sentence: str) -> str:
    return "" if not accepted or word in accepted else sentence.format(" or ".join(accepted), word)


def _zero_points(scheme: Scheme, kind: str) -> str:
    offset, scales = getattr(scheme, "offset_format", None), getattr(scheme, "scale_format", None)
    if not kind or getattr(scheme, "symmetric", True):
        return ""
    if kind == "whole":
        return "" if offset is None else "zero points must be whole numbers"
    return "" if offset == scales else "zero points must be floating, in the format of the scales (-zfp16)"


def _symmetry(scheme: Scheme, required: bool | None, what: str) -> str:
    fits = required is None or bool(getattr(scheme, "symmetric", True)) == required
    return "" if fits else f"{what} must be {'symmetric' if required else 'asymmetric'}"

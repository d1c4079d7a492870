"""Families of number formats: how the names of their schemes are read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Generic, TypeVar

from workbench.errors import SchemeError, nearest
from workbench.numerics.element import Element
from workbench.numerics.formats.scaled import ScaledScheme, default_scale_format
from workbench.numerics.granularity import Granularity, PerBlock, PerChannel, PerGroup, PerTensor, PerToken
from workbench.numerics.scale_format import ScaleFormat, scale_format
from workbench.numerics.scheme import Scheme

S = TypeVar("S", bound=Scheme)
_GRANULARITY = re.compile(r"(?P<word>tensor|channel|token)|g(?P<size>\d{1,9})|b(?P<rows>\d{1,9})x(?P<columns>\d{1,9})")
_WORDS: dict[str, Granularity] = {"tensor": PerTensor(), "channel": PerChannel(), "token": PerToken()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledFamily:
    """The schemes of some elements, called ``<element>[-<granularity>][-asym[-z<format>]][-s<format>]``."""

    name: str
    title: str
    elements: tuple[Element, ...]
    examples: tuple[str, ...]

    def parse(self, name: str) -> Scheme | None:
        """Return the scheme called ``name`` (lower case), or None if its element is of another family."""
        for element in self.elements:
            if name == element.name or name.startswith(element.name + "-"):
                return self._parse_options(name, element)
        return None

    def _parse_options(self, name: str, element: Element) -> Scheme:
        parts = name[len(element.name) :].split("-")[1:]
        granularity: Granularity = PerChannel()
        match = _GRANULARITY.fullmatch(parts[0]) if parts else None
        if match:
            granularity = _granularity(match)
            parts = parts[1:]
        symmetric = parts[:1] != ["asym"]
        parts = parts if symmetric else parts[1:]
        offset, parts = _suffix("z", parts) if not symmetric else (None, parts)
        stored, parts = _suffix("s", parts)
        if parts:
            raise SchemeError(
                f"'-{'-'.join(parts)}' in {name!r} is not understood; expected "
                f"{element.name}[-tensor|-channel|-token|-g<N>|-b<R>x<C>][-asym[-zfp16|-zbf16|-zfp32]]"
                f"[-sfp16|-sbf16|-sfp32]"
                f"{nearest(name, self.examples)}"
            )
        return ScaledScheme(
            element=element, granularity=granularity, symmetric=symmetric, offset_format=offset,
            scale_format=stored or default_scale_format(granularity),
        )  # fmt: skip


def _granularity(match: re.Match[str]) -> Granularity:
    if match["word"]:
        return _WORDS[match["word"]]
    if match["size"]:
        return PerGroup(int(match["size"]))
    return PerBlock(int(match["rows"]), int(match["columns"]))


def _suffix(letter: str, parts: list[str]) -> tuple[ScaleFormat | None, list[str]]:
    """Return the format that the first part names after ``letter``, and the parts behind it."""
    match = scale_format(parts[0][1:]) if parts and parts[0].startswith(letter) else None
    return match, parts if match is None else parts[1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFamily(Generic[S]):
    """``schemes`` by name."""

    name: str
    title: str
    schemes: tuple[S, ...]

    @property
    def examples(self) -> tuple[str, ...]:
        """Every name of the family."""
        return tuple(scheme.name for scheme in self.schemes)

    def parse(self, name: str) -> S | None:
        """Return the scheme called ``name`` (lower case), or None."""
        return next((scheme for scheme in self.schemes if scheme.name == name), None)

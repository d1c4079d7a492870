"""The block formats of GGUF as data: sizes, where each bit lies, which value each code stands for.

Every block obeys ``value = scale * level[code] - minimum`` with one ``scale`` and ``minimum`` for each ``group``
elements; scale and minimum are products of what the block's header stores.  The layouts are those of llama.cpp's
``ggml-common.h``; the ``gguf`` package decodes them too.  numpy only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

HeaderKind = Literal["half", "half_minimum", "e8m0", "iq4", "k2", "k3", "k4", "k6"]
Rounding = Literal["up", "away", "even", "table"]
Fitting = Literal["absmax", "bounds", "e8m0", "iq4", "iq4_units", "k2", "k3", "k4", "k6"]


@dataclass(frozen=True, slots=True)
class Plane:
    """Some bits of every code, several codes to a byte.

    Byte ``offset + c * stride + l`` of a block holds, from its low end, ``bits`` bits (``shift`` and up) of the codes
    ``chunk * c + k * stride + l`` for ``k = 0, 1, ...`` with ``chunk = stride * (8 // bits)``.
    """

    offset: int
    shift: int
    bits: int
    stride: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block format.

    ``width`` elements in ``nbytes`` bytes; ``fields`` are the ``(offset, size)`` of the header's parts, in the order
    scale, minimum, sub-block scales; ``levels`` is the value of each code at scale 1, ``unused`` how many codes at
    either end encoding leaves out.  No ``planes`` means base-3 packing (TQ1_0).  ``rounding`` and ``fitting`` name how
    llama.cpp goes from a weight to a code and from weights to a header; ``fallback`` is what llama.cpp stores instead
    when a row's width is not a multiple of ``width``.  Bytes of codes are stored exclusive-or ``flip`` (Q8_0's two's
    complement).
    """

    name: str
    width: int
    nbytes: int
    group: int
    levels: tuple[float, ...]
    planes: tuple[Plane, ...]
    header: HeaderKind
    fields: tuple[tuple[int, int], ...]
    rounding: Rounding
    fitting: Fitting
    fallback: str = "fp16"
    flip: int = 0
    unused: tuple[int, int] = (0, 0)

    @property
    def ggml(self) -> str:
        """The member of ``GGMLQuantizationType``: ``Q4_0``, ``MXFP4``, ..."""
        return self.name.removesuffix("-gguf").upper()

    @property
    def codes(self) -> tuple[int, int]:
        """The first and the last code that encoding uses."""
        return self.unused[0], len(self.levels) - 1 - self.unused[1]

    @property
    def header_octets(self) -> int:
        """Bytes of the header's fields together."""
        return sum(size for _, size in self.fields)

    @property
    def groups(self) -> int:
        """Scales to a block."""
        return self.width // self.group

    @property
    def evenly_spaced(self) -> bool:
        """Whether ``level[code] = code + level[0]``."""
        return self.rounding != "table"

    def used_levels(self) -> np.ndarray:
        """Return the levels that encoding uses, ascending, float32."""
        first, last = self.codes
        return np.unique(np.array(self.levels[first : last + 1], np.float32))

    def ranked(self) -> tuple[np.ndarray, np.ndarray]:
        """Return ``edges`` float32 and ``codes`` uint8 so that the nearest code of ``t`` is ``codes[sum(edges <= t)]``.

        A tie goes to the larger value, in MXFP4 to the value nearer to zero, as in the reference encoders.
        """
        levels = self.used_levels()
        edges = ((levels[1:] + levels[:-1]) / 2).astype(np.float32)
        if self.fitting == "e8m0":
            edges = np.where(edges > 0, np.nextafter(edges, np.float32(np.inf)), edges).astype(np.float32)
        table = np.array(self.levels, np.float32)
        codes = [int(np.flatnonzero(table == level)[0]) for level in levels]
        return edges, np.array(codes, np.uint8)


_E2M1_DOUBLED = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0)
_IQ4_LEVELS = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


def _integers(first: int, count: int) -> tuple[float, ...]:
    return tuple(float(first + code) for code in range(count))


BLOCKS: tuple[Block, ...] = (
    Block(name="q4_0", width=32, nbytes=18, group=32, levels=_integers(-8, 16), planes=(Plane(2, 0, 4, 16),),
          header="half", fields=((0, 2),), rounding="up", fitting="absmax"),
    Block(name="q4_1", width=32, nbytes=20, group=32, levels=_integers(0, 16), planes=(Plane(4, 0, 4, 16),),
          header="half_minimum", fields=((0, 2), (2, 2)), rounding="up", fitting="bounds"),
    Block(name="q5_0", width=32, nbytes=22, group=32, levels=_integers(-16, 32),
          planes=(Plane(6, 0, 4, 16), Plane(2, 4, 1, 1)), header="half", fields=((0, 2),), rounding="up",
          fitting="absmax"),
    Block(name="q5_1", width=32, nbytes=24, group=32, levels=_integers(0, 32),
          planes=(Plane(8, 0, 4, 16), Plane(4, 4, 1, 1)), header="half_minimum", fields=((0, 2), (2, 2)),
          rounding="up", fitting="bounds"),
    Block(name="q8_0", width=32, nbytes=34, group=32, levels=_integers(-128, 256), planes=(Plane(2, 0, 8, 32),),
          header="half", fields=((0, 2),), rounding="away", fitting="absmax", flip=0x80, unused=(1, 0)),
    Block(name="q2_k", width=256, nbytes=84, group=16, levels=_integers(0, 4), planes=(Plane(16, 0, 2, 32),),
          header="k2", fields=((80, 2), (82, 2), (0, 16)), rounding="even", fitting="k2", fallback="iq4_nl"),
    Block(name="q3_k", width=256, nbytes=110, group=16, levels=_integers(-4, 8),
          planes=(Plane(32, 0, 2, 32), Plane(0, 2, 1, 32)), header="k3", fields=((108, 2), (96, 12)), rounding="even",
          fitting="k3", fallback="iq4_nl"),
    Block(name="q4_k", width=256, nbytes=144, group=32, levels=_integers(0, 16), planes=(Plane(16, 0, 4, 32),),
          header="k4", fields=((0, 2), (2, 2), (4, 12)), rounding="even", fitting="k4", fallback="q5_0"),
    Block(name="q5_k", width=256, nbytes=176, group=32, levels=_integers(0, 32),
          planes=(Plane(48, 0, 4, 32), Plane(16, 4, 1, 32)), header="k4", fields=((0, 2), (2, 2), (4, 12)),
          rounding="even", fitting="k4", fallback="q5_1"),
    Block(name="q6_k", width=256, nbytes=210, group=16, levels=_integers(-32, 64),
          planes=(Plane(0, 0, 4, 64), Plane(128, 4, 2, 32)), header="k6", fields=((208, 2), (192, 16)),
          rounding="even", fitting="k6", fallback="q8_0"),
    Block(name="iq4_nl", width=32, nbytes=18, group=32, levels=tuple(map(float, _IQ4_LEVELS)),
          planes=(Plane(2, 0, 4, 16),), header="half", fields=((0, 2),), rounding="table", fitting="iq4"),
    Block(name="iq4_xs", width=256, nbytes=136, group=32, levels=tuple(map(float, _IQ4_LEVELS)),
          planes=(Plane(8, 0, 4, 16),), header="iq4", fields=((0, 2), (2, 6)), rounding="table", fitting="iq4_units",
          fallback="iq4_nl"),
    Block(name="mxfp4-gguf", width=32, nbytes=17, group=32, levels=_E2M1_DOUBLED, planes=(Plane(1, 0, 4, 16),),
          header="e8m0", fields=((0, 1),), rounding="table", fitting="e8m0"),
    Block(name="tq1_0", width=256, nbytes=54, group=256, levels=_integers(-1, 3), planes=(), header="half",
          fields=((52, 2),), rounding="away", fitting="absmax", fallback="q4_0"),
    Block(name="tq2_0", width=256, nbytes=66, group=256, levels=_integers(-1, 4), planes=(Plane(0, 0, 2, 32),),
          header="half", fields=((64, 2),), rounding="away", fitting="absmax", fallback="q4_0", unused=(0, 1)),
)  # fmt: skip

"""llama.cpp's formats of one to three bits, whose codes stand for whole vectors out of a table: IQ1_S to IQ3_S.

    value = unit * (2 * code of the group + 1) * step * sign * table[entry]

Blocks are 256 weights: a float16 unit, four- or three-bit codes of groups of 16 or 32, and for every four or eight
weights an entry of a table; signs beside them (IQ1: in the table, shifted by an eighth).  The tables are those of the
package ``gguf``, which also decodes.  The search is :mod:`lattice_search`; its errors are
0.85 to 0.92 of llama.cpp's with the same importance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from workbench.errors import BackendUnavailableError, NonFiniteError, SchemeError
from workbench.numerics.bands import in_parallel, row_tiles
from workbench.numerics.formats.families import ListedFamily
from workbench.numerics.formats.gguf import family
from workbench.numerics.granularity import Granularity, PerGroup
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.scheme import BlockParameters, Parameters, Scheme

if TYPE_CHECKING:
    import torch

Array = Any
WIDTH = 256
FREE, EVEN, NONE = 2, 1, 0
"""How signs are stored: see :mod:`lattice_search`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lattice:
    """One format: ``nbytes`` a block, ``vector`` weights an entry, ``group`` weights a scale of ``largest + 1`` codes.

    ``table`` is the package's class that holds the vectors; ``shifted`` says that every group (32: IQ1_S) or vector
    (8: IQ1_M) adds or subtracts an eighth.
    """

    ggml: str
    nbytes: int
    vector: int
    group: int
    step: float
    signs: int
    largest: int = 15
    shifted: int = 0

    @property
    def halves(self) -> int:
        """How many parts of the table a group chooses between."""
        return 2 if self.shifted > self.vector else 1


LATTICES = (
    Lattice(ggml="IQ2_XXS", nbytes=66, vector=8, group=32, step=0.125, signs=EVEN),
    Lattice(ggml="IQ2_XS", nbytes=74, vector=8, group=16, step=0.125, signs=EVEN),
    Lattice(ggml="IQ2_S", nbytes=82, vector=8, group=16, step=0.125, signs=FREE),
    Lattice(ggml="IQ3_XXS", nbytes=98, vector=4, group=32, step=0.25, signs=EVEN),
    Lattice(ggml="IQ3_S", nbytes=110, vector=4, group=32, step=1.0, signs=FREE),
    Lattice(ggml="IQ1_S", nbytes=50, vector=8, group=32, step=1.0, signs=NONE, largest=7, shifted=32),
    Lattice(ggml="IQ1_M", nbytes=56, vector=8, group=16, step=1.0, signs=NONE, largest=7, shifted=8),
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """``grid`` float32 ``[vector, entries]``, and how an entry is found by its values: sorted ``keys`` (sums of values
    times ``radix``), ``order`` the entries."""

    grid: Array
    order: Array
    keys: Array
    radix: Array


@cache
def table(lattice: Lattice) -> Table:
    """Return the vectors of a format; BackendUnavailableError without the package ``gguf``."""
    kind = package(lattice.ggml)
    kind.init_grid()
    grid = np.asarray(kind.grid, np.float32).reshape(kind.grid_shape)
    if lattice.shifted:
        grid = np.concatenate([grid + np.float32(0.125), grid - np.float32(0.125)])
    grid = np.ascontiguousarray((grid * np.float32(lattice.step)).T)
    radix = 512.0 ** np.arange(lattice.vector) if lattice.vector == 4 else 61.0 ** np.arange(lattice.vector)
    keys = radix @ grid.astype(np.float64)
    order = keys.argsort()
    return Table(grid, order.astype(np.int64), keys[order], radix)


def package(ggml: str) -> Any:
    """Return the class of the package ``gguf`` that decodes a type; BackendUnavailableError."""
    try:
        from gguf import quants
    except ImportError:
        raise BackendUnavailableError(
            f"{ggml.lower()} takes its tables from the package gguf; install it: pip install "
            "'quantization-workbench[gguf]'"
        ) from None
    return getattr(quants, ggml)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatticeParameters(BlockParameters):
    """``scale`` float32 ``[rows, groups]`` is ``unit * (2 * code + 1)``, of which the float16 ``unit``
    ``[rows, blocks]`` and the ``codes`` uint8 ``[rows, groups]`` are stored; ``importance`` float32 ``[1 or rows,
    columns]`` (None: all alike) weighs the errors by which entries are chosen."""

    unit: torch.Tensor
    codes: torch.Tensor
    importance: torch.Tensor | None
    owner: str

    def columns(self, start: int, stop: int) -> LatticeParameters:
        """Return whole blocks; SchemeError for single columns, which no entry of a table stands for."""
        if start % WIDTH or (stop % WIDTH and stop < self.scale.shape[1] * self.width):
            raise SchemeError(
                f"{self.owner} rounds whole vectors of weights, and this algorithm goes column by column; choose "
                "rtn-weighted"
            )
        groups, blocks = slice(start // self.width, -(-stop // self.width)), slice(start // WIDTH, -(-stop // WIDTH))
        some = None if self.importance is None else self.importance[:, start:stop]
        return replace(
            self, scale=self.scale[:, groups], codes=self.codes[:, groups], unit=self.unit[:, blocks], importance=some
        )

    def joined(self, others: Sequence[Parameters]) -> LatticeParameters:
        import torch

        parts: list[Any] = [self, *others]

        def join(name: str) -> Any:
            return torch.cat([getattr(part, name) for part in parts], dim=1)

        some = None if any(part.importance is None for part in parts) else join("importance")
        return replace(self, scale=join("scale"), codes=join("codes"), unit=join("unit"), importance=some)


@dataclass(frozen=True, slots=True)
class LatticeScheme(Scheme):
    """One of the formats."""

    family: ClassVar[str] = "gguf-lattice"
    lattice: Lattice

    @property
    def name(self) -> str:
        return self.lattice.ggml.lower()

    @property
    def ggml_type(self) -> str:
        """The member of ``GGMLQuantizationType``."""
        return self.lattice.ggml

    @property
    def is_quick(self) -> bool:
        """No: every vector is compared with the whole table, 2 (IQ2_XXS) to 26 microseconds a weight (IQ1_S)."""
        return False

    @property
    def granularity(self) -> Granularity:
        return PerGroup(WIDTH)

    def fallback(self, shape: tuple[int, int]) -> Scheme:
        """Return what llama.cpp's quantizer takes where rows are not whole blocks: iq4_nl, or fp16."""
        return self if shape[1] % WIDTH == 0 else family.FAMILY.ggml("IQ4_NL").fallback(shape)

    def bits(self, shape: tuple[int, int]) -> int:
        return 8 * self.lattice.nbytes * shape[0] * -(-shape[1] // WIDTH)

    def fit(
        self, weight: torch.Tensor, importance: torch.Tensor | None = None, *, clip_search: bool = False
    ) -> LatticeParameters:
        """Choose units and scales by the least weighted error; ``clip_search`` changes nothing.

        The error of a weight counts its ``importance``, as in the loss that is predicted; llama.cpp's counts also the
        weight's own size, which leaves 1 to 5 % more.  Raises NonFiniteError, BackendUnavailableError.
        """
        import torch

        from workbench.numerics.formats.gguf import lattice_search

        rows, columns = self.matrix_shape(weight)
        lattice, known = self.lattice, table(self.lattice)
        blocks = -(-columns // WIDTH)
        groups = blocks * WIDTH // lattice.group
        unit, codes = np.zeros((rows, blocks), np.float32), np.zeros((rows, groups), np.uint8)
        spread = None
        if importance is not None:
            alike = importance.dim() < 2 or importance.shape[0] == 1
            spread = importance.detach().to("cpu", torch.float32).expand(1 if alike else rows, columns)

        def band(part: slice) -> None:
            x, w = self._blocks(weight, spread, part)
            own, numbers = unit[part].reshape(-1), codes[part].reshape(-1, WIDTH // lattice.group)
            lattice_search.fit(
                x, w, known.grid, lattice.halves, lattice.signs, lattice.group, lattice.largest, own, numbers
            )
            unit[part], codes[part] = own.reshape(unit[part].shape), numbers.reshape(codes[part].shape)

        in_parallel(band, row_tiles(rows, max(columns, 1)))
        unit = np.minimum(unit, np.float32(65504)).astype(np.float16).astype(np.float32)
        scale = unit.repeat(WIDTH // lattice.group, axis=1) * (2 * codes.astype(np.float32) + 1)
        return LatticeParameters(
            scale=torch.from_numpy(scale), zero_point=None, width=lattice.group, block=WIDTH, owner=self.name,
            unit=torch.from_numpy(unit), codes=torch.from_numpy(codes), importance=spread,
        ).on(weight.device)  # type: ignore[return-value]  # fmt: skip

    def round(self, weight: torch.Tensor, parameters: Parameters) -> torch.Tensor:
        """Return what decoding the encoded ``weight`` gives, float32, bit for bit; whole blocks only."""
        return self.decode(self.encode(weight, parameters)).to(weight.device)

    def encode(self, weight: torch.Tensor, parameters: Parameters) -> QuantizedTensor:
        """Return ``blocks`` uint8 ``[rows, bytes]`` as a GGUF file holds them."""
        from workbench.numerics.formats.gguf import lattice_search
        from workbench.numerics.formats.gguf.lattice_bytes import pack

        if not isinstance(parameters, LatticeParameters) or parameters.owner != self.name:
            raise SchemeError(f"{self.name} rounds with the parameters of its own fit; got those of another scheme")
        rows, columns = self.matrix_shape(weight)
        lattice, known, blocks = self.lattice, table(self.lattice), -(-columns // WIDTH)
        if tuple(parameters.unit.shape) != (rows, blocks):
            raise SchemeError(
                f"a {rows} x {columns} matrix in {self.name} needs the units of {rows} x {blocks} blocks; the "
                f"parameters hold {tuple(parameters.unit.shape)}. Fit whole blocks of {WIDTH} columns"
            )
        scale, unit, codes = (each.cpu().numpy() for each in (parameters.scale, parameters.unit, parameters.codes))
        spread = None if parameters.importance is None else parameters.importance.cpu()
        out = np.empty((rows, blocks * lattice.nbytes), np.uint8)

        def band(part: slice) -> None:
            x, w = self._blocks(weight, spread, part)
            entries = np.empty((len(x), WIDTH // lattice.vector), np.int32)
            bits = np.empty((len(x), WIDTH // 8), np.uint8)
            lattice_search.choose(
                x, w, scale[part].reshape(-1, WIDTH // lattice.group), known.grid, lattice.halves, lattice.signs,
                known.order, known.keys, known.radix, entries, bits,
            )  # fmt: skip
            own = codes[part].reshape(-1, WIDTH // lattice.group)
            out[part] = pack(lattice.ggml, unit[part].reshape(-1), own, entries, bits).reshape(out[part].shape)

        in_parallel(band, row_tiles(rows, max(columns, 1)))
        return QuantizedTensor(scheme=self.name, shape=(rows, columns), arrays={"blocks": out})

    def decode(self, stored: QuantizedTensor) -> torch.Tensor:
        """Return the float32 matrix, decoded by the package gguf; SchemeError for another number of bytes."""
        import torch

        rows, columns = stored.shape
        blocks = stored.arrays["blocks"]
        if blocks.dtype != np.uint8 or 8 * blocks.size != self.bits(stored.shape):
            raise SchemeError(
                f"a {rows} x {columns} matrix in {self.name} takes {self.bits(stored.shape) // 8} bytes; got "
                f"{blocks.size} of {blocks.dtype}"
            )
        kind, out = package(self.lattice.ggml), torch.empty(rows, columns)
        count = -(-columns // WIDTH)
        blocks = blocks.reshape(rows, count * self.lattice.nbytes)
        for part in row_tiles(rows, max(columns, 1)):
            whole = np.ascontiguousarray(blocks[part]).reshape(-1, self.lattice.nbytes)
            if not whole.size:  # the package takes no blocks at all for an error
                continue
            kind.init_grid()
            values = kind.dequantize_blocks(whole).reshape(part.stop - part.start, count * WIDTH)
            out[part] = torch.from_numpy(np.asarray(values[:, :columns], np.float32))
        return out

    def _blocks(self, weight: torch.Tensor, spread: torch.Tensor | None, part: slice) -> tuple[Array, Array]:
        """Return a band's weights and error weights, float32 ``[n, 256]``; NonFiniteError."""
        import torch

        rows, columns = part.stop - part.start, weight.shape[1]
        x = weight[part].detach().to("cpu", torch.float32)
        some = torch.ones(1, 1) if spread is None else spread[part] if spread.shape[0] > 1 else spread
        padded = [torch.nn.functional.pad(each.expand(rows, columns), (0, -columns % WIDTH)) for each in (x, some)]
        values, importance = (each.contiguous().numpy().reshape(-1, WIDTH) for each in padded)
        if not np.isfinite(values).all():
            raise NonFiniteError(f"{self.name} has no code for NaN and infinite values, and the matrix holds some")
        most = np.float32(65504 * (2 * self.lattice.largest + 1)) * np.abs(table(self.lattice).grid).max()
        values = values if np.abs(values).max(initial=0) <= most else np.clip(values, -most, most)
        return values, importance


FAMILY: ListedFamily[LatticeScheme] = ListedFamily(
    name="gguf-lattice", title="GGUF vectors", schemes=tuple(LatticeScheme(lattice) for lattice in LATTICES)
)

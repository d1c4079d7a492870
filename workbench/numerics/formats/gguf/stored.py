"""GGUF types that are read and not made here: weights that a file holds in them keep them, others cannot get them.

The package ``gguf`` decodes them, but for Q1_0, which it knows by its size alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NoReturn

import numpy as np

from workbench.errors import BackendUnavailableError, SchemeError
from workbench.numerics.bands import row_tiles
from workbench.numerics.formats.families import ListedFamily
from workbench.numerics.granularity import Granularity, PerGroup
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.scheme import Parameters, Scheme

if TYPE_CHECKING:
    import torch

SIZES = {"NVFP4": (64, 36), "Q1_0": (128, 18)}
"""Weights and bytes of a block."""


@dataclass(frozen=True, slots=True)
class StoredScheme(Scheme):
    """A block format that only a file has: it can be decoded and counted, not fitted."""

    family: ClassVar[str] = "gguf-stored"
    ggml_type: str

    @property
    def name(self) -> str:
        return self.ggml_type.lower() + ("-gguf" if self.ggml_type == "NVFP4" else "")

    @property
    def granularity(self) -> Granularity:
        return PerGroup(SIZES[self.ggml_type][0])

    def bits(self, shape: tuple[int, int]) -> int:
        width, block_bytes = SIZES[self.ggml_type]
        return 8 * block_bytes * shape[0] * -(-shape[1] // width)

    def fit(
        self, weight: torch.Tensor, importance: torch.Tensor | None = None, *, clip_search: bool = False
    ) -> Parameters:
        self._refuse()

    def fit_range(self, low: float, high: float) -> Parameters:
        self._refuse()

    def round(self, weight: torch.Tensor, parameters: Parameters) -> torch.Tensor:
        self._refuse()

    def encode(self, weight: torch.Tensor, parameters: Parameters) -> QuantizedTensor:
        self._refuse()

    def decode(self, stored: QuantizedTensor) -> torch.Tensor:
        """Return the float32 matrix; raises SchemeError for too few bytes, BackendUnavailableError without gguf."""
        import torch

        rows, columns = stored.shape
        blocks = stored.arrays["blocks"].reshape(rows, -1)
        if 8 * blocks.size != self.bits(stored.shape):
            raise SchemeError(f"a {rows} x {columns} matrix in {self.name} has {blocks.size} bytes; it may be damaged")
        decode = decoder(self.ggml_type)
        out = torch.empty(rows, columns)
        for part in row_tiles(rows, columns):
            out[part] = torch.from_numpy(decode(np.ascontiguousarray(blocks[part])).reshape(-1, columns))
        return out

    def _refuse(self) -> NoReturn:
        raise SchemeError(
            f"{self.name} is only read: weights that a GGUF file holds in it keep it as they are; choose another "
            "format, such as iq4_xs, q2_k or q3_k, for others"
        )


def _signs(blocks: np.ndarray) -> np.ndarray:
    """Return what Q1_0 stores: a float16 scale, then 128 bits from the low end of each byte, 1 for + and 0 for -."""
    rows, blocks = len(blocks), blocks.reshape(-1, SIZES["Q1_0"][1])
    scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    return np.where(np.unpackbits(blocks[:, 2:], axis=1, bitorder="little"), scale, -scale).reshape(rows, -1)


def decoder(ggml_type: str) -> Callable[[np.ndarray], np.ndarray]:
    """Return what decodes whole rows of a type's blocks, uint8 ``[rows, bytes]``, to float32 ``[rows, columns]``.

    It is the package gguf's where that has one; raises BackendUnavailableError without the package.
    """
    if ggml_type == "Q1_0":
        return _signs
    try:
        import gguf
    except ImportError:
        raise BackendUnavailableError(
            f"{ggml_type} is decoded by the package gguf; install it: pip install 'quantization-workbench[gguf]'"
        ) from None
    return partial(gguf.quants.dequantize, qtype=gguf.GGMLQuantizationType[ggml_type])


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFamily(ListedFamily[StoredScheme]):
    """The schemes by name; none is offered for weights that do not have it already."""

    @property
    def examples(self) -> tuple[str, ...]:
        return ()


FAMILY = StoredFamily(name="gguf-stored", title="GGUF, read only", schemes=tuple(map(StoredScheme, SIZES)))

"""GGUF types that are read and not made here: weights that a file holds in them keep them, others cannot get them.

The package ``gguf`` decodes them.
"""

from __future__ import annotations

from dataclasses import dataclass
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

SIZES = {"NVFP4": (64, 36)}
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
        """Return the float32 matrix, decoded by the package gguf."""
        import torch

        try:
            import gguf
        except ImportError:
            raise BackendUnavailableError(
                f"{self.name} is decoded by the package gguf; install it: pip install 'quantization-workbench[gguf]'"
            ) from None
        rows, columns = stored.shape
        blocks = stored.arrays["blocks"].reshape(rows, -1)
        if 8 * blocks.size != self.bits(stored.shape):
            raise SchemeError(f"a {rows} x {columns} matrix in {self.name} has {blocks.size} bytes; it may be damaged")
        out = torch.empty(rows, columns)
        for part in row_tiles(rows, columns):
            kind = gguf.GGMLQuantizationType[self.ggml_type]
            values = gguf.quants.dequantize(np.ascontiguousarray(blocks[part]), kind)
            out[part] = torch.from_numpy(values.reshape(-1, columns))
        return out

    def _refuse(self) -> NoReturn:
        raise SchemeError(
            f"{self.name} is only read: weights that a GGUF file holds in it keep it as they are; choose another "
            "format, such as iq4_xs, q2_k or q3_k, for others"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFamily(ListedFamily[StoredScheme]):
    """The schemes by name; none is offered for weights that do not have it already."""

    @property
    def examples(self) -> tuple[str, ...]:
        return ()


FAMILY = StoredFamily(name="gguf-stored", title="GGUF, read only", schemes=tuple(map(StoredScheme, SIZES)))

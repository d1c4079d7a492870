"""What every kind of quantized checkpoint is read into."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from workbench.errors import NotAModelError, first_line
from workbench.models.layer import StoredTensor
from workbench.models.sources.stored import TensorStore
from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.scaled import ScaledScheme
from workbench.numerics.packing import pack
from workbench.numerics.quantized_tensor import QuantizedTensor

Config = Mapping[str, Any]
"""The member ``quantization_config`` of config.json."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PackedWeight:
    """A weight that several tensors of a file stand for.

    ``shape`` is as the network has it; ``axes`` put the axes of the outputs first, as in
    :class:`workbench.models.layer.Layer` (empty: they are in order), and number those of ``view`` where that is not
    ``shape``.  ``load`` returns it as a matrix of outputs x inputs.  ``scheme`` is None for one that no scheme of ours
    describes (columns in another order): ``values`` then returns it in float32.  ``inputs`` is the scheme of the
    layer's inputs, ``input_range`` what static ones are clipped to, ``dropped`` what the file says of them and no plan
    can say.
    """

    parts: tuple[str, ...]
    shape: tuple[int, ...]
    scheme: str | None
    load: Callable[[], QuantizedTensor] | None = None
    values: Callable[[], torch.Tensor] | None = None
    axes: tuple[int, ...] = ()
    view: tuple[int, ...] = ()
    inputs: str | None = None
    input_range: tuple[float, float] | None = None
    dropped: str = ""

    def facts(self, name: str) -> StoredTensor:
        """Return what is known of the weight under ``name``, as a loader has it."""
        return StoredTensor(name=name, dtype="float32", shape=self.shape)

    def stored(self) -> QuantizedTensor | None:
        """Return the codes, None for a weight without a scheme; NotAModelError where its tensors do not fit together.

        Decoders are compiled and trust the sizes of what they read.
        """
        if self.load is None:
            return None
        try:
            stored = self.load()
            scheme = parse_scheme(stored.scheme)
            if isinstance(scheme, ScaledScheme):
                scheme.require_arrays(stored)
        except (RuntimeError, ValueError, IndexError, KeyError) as error:
            raise NotAModelError(f"{self.parts[0]} cannot be read as {self.scheme}: {first_line(error)}") from error
        bits = scheme.bits(stored.shape)
        if 8 * stored.nbytes != bits or math.prod(stored.shape) != math.prod(self.shape):
            raise NotAModelError(
                f"{self.parts[0]} and the tensors beside it take {stored.nbytes} bytes, {self.scheme} of "
                f"{stored.shape} takes {bits // 8}; fetch the checkpoint again"
            )
        return stored

    def tensor(self) -> torch.Tensor:
        """Return the weight in float32, in ``shape``; NotAModelError as :meth:`stored` does."""
        stored = self.stored()
        if stored is None:
            assert self.values is not None
            try:
                return self.values().reshape(self.shape)
            except (RuntimeError, ValueError, IndexError, KeyError) as error:
                raise NotAModelError(f"{self.parts[0]} cannot be read: {first_line(error)}") from error
        matrix = parse_scheme(stored.scheme).decode(stored)
        if not self.axes:
            return matrix.reshape(self.shape)
        back, view = sorted(range(len(self.axes)), key=self.axes.__getitem__), self.view or self.shape
        return matrix.reshape([view[axis] for axis in self.axes]).permute(back).reshape(self.shape).contiguous()


Packed = Mapping[str, PackedWeight]
"""Weights by the name that the network gives them (``model.layers.0.mlp.up_proj.weight``)."""

Names = Callable[[str], str]
"""What a network calls a module of the checkpoint, which config.json may name so."""


class Reader(Protocol):
    """A kind of quantized checkpoint."""

    def __call__(self, store: TensorStore, config: Config, names: Names) -> Packed:
        """Return the packed weights of ``store``; NotAModelError for what is not read yet."""


def modules_with(store: TensorStore, part: str) -> list[str]:
    """Return the paths of the modules that hold a tensor called ``part``, in order."""
    ending = f".{part}"
    return [name.removesuffix(ending) for name in store.tensors if name.endswith(ending)]


def array(tensor: torch.Tensor) -> np.ndarray:
    """Return a tensor's numbers, those of bfloat16 and float8 as bit patterns."""
    tensor = tensor.detach().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.uint16).numpy()
    if tensor.is_floating_point() and tensor.itemsize == 1:
        return tensor.view(torch.uint8).numpy()
    values: np.ndarray = tensor.numpy()
    return values


def integers(
    scheme: str, codes: np.ndarray, shape: tuple[int, int], scales: torch.Tensor, shifts: torch.Tensor | None
) -> QuantizedTensor:
    """Return integers from packed unsigned ``codes``, ``scales`` and unsigned ``shifts``, ``[bands, groups]`` each."""
    arrays = {"codes": np.ascontiguousarray(codes), "scales": array(scales)}
    if shifts is not None:
        bits = int(getattr(parse_scheme(scheme), "element").bits)  # noqa: B009
        arrays["zero_points"] = pack(shifts.to(torch.uint8).reshape(1, -1), bits).reshape(-1).numpy()
    return QuantizedTensor(scheme=scheme, shape=shape, arrays=arrays)


def words_as_rows(words: torch.Tensor, bits: int, columns: int) -> np.ndarray:
    """Return rows of int32 words, streams of bits from the least significant on, as rows of packed bytes."""
    raw: np.ndarray = words.contiguous().view(torch.uint8).numpy()
    return raw[:, : -(-columns * bits // 8)]


STORED = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32"}


def named(element: str, granularity: str, dtype: torch.dtype, *, symmetric: bool = True) -> str:
    """Return the canonical name of the scheme with scales of ``dtype``."""
    return parse_scheme(f"{element}-{granularity}{'' if symmetric else '-asym'}-s{STORED[dtype]}").name


def with_offsets(element: str, granularity: str, dtype: torch.dtype) -> str:
    """Return the canonical name of the scheme with scales of ``dtype`` and float32 offsets."""
    return parse_scheme(f"{element}-{granularity}-asym-zfp32-s{STORED[dtype]}").name

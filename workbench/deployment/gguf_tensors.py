"""The tensors of a quantized model as a GGUF file holds them, and why some plans do not fit into one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.deployment.tensors import require_that_all_fit
from workbench.memory import let_go
from workbench.models.checkpoints.experts import rows_of as matrix_rows
from workbench.models.dtypes import FLOATING
from workbench.models.gguf.architectures import Architecture
from workbench.models.gguf.rotary import rotary_factors
from workbench.models.gguf.tensors import gguf_names, is_float32_only, is_unused, library, names_of, row_order, rows_of
from workbench.models.layer import Layer, LayerKind, StoredTensor
from workbench.models.summary import ModelSummary
from workbench.numerics.bands import row_tiles
from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.cast import CastScheme
from workbench.numerics.formats.gguf.family import GgufScheme
from workbench.numerics.formats.gguf.lattice import WIDTH, LatticeScheme

if TYPE_CHECKING:
    import torch

    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel

BAND = 1 << 20
"""Weights that are written or compared at a time: 4 MB in float32."""

CASTS = {"fp32": "F32", "fp16": "F16", "bf16": "BF16"}
WIDENED = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F16", "float8_e5m2": "F16"}
"""The GGUF type that holds every value of a stored dtype."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileTensor:
    """One tensor of the file.

    ``type`` is the name of its GGML type, ``shape`` rows first, ``source`` the parameter's name in the network.  Seen
    as a matrix of as many ``rows`` as its last axis allows (one for a vector), ``data`` returns the bytes of some rows
    (uint8), ``values`` what was evaluated there (``[rows, columns]``, in float32 or as the model stores it).
    """

    name: str
    type: str
    shape: tuple[int, ...]
    nbytes: int
    data: Callable[[slice], np.ndarray]
    values: Callable[[slice], torch.Tensor]
    source: str

    @property
    def rows(self) -> int:
        """Rows of the matrix; 1 for a vector."""
        return math.prod(self.shape[:-1])

    def bands(self) -> Iterator[slice]:
        """Yield the rows a piece at a time, as they are written and compared."""
        return row_tiles(self.rows, math.prod(self.shape[-1:]), elements=BAND)


def refusals(
    summary: ModelSummary, schemes: Mapping[str, str], architecture: Architecture, blocks: int
) -> dict[str, str]:
    """Return why a file of ``architecture`` cannot hold each layer in its scheme; ``schemes`` has no kept layers.

    No weights are read.
    """
    names = gguf_names(architecture, blocks)
    reasons = {}
    for layer in summary.stored:
        parameters = names_of(names, layer.parameter)
        reason = layer_refusal(layer, schemes.get(layer.name), parameters[0] if parameters else None)
        if reason is not None and not is_unused(layer.parameter):
            reasons[layer.name] = reason
    for tensor in summary.others:
        if tensor.dtype in FLOATING and names(tensor.name) is None and not is_unused(tensor.name):
            reasons[tensor.name] = "llama.cpp has no tensor for it in this architecture"
        elif 0 in tensor.shape and names(tensor.name) is not None:
            reasons[tensor.name] = _empty(tensor.shape)
    return reasons


def _empty(shape: tuple[int, ...]) -> str:
    return f"it is empty ({' x '.join(map(str, shape))}), and llama.cpp reads no empty tensors"


def layer_refusal(layer: Layer, scheme: str | None, name: str | None) -> str | None:
    """Return why the tensor ``name`` of a file cannot hold a layer in ``scheme`` (None: as it is), None if it can."""
    if name is None:
        return "llama.cpp has no tensor for it in this architecture"
    if 0 in layer.matrix:
        return _empty(layer.matrix)
    if scheme is None:
        return None if layer.dtype in WIDENED else f"GGUF holds no {layer.dtype} that llama.cpp reads; give it fp32"
    chosen = parse_scheme(scheme)
    if is_float32_only(name) and scheme != "fp32":
        return f"llama.cpp reads {name} in float32 alone; keep it, or give it fp32"
    if isinstance(chosen, CastScheme):
        return None
    if not isinstance(chosen, GgufScheme | LatticeScheme):
        types = "q4_0 to q8_0, q2_k to q6_k, iq1_s to iq4_xs, mxfp4-gguf, fp16, ..."
        return f"{scheme} is not a GGUF type; the types are {types}"
    instead, width = chosen.fallback(layer.matrix), chosen.block.width if isinstance(chosen, GgufScheme) else WIDTH
    if instead is not chosen:
        return (
            f"{scheme} stores blocks of {width} and its rows have {layer.matrix[1]} weights; "
            f"llama.cpp's quantizer takes {instead.name} there"
        )
    return None


def file_type(layer: Layer, scheme: str | None, name: str) -> str:
    """Return the GGML type of a layer that :func:`refusals` has nothing against."""
    if is_float32_only(name):
        return "F32"
    if scheme is None:
        return WIDENED[layer.dtype]
    chosen = parse_scheme(scheme)
    return chosen.ggml_type if isinstance(chosen, GgufScheme | LatticeScheme) else CASTS[chosen.name]


def file_tensors(
    quantized: QuantizedModel, model: Model, architecture: Architecture, config: Mapping[str, Any], blocks: int
) -> Iterator[FileTensor]:
    """Yield every tensor of the file, in the order of the network; the plan fits (see :func:`refusals`)."""
    names = gguf_names(architecture, blocks)
    for layer in model.summary.stored:
        order = row_order(architecture, config, layer.parameter)
        yield from layer_tensors(quantized, model, layer, names_of(names, layer.parameter), order)
    for tensor in model.summary.others:
        vector = names(tensor.name)
        if vector is not None:
            order = row_order(architecture, config, tensor.name)
            yield vector_tensor(quantized, model, architecture, tensor, vector, order)
    for name, factors in (rotary_factors(config) if architecture.ropes else {}).items():
        yield constant(name, np.array(factors, np.float32))


def layer_tensors(
    quantized: QuantizedModel, model: Model, layer: Layer, names: Sequence[str], order: np.ndarray | None
) -> Iterator[FileTensor]:
    """Yield a layer's tensors: one with its rows in ``order`` (None: its own), or those of fused experts."""
    experts = layer.viewed[0] if len(layer.viewed) > 2 else 1
    for place, name in enumerate(names):
        piece = rows_of(experts, layer.matrix[0] // experts, len(names), place)
        yield _matrix_tensor(quantized, model, layer, name, order if piece is None else piece)


def _matrix_tensor(
    quantized: QuantizedModel, model: Model, layer: Layer, name: str, order: np.ndarray | None
) -> FileTensor:
    """Return a layer's weight in the type that it was quantized to: the rows ``order`` of it, None for all."""
    stored = quantized.tensors.get(layer.name)
    kind = file_type(layer, None if stored is None else stored.scheme, name)

    def own(part: slice) -> torch.Tensor:
        weight = model.held_weight(layer.name)  # which converts nothing, as a piece's asking for all would
        rows = weight[part].clone() if order is None else _ordered(weight, order[part])
        let_go(weight[part])
        return rows

    def values(part: slice) -> torch.Tensor:
        if stored is None:
            return own(part)
        return parse_scheme(stored.scheme).decode(matrix_rows(stored, part if order is None else order[part]))

    def data(part: slice) -> np.ndarray:
        if stored is not None and "blocks" in stored.arrays:
            return matrix_rows(stored, part if order is None else order[part]).arrays["blocks"].reshape(-1)
        return plain(values(part), kind)

    rows, columns = layer.matrix[0] if order is None else len(order), layer.matrix[1]
    shape = (rows, columns) if layer.kind is not LayerKind.EXPERTS else (layer.experts, rows // layer.experts, columns)
    return FileTensor(
        name=name, type=kind, shape=shape, nbytes=nbytes(kind, shape), values=values, source=layer.parameter,
        data=data,
    )  # fmt: skip


def vector_tensor(
    quantized: QuantizedModel, model: Model, architecture: Architecture, tensor: StoredTensor, name: str,
    order: np.ndarray | None,
) -> FileTensor:  # fmt: skip
    """Return a norm or a bias: float32, which is what llama.cpp computes with."""
    shift = architecture.shifted_norms and name.endswith("norm.weight")

    def values() -> torch.Tensor:
        own = model.other(tensor.name)
        own = quantized.others.get(tensor.name, own).to(own.dtype).float()
        return _ordered(own + 1 if shift else own, order)

    return plain_tensor(name, tensor.shape, values, tensor.name)


def constant(name: str, values: np.ndarray) -> FileTensor:
    """Return a float32 tensor that follows from the configuration."""
    import torch

    tensor = torch.from_numpy(values)
    return plain_tensor(name, values.shape, lambda: tensor, "")


def plain_tensor(name: str, shape: tuple[int, ...], values: Callable[[], torch.Tensor], source: str) -> FileTensor:
    """Return a small tensor in float32."""

    def rows(part: slice) -> torch.Tensor:
        return values().reshape(-1, *shape[-1:])[part]

    return FileTensor(
        name=name, type="F32", shape=shape, nbytes=nbytes("F32", shape), values=rows, source=source,
        data=lambda part: plain(rows(part), "F32"),
    )  # fmt: skip


def _ordered(values: torch.Tensor, order: np.ndarray | None) -> torch.Tensor:
    import torch

    return values if order is None else values[torch.from_numpy(order)]


def plain(values: torch.Tensor, kind: str) -> np.ndarray:
    """Return the bytes of ``values``, which ``kind`` (F32, F16, BF16) holds exactly."""
    import torch

    dtype = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}[kind]
    flat = values.detach().to(dtype).contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy() if flat.numel() else np.zeros(0, np.uint8)


def nbytes(kind: str, shape: tuple[int, ...]) -> int:
    """Return the bytes of a tensor of the GGML type ``kind`` whose rows are whole blocks."""
    gguf = library()
    width, block_bytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    return math.prod(shape) // int(width) * int(block_bytes)


def require_fit(reasons: Mapping[str, str]) -> None:
    """Raise ExportError that names every layer that does not fit, by reason."""
    require_that_all_fit(reasons, "a GGUF file", "gguf")

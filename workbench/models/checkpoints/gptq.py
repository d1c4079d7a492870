"""GPTQ and AWQ checkpoints: int32 words along the inputs (GPTQ) or the outputs (AWQ), zero points along the outputs.

Layouts: AutoGPTQ and GPTQModel (see ``deployment/checkpoints/gptq``), AutoAWQ's ``gemm``: ``qweight`` int32
``[inputs, outputs / 8]`` whose eight 4-bit codes of a word are those of outputs 0, 2, 4, 6, 1, 3, 5, 7, ``qzeros``
likewise ``[groups, outputs / 8]``, ``scales`` float16 ``[groups, outputs]``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from workbench.errors import NotAModelError
from workbench.models.checkpoints.packed import (
    Config,
    Names,
    Packed,
    PackedWeight,
    integers,
    modules_with,
    named,
    words_as_rows,
)
from workbench.models.sources.stored import TensorStore
from workbench.numerics.packing import pack, unpack
from workbench.numerics.quantized_tensor import QuantizedTensor

WIDTHS = (2, 3, 4, 8)  # codes of other widths lie in planes
AWQ_ORDER = (0, 4, 1, 5, 2, 6, 3, 7)
"""The place in a word of the code of each output."""


def read_gptq(store: TensorStore, config: Config, names: Names) -> Packed:
    """Return the packed weights; those whose columns are in another order (``desc_act``) have values and no scheme."""
    layout = str(config.get("checkpoint_format", "gptq"))
    plus_one = layout == "gptq"
    packed = {}
    for module in modules_with(store, "qweight"):
        parts = _parts(store, module, ("qweight", "qzeros", "scales"), ("g_idx",))
        words, rows = store.tensors[parts[0]].shape
        groups = _groups(store, module, parts)
        bits = _whole(32 * store.tensors[parts[1]].shape[1], rows, module)
        if bits not in WIDTHS or layout not in ("gptq", "gptq_v2"):
            known = f"those of {WIDTHS} bits in gptq and gptq_v2 are read"
            raise NotAModelError(f"{module} has GPTQ codes of {bits} bits in the format {layout[:40]}; {known}")
        columns = _whole(32 * words, bits, module)
        index = store.read(parts[3]).long() if len(parts) > 3 else None
        width = _width(groups, columns, config) if index is None else int((index == 0).sum())
        shifts = _gptq_shifts(store, parts[1], rows, bits, plus_one)
        symmetric = bool((shifts == 2 ** (bits - 1)).all())
        if index is None or (width and torch.equal(index, torch.arange(columns) // width)):
            granularity = _granularity(groups, columns, width, config)
            scheme = named(f"int{bits}", granularity, _dtype(store, parts[2]), symmetric=symmetric)
            load = partial(_gptq_weight, store, parts, (rows, columns), scheme, plus_one, symmetric)
            packed[f"{module}.weight"] = PackedWeight(parts=parts, shape=(rows, columns), scheme=scheme, load=load)
        else:
            values = partial(_gptq_values, store, parts, (rows, columns, bits), index, shifts)
            packed[f"{module}.weight"] = PackedWeight(parts=parts, shape=(rows, columns), scheme=None, values=values)
    return packed


def _gptq_shifts(store: TensorStore, name: str, rows: int, bits: int, plus_one: bool) -> torch.Tensor:
    """Return zero points, int64 ``[outputs, groups]``; the 1 that the format ``gptq`` lacks is added as GPTQModel
    takes it away: to whole words, where it carries, and to each code of 3 bits by itself."""
    words = store.read(name)
    if plus_one and bits != 3:
        words = words + sum(1 << place for place in range(0, 32, bits))
    shifts = unpack(words_as_rows(words, bits, rows), rows, bits).T.long()
    return (shifts + 1) % 8 if plus_one and bits == 3 else shifts


def _gptq_weight(
    store: TensorStore, parts: tuple[str, ...], shape: tuple[int, int], scheme: str, plus_one: bool, symmetric: bool
) -> QuantizedTensor:
    words, scales = store.read(parts[0]).T, store.read(parts[2]).T.contiguous()
    bits = words.shape[1] * 32 // shape[1]
    shifts = None if symmetric else _gptq_shifts(store, parts[1], shape[0], bits, plus_one).contiguous()
    return integers(scheme, words_as_rows(words, bits, shape[1]), shape, scales, shifts)


def _gptq_values(
    store: TensorStore, parts: tuple[str, ...], sizes: tuple[int, int, int], index: torch.Tensor, shifts: torch.Tensor
) -> torch.Tensor:
    rows, columns, bits = sizes
    codes = unpack(words_as_rows(store.read(parts[0]).T, bits, columns), columns, bits).float()
    scales = store.read(parts[2]).T.float()
    return scales[:, index] * (codes - shifts[:, index])


def read_awq(store: TensorStore, config: Config, names: Names) -> Packed:
    """Return the packed weights of the layout ``gemm``, 4 bits; NotAModelError for others."""
    version = str(config.get("version", "gemm")).lower()
    if version not in ("gemm", "gemv") or int(config.get("bits", config.get("w_bit", 4))) != 4 or version == "gemv":
        raise NotAModelError(f"AWQ checkpoints of version {version} with {config.get('bits')} bits are not read yet; "
                             "4 bits in the version gemm are")  # fmt: skip
    packed = {}
    for module in modules_with(store, "qweight"):
        parts = _parts(store, module, ("qweight", "qzeros", "scales"), ())
        columns, words = store.tensors[parts[0]].shape
        groups, rows = _groups(store, module, parts), store.tensors[parts[2]].shape[1]
        if rows != 8 * words or columns % groups:
            raise NotAModelError(
                f"{module} is not an AWQ weight: {words} words for {rows} outputs; fetch the file again"
            )
        granularity = _granularity(groups, columns, columns // groups, config)
        scheme = named("int4", granularity, _dtype(store, parts[2]), symmetric=False)
        load = partial(_awq_weight, store, parts, (rows, columns), scheme)
        packed[f"{module}.weight"] = PackedWeight(parts=parts, shape=(rows, columns), scheme=scheme, load=load)
    return packed


def _awq_weight(store: TensorStore, parts: tuple[str, ...], shape: tuple[int, int], scheme: str) -> QuantizedTensor:
    codes = pack(_awq_codes(store.read(parts[0])).T.contiguous(), 4).numpy()
    shifts, scales = _awq_codes(store.read(parts[1])).T.contiguous(), store.read(parts[2]).T.contiguous()
    return integers(scheme, codes, shape, scales, shifts)


def _awq_codes(words: torch.Tensor) -> torch.Tensor:
    """Return codes, uint8 ``[rows, 8 * words]``, in the order of the outputs."""
    places = torch.tensor([4 * place for place in AWQ_ORDER], dtype=torch.int32)
    return ((words[:, :, None] >> places) & 15).to(torch.uint8).reshape(len(words), -1)


def _parts(store: TensorStore, module: str, needed: tuple[str, ...], optional: tuple[str, ...]) -> tuple[str, ...]:
    """Return the full names of a module's tensors; NotAModelError where one is missing."""
    for part in needed:
        if f"{module}.{part}" not in store.tensors:
            raise NotAModelError(f"{module} has a qweight and no {part}; fetch the checkpoint again")
    present = (*needed, *(part for part in optional if f"{module}.{part}" in store.tensors))
    return tuple(f"{module}.{part}" for part in present)


def _groups(store: TensorStore, module: str, parts: tuple[str, ...]) -> int:
    """Return how many groups of inputs there are; NotAModelError where scales and zero points differ in it."""
    zeros, scales = store.tensors[parts[1]].shape, store.tensors[parts[2]].shape
    if len(zeros) != 2 or len(scales) != 2 or zeros[0] != scales[0]:
        raise NotAModelError(f"the tensors of {module} do not fit together: {zeros} zero points, {scales} scales")
    return scales[0]


def _width(groups: int, columns: int, config: Config) -> int:
    """Return the columns of a group, of which the last may have fewer, where no tensor says it."""
    stated = int(config.get("group_size") or 0)
    return stated if stated > 0 and -(-columns // stated) == groups else -(-columns // groups)


def _granularity(groups: int, columns: int, width: int, config: Config) -> str:
    """Return what a scale is for: groups, of which there may be one alone, or rows."""
    return "channel" if groups == 1 and config.get("group_size") != columns else f"g{width}"


def _whole(total: int, by: int, module: str) -> int:
    if by == 0 or total % by:
        raise NotAModelError(f"the tensors of {module} do not fit together; fetch the checkpoint again")
    return total // by


def _dtype(store: TensorStore, name: str) -> Any:
    return getattr(torch, store.tensors[name].dtype)

"""The weights of products in an ONNX graph: plain, behind DequantizeLinear, or as MatMulNBits has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from workbench.errors import NotAModelError
from workbench.models.checkpoints.packed import array, integers, named, with_offsets
from workbench.models.onnx.container import DTYPES, PACKED, StoredArray
from workbench.models.onnx.kinds import CODES, COMPUTED, DEEPEST, MOVES
from workbench.models.onnx.nodes import attributes_of
from workbench.models.onnx.operators import evaluate
from workbench.numerics.packing import pack
from workbench.numerics.quantized_tensor import QuantizedTensor

NEWEST = 99
"""An opset in which all that these operators take may be inputs; attributes count where they are given."""

SMALL = 1 << 20
"""Bytes that computed constants may always have."""

ENDS = {2: (0, 255), 3: (-128, 127), 4: (0, 65535), 5: (-32768, 32767)}
"""The least and the greatest code of ONNX's whole numbers."""

FLOAT8 = {17: "fp8-e4m3", 18: "fp8-e4m3fnuz", 19: "fp8-e5m2", 20: "fp8-e5m2fnuz"}
SCALES = (torch.float32, torch.float16, torch.bfloat16)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Numbers:
    """A constant as a product takes it: ``(codes - zeros) * scales``, of one shape; ``scales`` None: plain ``codes``.

    ``group`` is the size of the blocks along an axis that share a scale, 0 where a row or, ``whole``, all do;
    ``listed``: the one scale of all is that of the only row.
    """

    codes: torch.Tensor
    scales: torch.Tensor | None = None
    zeros: torch.Tensor | None = None
    type: int = 1
    scale_dtype: torch.dtype = torch.float32
    group: int = 0
    whole: bool = False
    listed: bool = False

    def values(self) -> torch.Tensor:
        """Return the numbers, float32 (plain ones in their own dtype)."""
        if self.scales is None:
            return self.codes
        codes = self.codes.float()
        if self.zeros is None:
            return codes * self.scales
        if not _are_whole(self.zeros):
            return codes * self.scales - self.zeros * self.scales  # as a scheme with offsets has it
        return (codes - self.zeros) * self.scales

    def moved(self, move: Callable[[torch.Tensor], torch.Tensor]) -> Numbers:
        """Return it with every number where ``move`` puts it."""
        scales, zeros = (None if each is None else move(each) for each in (self.scales, self.zeros))
        return replace(self, codes=move(self.codes), scales=scales, zeros=zeros)

    def stored(self) -> QuantizedTensor | None:
        """Return a matrix of outputs x inputs in a scheme of ours; None where it is plain or no scheme describes it."""
        if self.scales is None or self.scale_dtype not in SCALES or self.codes.ndim != 2:
            return None
        layout = self._granularity(self.scales)
        if layout is None or self.type not in (2, 3, *FLOAT8, *PACKED):
            return None
        granularity, step = layout
        scales = self.scales[:: 1 if granularity != "tensor" else len(self.scales), ::step].to(self.scale_dtype)
        shape = (self.codes.shape[0], self.codes.shape[1])
        if self.type in FLOAT8:
            name = named(FLOAT8[self.type], granularity, self.scale_dtype)
            arrays = {"codes": array(self.codes), "scales": array(scales)}
            return QuantizedTensor(scheme=name, shape=shape, arrays=arrays)
        bits, signed = PACKED.get(self.type, (8, self.type == 3))
        half = 1 << (bits - 1)
        lift = half if signed else 0
        zeros = torch.zeros_like(self.scales) if self.zeros is None else self.zeros
        symmetric = bool((zeros + lift == half).all())
        shifts = None if symmetric else (zeros[:: 1 if granularity != "tensor" else len(zeros), ::step] + lift)
        codes = pack((self.codes.to(torch.int16) + lift).to(torch.uint8), bits).numpy()
        if shifts is not None and not _are_whole(zeros):
            arrays = {"codes": codes, "scales": array(scales), "offsets": array(-(shifts * scales.float()))}
            name = with_offsets(f"int{bits}", granularity, self.scale_dtype)
            return QuantizedTensor(scheme=name, shape=shape, arrays=arrays)
        name = named(f"int{bits}", granularity, self.scale_dtype, symmetric=symmetric)
        return integers(name, codes, shape, scales.contiguous(), shifts)

    def _granularity(self, scales: torch.Tensor) -> tuple[str, int] | None:
        """Return the granularity's name and how many columns share a scale; None where no scheme has that."""
        zeros = torch.zeros_like(scales) if self.zeros is None else self.zeros
        columns = scales.shape[1]
        if self.whole:
            return "channel" if self.listed and len(scales) == 1 else "tensor", columns
        size = self.group or columns
        for each in (scales, zeros):
            if not torch.equal(each, each[:, ::size].repeat_interleave(size, 1)[:, :columns]):
                return None
        return (f"g{size}" if self.group else "channel"), size


class Constants:
    """The constants of a graph by name: its tensors and what nodes that only move numbers make of them."""

    def __init__(self, arrays: Mapping[str, StoredArray], nodes: Sequence[Any]) -> None:
        self.arrays = arrays
        self.makers = {name: node for node in nodes for name in node.output if name}
        self.sources = dict[str, str | None]()
        self.computed = dict[str, torch.Tensor]()
        self._within, self._nested = dict[str, Numbers](), 0

    def source(self, name: str, depth: int = DEEPEST) -> str | None:
        """Return the tensor that a constant is made of, the first of several; None for what inputs determine."""
        if name in self.arrays:
            return name
        if name not in self.sources:
            node = self.makers.get(name)
            known = node is not None and node.op_type in MOVES | COMPUTED | CODES and depth > 0
            if node is None or not known or not node.input:
                return None
            more = all(self.source(each, depth - 1) is not None for each in node.input[1:] if each)
            self.sources[name] = self.source(node.input[0], depth - 1) if more else None
        return self.sources[name]

    def number(self, name: str) -> torch.Tensor | None:
        """Return a small constant's value, None for what is computed."""
        return self.numbers(name).values() if self.source(name) is not None else None

    def numbers(self, name: str) -> Numbers:
        """Return a constant; NotAModelError where its parts do not fit together.

        What others are made of is made once while one is made: nodes that take the same several times would double it.
        """
        if name in self.arrays:
            array = self.arrays[name]
            return Numbers(codes=array.tensor(), type=array.type)
        self._nested += 1
        try:
            if name not in self._within:
                self._within[name] = self._of(name, self.makers[name])
            return self._within[name]
        finally:
            self._nested -= 1
            if not self._nested:
                self._within.clear()

    def _of(self, name: str, node: Any) -> Numbers:
        try:
            if node.op_type == "DequantizeLinear":
                return self._dequantized(node)
            if node.op_type == "QuantizeLinear":
                return self._quantized(node)
            if node.op_type in COMPUTED:
                return Numbers(codes=self._computed(name, node))
            inner = self.numbers(node.input[0])
            if node.op_type == "Cast":
                return self._cast(inner, attributes_of(node)["to"])
            return inner.moved(self._move(node))
        except (RuntimeError, LookupError, ValueError, TypeError, AttributeError) as error:
            raise NotAModelError(f"the constant {name} cannot be read: {node.op_type} does not fit: {error}") from error

    def _computed(self, name: str, node: Any) -> torch.Tensor:
        """Return what an operator makes of constants, once; ValueError where that is larger than all that there is."""
        if name not in self.computed:
            known: dict[str, torch.Tensor | None] = {each: self.numbers(each).values() for each in node.input if each}
            sizes = {each: tensor if tensor is None or not tensor.is_floating_point() else tensor.to("meta")
                     for each, tensor in known.items()}  # fmt: skip
            evaluate([node], sizes, NEWEST)
            largest = SMALL + sum(each.nbytes for each in self.arrays.values())
            for each in node.output:
                tensor = sizes[each] if each else None
                if tensor is not None and tensor.nbytes > largest:
                    raise ValueError(f"{tuple(tensor.shape)} is larger than the file")
            evaluate([node], known, NEWEST)
            self.computed |= {each: tensor for each in node.output if (tensor := known[each]) is not None}
        return self.computed[name]

    @staticmethod
    def _cast(inner: Numbers, kind: int) -> Numbers:
        if inner.scales is not None:
            return inner
        return Numbers(codes=inner.codes.to(getattr(torch, DTYPES[kind])), type=inner.type)

    def _move(self, node: Any) -> Callable[[torch.Tensor], torch.Tensor]:
        attributes = attributes_of(node)
        if node.op_type == "Identity":
            return lambda tensor: tensor
        if node.op_type == "Transpose":
            return lambda tensor: tensor.permute(attributes.get("perm") or tuple(reversed(range(tensor.ndim))))
        if node.op_type == "Flatten":
            return lambda tensor: tensor.flatten(0, attributes.get("axis", 1) - 1).flatten(1)
        more = self.number(node.input[1]) if len(node.input) > 1 else None
        axes = list(attributes.get("axes", ())) if more is None else [int(each) for each in more.reshape(-1)]
        if node.op_type == "Reshape":
            return lambda each: each.reshape([each.shape[at] if size == 0 else size for at, size in enumerate(axes)])
        if node.op_type == "Squeeze":
            return lambda tensor: tensor.squeeze(tuple(axes)) if axes else tensor.squeeze()

        def unsqueeze(tensor: torch.Tensor) -> torch.Tensor:
            for axis in sorted(axis % (tensor.ndim + len(axes)) for axis in axes):
                tensor = tensor.unsqueeze(axis)
            return tensor

        return unsqueeze

    def _dequantized(self, node: Any) -> Numbers:
        stored_codes = self.numbers(node.input[0])
        attributes, codes = attributes_of(node), stored_codes.codes
        scale_of = self.numbers(node.input[1])
        scale = scale_of.values()
        stored = _dtype(self.arrays[str(self.source(node.input[1]))])
        zero = self.number(node.input[2]) if len(node.input) > 2 and node.input[2] else None
        size, axis = int(attributes.get("block_size", 0)), int(attributes.get("axis", 1))

        def full(parameters: torch.Tensor) -> torch.Tensor:
            parameters = parameters.float()
            if parameters.numel() == 1:
                return parameters.reshape(()).expand(codes.shape)
            if size:
                return parameters.repeat_interleave(size, axis).narrow(axis, 0, codes.shape[axis])
            shape = [1] * codes.ndim
            shape[axis] = parameters.numel()
            return parameters.reshape(shape).expand(codes.shape)

        return Numbers(
            codes=codes, scales=full(scale), zeros=None if zero is None else full(zero),
            type=stored_codes.type, scale_dtype=stored, group=size,
            whole=scale.numel() == 1 and not size, listed=scale.ndim > 0,
        )  # fmt: skip

    def _quantized(self, node: Any) -> Numbers:
        """Return the codes of a constant that the graph rounds each time it runs, whole numbers of 8 or 16 bits."""
        values, scale = (self.numbers(name).values().float() for name in node.input[:2])
        zero = self.numbers(node.input[2]) if len(node.input) > 2 and node.input[2] else None
        kind = 2 if zero is None else zero.type
        if kind not in ENDS:
            raise ValueError(f"codes of type {kind}")
        shape = [1] * values.ndim
        if scale.numel() > 1:
            shape[int(attributes_of(node).get("axis", 1))] = scale.numel()
        shift = torch.zeros_like(scale) if zero is None else zero.codes.float()
        codes = (torch.round(values / scale.reshape(shape)) + shift.reshape(shape)).clamp(*ENDS[kind])
        return Numbers(codes=codes.to(getattr(torch, DTYPES[kind])), type=kind)

    def blocks(self, node: Any) -> Numbers:
        """Return the weight of MatMulNBits, outputs x inputs; without zero points they are ``2**(bits - 1)``."""
        attributes = attributes_of(node)
        rows, columns, size = attributes["N"], attributes["K"], attributes["block_size"]
        bits = attributes.get("bits", 4)
        kind = {2: 25, 4: 21, 8: 2}.get(bits)
        if kind is None:
            raise NotAModelError(f"MatMulNBits of {bits} bits is not read; 2, 4 and 8 are")
        groups = -(-columns // size)
        try:
            codes = _unpacked(self.numbers(node.input[1]).codes, rows, bits)[:, :columns]
            scales = self.numbers(node.input[2])

            def spread(each: torch.Tensor) -> torch.Tensor:
                return each.reshape(rows, -1)[:, :groups].float().repeat_interleave(size, 1)[:, :columns]

            zeros: torch.Tensor | None = None
            if len(node.input) > 3 and node.input[3]:
                stored = self.numbers(node.input[3]).codes
                zeros = spread(stored if stored.is_floating_point() else _unpacked(stored, rows, bits))
            else:
                zeros = torch.full((1, 1), float(1 << (bits - 1))).expand(rows, columns)
            return Numbers(
                codes=codes, scales=spread(scales.values()), zeros=zeros, type=kind, group=size,
                scale_dtype=_dtype(self.arrays[str(self.source(node.input[2]))]),
            )  # fmt: skip
        except (RuntimeError, IndexError, KeyError) as error:
            raise NotAModelError(f"{node.input[1]} does not fit the sizes of its MatMulNBits: {error}") from error


def _are_whole(zeros: torch.Tensor) -> bool:
    return torch.equal(zeros, zeros.round())


def _dtype(array: StoredArray) -> torch.dtype:
    return torch.int8 if array.type in PACKED else getattr(torch, DTYPES[array.type])


def _unpacked(raw: torch.Tensor, rows: int, bits: int) -> torch.Tensor:
    """Return codes of ``bits`` bits, uint8 ``[rows, codes]``, lowest bits first."""
    shifts = torch.arange(0, 8, bits, dtype=torch.uint8)
    return (raw.reshape(rows, -1, 1) >> shifts & (1 << bits) - 1).reshape(rows, -1)

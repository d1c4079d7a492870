"""One block of a Llama-shaped transformer, one token at a time, every projection in the form that a plan gives it.

    h = x + output(attention(rotated query, quantized cache)),   y = h + down(silu(gate(n)) * up(n)),   n = norm(h)

Normalization and quantization of activations are one kernel for each form that the projections behind it want; the
residual is added there too.  All memory is allocated on the first step; ``record`` captures a step as a CUDA graph,
which reads the token's place from the device and can be replayed for the next one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, fields

import torch

from ...errors import ArgumentError, BackendUnavailable
from .. import baselines
from ..contract import check_tensor
from ..gemm.projections import Projection, quantized, stacked
from ..launch import CudaOp, Executor, Problem, drawn, nbytes
from ..quantize import gate_quantize, group_quantize, norm_quantize
from ..quantize.norm_quantize import Rows
from ..workspace import Workspace
from . import cache_append, decode_attention
from .decode_attention import Cache

Turns = tuple[torch.Tensor, torch.Tensor]
_CODE_NAMES = {torch.int8: "int8", torch.float8_e4m3fn: "e4m3"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Projections:
    """The seven linear layers."""

    query: Projection
    key: Projection
    value: Projection
    output: Projection
    gate: Projection
    up: Projection
    down: Projection


Stage = tuple[tuple[Projection, tuple[int, ...]], ...]
"""Projections of one input, each with the sizes into which its output is cut."""


def _stage(*parts: Projection) -> Stage:
    stack = stacked(parts)
    return tuple((part, (part.rows,)) for part in parts) if stack is None else ((stack, tuple(p.rows for p in parts)),)


class Block:
    """A block with its cache.

    Projections of one input and one kind are stacked into one.  ``norms`` are the float16 weights ``[hidden]`` before
    attention and before the MLP; ``turns`` cosine and sine, float32 ``[tokens, D / 2]``.  Raises ArgumentError where
    the parts do not fit each other.
    """

    def __init__(
        self, projections: Projections, norms: tuple[torch.Tensor, torch.Tensor], cache: Cache, turns: Turns, *,
        on: Executor, epsilon: float = 1e-5,
    ) -> None:  # fmt: skip
        self.norms, self.cache, self.turns = norms, cache, turns
        self.workspace = Workspace(on)
        self.epsilon = epsilon
        self.hidden = projections.query.columns
        self._check(projections, on)
        self._attention = _stage(projections.query, projections.key, projections.value)
        self._mlp = _stage(projections.gate, projections.up)
        self._output, self._down = projections.output, projections.down

    def _check(self, p: Projections, on: Executor) -> None:
        _, groups, size = self.cache.keys.shape
        for norm in self.norms:
            check_tensor("norm", norm, on, (torch.float16,), (self.hidden,))
        shapes = {
            "key": (p.key, groups * size, self.hidden), "value": (p.value, groups * size, self.hidden),
            "output": (p.output, self.hidden, p.query.rows), "gate": (p.gate, p.down.columns, self.hidden),
            "up": (p.up, p.down.columns, self.hidden), "down": (p.down, self.hidden, p.gate.rows),
        }  # fmt: skip
        for name, (projection, rows, columns) in shapes.items():
            if (projection.rows, projection.columns) != (rows, columns):
                shape = f"{projection.rows} x {projection.columns}"
                raise ArgumentError(f"{name} is {shape}; the block needs {rows} x {columns}")
        if p.query.rows % (groups * size):
            raise ArgumentError(f"query has {p.query.rows} rows; expected a multiple of {groups} heads of {size}")

    def step(self, x: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
        """Return the block's output float16 ``[1, hidden]`` for its input, and add the token to the cache.

        ``length``, int32 ``[1]`` on the device, counts the tokens with this one.  The result is overwritten by the next
        step.  Raises ArgumentError, BackendUnavailable, DeviceFault.
        """
        on = self.workspace
        on.rewind()
        check_tensor("x", x, on, (torch.float16,), (1, self.hidden))
        (query, key, value), _ = self._projected(x, self.norms[0], self._attention, None)
        size = self.cache.keys.shape[2]
        turned = cache_append.append(
            query.view(-1, size), key.view(-1, size), value.view(-1, size), self.turns, length, self.cache, on=on
        )
        attended = decode_attention.attend(turned, self.cache, length, on=on).view(1, -1)
        delta = self._output.apply(_form(attended, self._output.codes, on), on=on)
        (gate, up), h = self._projected(x, self.norms[1], self._mlp, delta)
        rows = gate_quantize.gate_quantize(gate.view(1, -1), up.view(1, -1), self._down.codes, on=on)
        down = self._down.apply(rows, on=on)
        return torch.add(h, down, out=on.empty((1, self.hidden), torch.float16))

    def _projected(
        self, x: torch.Tensor, weight: torch.Tensor, stage: Stage, delta: torch.Tensor | None
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Return the outputs of a stage, which normalizes in each form that it wants, and the residual stream."""
        on, forms = self.workspace, dict[torch.dtype | None, Rows]()
        for codes in dict.fromkeys(projection.codes for projection, _ in stage):
            forms[codes], x = norm_quantize.norm_quantize(x, weight, codes, self.epsilon, delta=delta, on=on)
            delta = None
        outputs: list[torch.Tensor] = []
        for projection, rows in stage:
            made = projection.apply(forms[projection.codes], on=on)[0]
            outputs += [made[end - count : end] for end, count in zip(itertools.accumulate(rows), rows, strict=True)]
        return outputs, x

    def record(self, x: torch.Tensor, length: torch.Tensor) -> Callable[[], torch.Tensor]:
        """Return a function that replays a step on what ``x`` and ``length`` then hold.

        Raises BackendUnavailable where there is no CUDA device.
        """
        if self.workspace.device.type != "cuda":
            raise BackendUnavailable(f"steps are recorded on a CUDA device; this block is on {self.workspace.device}")
        stream = torch.cuda.Stream(self.workspace.device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(self.workspace.device))
        with torch.cuda.stream(stream):
            for _ in range(2):  # compiles the kernels and allocates the memory
                self.step(x, length)
        torch.cuda.current_stream(self.workspace.device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = self.step(x, length)

        def replay() -> torch.Tensor:
            graph.replay()
            return out

        return replay

    def nbytes(self) -> int:
        """Return the bytes of weights and cache, which a step reads."""
        used = [projection for projection, _ in (*self._attention, *self._mlp)] + [self._output, self._down]
        return sum(p.nbytes() for p in used) + nbytes(*self.norms, *self.cache.tensors())


def _form(x: torch.Tensor, codes: torch.dtype | None, on: Executor) -> Rows:
    if codes is None:
        return Rows(values=x, scales=None)
    made = group_quantize.quantize(x, _CODE_NAMES[codes], x.shape[1], on=on)
    return Rows(values=made.codes, scales=made.scales.view(-1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferenceBlock:
    """The same block in plain torch: ``weights`` float64, and ``codes`` the form of activations, by projection."""

    weights: dict[str, torch.Tensor]
    codes: dict[str, torch.dtype | None]
    norms: tuple[torch.Tensor, torch.Tensor]
    turns: Turns
    epsilon: float = 1e-5

    def _apply(self, name: str, x: torch.Tensor) -> torch.Tensor:
        """Return the product, float16, of exact activations, rounded to the form that the projection wants."""
        codes = self.codes[name]
        if codes is None:
            return (x.half().double() @ self.weights[name].T).half()
        made, scales = norm_quantize.quantized_rows(x.float(), codes)
        return (made.double() * scales.double()[:, None] @ self.weights[name].T).half()

    def step(self, x: torch.Tensor, place: int, cache: Cache) -> tuple[torch.Tensor, Cache]:
        """Return the output float16 ``[1, hidden]`` and the cache with the token at ``place``; halves are rounded where
        the kernels round them."""
        size = cache.keys.shape[2]
        n = self._norm(x, 0)
        query, key, value = (self._apply(name, n).view(-1, size) for name in ("query", "key", "value"))
        turned, cache = cache_append.reference(query, key, value, self.turns, place, cache)
        attended = decode_attention.reference(turned, cache, place + 1).half().view(1, -1)
        h = (x.float() + self._apply("output", attended).float()).half()
        n = self._norm(h, 1)
        gated = gate_quantize.reference(self._apply("gate", n), self._apply("up", n))
        down = self._apply("down", gated)
        return (h.float() + down.float()).half(), cache

    def _norm(self, x: torch.Tensor, which: int) -> torch.Tensor:
        return norm_quantize.exact_norm(x, self.norms[which], self.epsilon)


NAMES = tuple(field.name for field in fields(Projections))
PLANS: dict[str, tuple[str, ...]] = {
    "plain": ("plain",) * 7, "w4a16": ("w4a16",) * 7, "int8": ("int8",) * 7, "fp8": ("fp8",) * 7,
    "mixed": ("w4a16", "int8", "plain", "int8", "w4a16", "int8", "fp8"),
}  # fmt: skip
"""Kinds of the seven projections, by name of plan."""


def drawn_block(
    on: Executor, seed: int, *, plan: str, hidden: int, heads: int, groups: int, size: int, intermediate: int,
    tokens: int, group: int = 128, codes: torch.dtype = torch.int8,
) -> tuple[Block, ReferenceBlock]:  # fmt: skip
    """Draw weights of a block and round them as ``plan`` says; the cache holds ``tokens - 1`` random tokens."""
    shapes = {
        "query": (heads * size, hidden), "key": (groups * size, hidden), "value": (groups * size, hidden),
        "output": (hidden, heads * size), "gate": (intermediate, hidden), "up": (intermediate, hidden),
        "down": (hidden, intermediate),
    }  # fmt: skip
    made, exact = {}, {}
    for number, (name, kind) in enumerate(zip(NAMES, PLANS[plan], strict=True)):
        rows, columns = shapes[name]
        made[name], exact[name] = quantized(drawn(on, seed + number, rows, columns) / columns**0.5, kind, group)
    first, second = (drawn(on, seed + 10 + i, hidden).abs().half() for i in range(2))
    cosine, sine = cache_append.rotations(tokens, size)
    turns = cosine.to(on.device), sine.to(on.device)
    cache = cache_append.empty_cache(on, tokens, groups, size, codes)
    for number, (values, scales) in enumerate(((cache.keys, cache.key_scales), (cache.values, cache.value_scales))):
        rounded, step = norm_quantize.quantized_rows(drawn(on, seed + 20 + number, tokens * groups, size), codes)
        values.copy_(rounded.view(values.shape))
        scales.copy_(step.view(scales.shape))
    block = Block(Projections(**made), (first, second), cache, turns, on=on)
    forms = {name: projection.codes for name, projection in made.items()}
    return block, ReferenceBlock(weights=exact, codes=forms, norms=(first, second), turns=turns)


def prepare(on: Executor, seed: int, *, tokens: int, hidden: int, **shape: object) -> Problem:
    """Draw a block and a token for the last place of its cache."""
    block, plain = drawn_block(on, seed, tokens=tokens, hidden=hidden, **shape)  # type: ignore[arg-type]
    x = drawn(on, seed + 30, 1, hidden, dtype=torch.float16)
    length = torch.full((1,), tokens, dtype=torch.int32, device=on.device)
    operations = 2 * sum(weight.numel() for weight in plain.weights.values())
    return Problem(
        launch=lambda: (block.step(x, length),), reference=lambda: (plain.step(x, tokens - 1, block.cache)[0],),
        read=block.nbytes(), written=nbytes(x), operations=operations,
    )  # fmt: skip


SMALL = {"hidden": 128, "heads": 2, "groups": 1, "size": 64, "intermediate": 192, "tokens": 70, "group": 64}
LLAMA_3_8B = {"hidden": 4096, "heads": 32, "groups": 8, "size": 128, "intermediate": 14336, "tokens": 1024}
OP = CudaOp(
    name="transformer block", source=cache_append.SOURCE, tolerance=1e-2, prepare=prepare,
    note="a block of a Llama-shaped transformer at batch 1: normalization, projections, attention, MLP",
    variants=(
        *({"plan": plan, **SMALL} for plan in PLANS), {"plan": "w4a16", **SMALL, "codes": torch.float8_e4m3fn},
    ),
    sizes=tuple({"plan": plan, **LLAMA_3_8B} for plan in PLANS),
    baselines=lambda device, *, plan, group=128, codes=None, **shape: baselines.block(device, **shape),
)  # fmt: skip

"""ONNX Runtime's MatMulNBits: 4-bit weights in groups times float32 activations, which it quantizes to INT8 in blocks.

Optional: needs the packages onnx (to state the problem) and onnxruntime (to run it).
"""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

import torch

from ..op import Case, Op

GROUPS = (32, 64, 128)
ACCURACY = 4
"""MatMulNBits' accuracy_level: 4 lets it quantize activations to INT8, which is where its speed comes from."""
SHAPES = ((16, 128, 1), (64, 128, 3), (256, 512, 16), (512, 128, 33))


def missing() -> str | None:
    """Return why it cannot run, None if it can."""
    absent = [name for name in ("onnx", "onnxruntime") if importlib.util.find_spec(name) is None]
    return f"not installed: {' and '.join(absent)} (pip install {' '.join(absent)})" if absent else None


def refuses(rows: int, columns: int, group: int) -> str | None:
    """Return why a shape does not fit, None if it does."""
    return f"groups of {group} do not divide {columns} columns" if columns % group else None


def quantized(weight: torch.Tensor, group: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return codes uint8 ``[rows, groups, group]``, scales float32 and zero points uint8 ``[rows, groups]``."""
    grouped = weight.reshape(weight.shape[0], -1, group)
    low, high = grouped.amin(2).clamp_max(0), grouped.amax(2).clamp_min(0)
    scale = (high - low) / 15
    zero = (-low / scale).round().clamp(0, 15)
    codes = ((grouped / scale[..., None]).round() + zero[..., None]).clamp(0, 15)
    return codes.to(torch.uint8), scale, zero.to(torch.uint8)


def _nibbles(codes: torch.Tensor) -> torch.Tensor:
    padded = torch.nn.functional.pad(codes, (0, codes.shape[-1] % 2))
    return (padded[..., 0::2] | padded[..., 1::2] << 4).contiguous()


def session(codes: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> Any:
    """Return a session with one MatMulNBits node, on as many threads as torch has."""
    import onnxruntime
    from onnx import TensorProto, helper

    rows, groups, group = codes.shape
    columns = groups * group
    node = helper.make_node(
        "MatMulNBits", ["x", "codes", "scale", "zero"], ["y"], domain="com.microsoft", K=columns, N=rows, bits=4,
        block_size=group, accuracy_level=ACCURACY,
    )  # fmt: skip
    constants = [
        helper.make_tensor(name, kind, value.shape, value.numpy().tobytes(), raw=True)
        for name, kind, value in (
            ("codes", TensorProto.UINT8, _nibbles(codes)), ("scale", TensorProto.FLOAT, scale.flatten()),
            ("zero", TensorProto.UINT8, _nibbles(zero).flatten()),
        )
    ]  # fmt: skip
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", size])
        for name, size in (("x", columns), ("y", rows))
    ]
    graph = helper.make_graph([node], "product", ends[:1], ends[1:], constants)
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def prepare(rows: int, columns: int, batch: int, seed: int, group: int) -> Case:
    """Draw weights and activations, and state the problem to ONNX Runtime."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(rows, columns, generator=generator)
    x = torch.randn(batch, columns, generator=generator)
    codes, scale, zero = quantized(weight, group)
    run = session(codes, scale, zero).run
    feed = {"x": x.numpy()}

    def reference() -> torch.Tensor:
        values = (codes.double() - zero.double()[..., None]) * scale.double()[..., None]
        return x.double() @ values.reshape(rows, columns).T

    return Case(launch=lambda: torch.from_numpy(run(None, feed)[0]), reference=reference)


def op(group: int) -> Op:
    """Return the kernel for groups of ``group`` columns."""
    return Op(
        name=f"onnxruntime int4 group {group} linear", tolerance=2e-2, available=missing,
        note=f"INT4 weights, group {group}, float32 activations that ONNX Runtime quantizes to INT8 in blocks",
        refuses=functools.partial(refuses, group=group), prepare=functools.partial(prepare, group=group),
        variants=SHAPES,
    )  # fmt: skip


INT4 = {group: op(group) for group in GROUPS}

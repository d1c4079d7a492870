"""Copies of GGUF files with something changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import gguf
import numpy as np


def copied(
    file: Path, out: Path, change: Callable[[gguf.GGUFWriter], object] = lambda writer: None,
    fused: Mapping[str, tuple[str, ...]] | None = None, without: tuple[str, ...] = (),
) -> Path:  # fmt: skip
    """Write ``file`` again after a ``change``: ``without`` some tensors and metadata, some tensors of a block in one.

    ``fused`` gives the endings of the names of those that become one tensor: one below the other, or expert by expert.
    """
    reader, pieces = gguf.GGUFReader(file), fused or {}
    kept = [tensor for tensor in reader.tensors if tensor.name not in without]
    tensors = {tensor.name: (np.array(tensor.data), tensor.tensor_type) for tensor in kept}
    writer = gguf.GGUFWriter(out, reader.fields["general.architecture"].contents())
    for key, field in reader.fields.items():
        if key not in without and not key.startswith(("GGUF.", "general.architecture")):
            sub = field.types[-1] if len(field.types) > 1 else None
            writer.add_key_value(key, field.contents(), field.types[0], sub_type=sub)
    for whole, parts in pieces.items():
        for block in sorted({name.split(".")[1] for name in tensors if name.startswith("blk.")}):
            own = [tensors.pop(f"blk.{block}.{part}") for part in parts]
            data = np.concatenate([values for values, _ in own], axis=int(own[0][0].ndim > 2))
            tensors[f"blk.{block}.{whole}"] = data, own[0][1]
    change(writer)
    for name, (data, kind) in tensors.items():
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return out

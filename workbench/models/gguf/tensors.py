"""Where llama.cpp stores each tensor of a network: its name, the order of its rows, what it must be stored as."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from workbench.errors import BackendUnavailableError, NotAModelError
from workbench.installed import require_new
from workbench.models.gguf.architectures import Architecture, first_position
from workbench.models.gguf.rotary import TENSORS as ROTARY

UNUSED = frozenset({"pooler.dense.weight", "pooler.dense.bias", "embeddings.position_ids"})
"""Tensors of an encoder that its embeddings do not depend on; no GGUF file holds them."""

PICTURES = ("model.vision_tower.", "model.multi_modal_projector.")
"""Where the names of parameters begin that texts do not need: llama.cpp reads these from a file of their own."""

FUSED = {"gate_up_proj": ("gate_proj", "up_proj")}
"""Experts' matrices that are one parameter in transformers and several tensors in a file."""

QKV = ".attn_qkv."
"""In the name of a tensor that holds a block's queries, keys and values."""

_QKV = re.compile(r"\.attn_[qkv]\.")
_BLOCK = re.compile(r"(?:.*\.)?layers\.(?P<block>\d+)\.(?P<part>.+)\.(?P<kind>weight|bias)")

FLOAT32_ONLY = ("position_embd.weight", "token_types.weight", "_norm.weight", *ROTARY,
                "ffn_gate_inp.weight", "ffn_gate_inp_shexp.weight", "shortconv.conv.weight")  # fmt: skip
"""Endings of matrices that llama.cpp reads in float32 alone."""


def library() -> ModuleType:
    """Return the package ``gguf``; BackendUnavailableError with the line that installs it."""
    require_new("gguf", "gguf")
    try:
        import gguf
    except ImportError as error:
        raise BackendUnavailableError(
            f"GGUF files need the package gguf ({error}); install it: pip install 'quantization-workbench[gguf]'"
        ) from None
    return gguf


def gguf_names(architecture: Architecture, blocks: int) -> Callable[[str], str | None]:
    """Return the look-up of a parameter's name in the file by its name in transformers; None where there is none."""
    gguf = library()
    member = next(key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture.name)
    names = gguf.get_tensor_name_map(member, blocks)

    def look_up(parameter: str) -> str | None:
        if is_unused(parameter):
            return None
        parameter = parameter.replace("model.language_model.", "model.", 1)
        parameter = parameter.replace(".e_score_correction_bias", ".e_score_correction.bias")
        name: str | None = names.get_name(parameter, (".weight", ".bias"))
        if name is None and (found := _BLOCK.fullmatch(parameter)) and found["part"] in architecture.own_names:
            return f"blk.{found['block']}.{architecture.own_names[found['part']]}.{found['kind']}"
        bare = name is not None and not name.endswith((".weight", ".bias"))
        return f"{name}.weight" if bare else name

    return look_up


def is_unused(parameter: str) -> bool:
    """Return whether no GGUF file holds the parameter, since the answers to texts do not depend on it."""
    return parameter in UNUSED or parameter.startswith(PICTURES)


def names_of(look_up: Callable[[str], str | None], parameter: str) -> tuple[str, ...]:
    """Return the names of all tensors that a file holds of a parameter: none, one, or those of fused experts."""
    stem, _, last = parameter.rpartition(".")
    pieces = [look_up(f"{stem}.{piece}") for piece in FUSED.get(last, ())] if ".experts" in f".{stem}" else []
    names = pieces if pieces and None not in pieces else [look_up(parameter)]
    return tuple(name for name in names if name is not None)


def fused_names(names: tuple[str, ...], file: Container[str]) -> tuple[str, ...]:
    """Return the names of a parameter's tensors as ``file`` has them: converters fuse some, of experts or attention."""
    fused = [_QKV.sub(QKV, name).replace(".ffn_gate_exps.", ".ffn_gate_up_exps.") for name in names[:1]]
    return tuple(fused) if fused and names[0] not in file and fused[0] in file else names


def fused_rows(name: str, rows: int, every: int) -> slice:
    """Return the rows of ``name`` (queries, keys or values, ``rows``) in a tensor of all three that has ``every``."""
    start = {"q": 0, "k": every - 2 * rows, "v": every - rows}[name[name.index(".attn_") + len(".attn_")]]
    return slice(max(start, 0), start + rows)


def rows_of(experts: int, rows: int, pieces: int, place: int) -> np.ndarray | None:
    """Return the rows of the ``place``-th of ``pieces`` tensors of fused experts (``experts * rows`` in all), int64."""
    if pieces == 1:
        return None
    return np.arange(experts * rows).reshape(experts, pieces, rows // pieces)[:, place].reshape(-1)


def row_order(architecture: Architecture, config: Mapping[str, Any], parameter: str) -> np.ndarray | None:
    """Return which row of the network's tensor is each row of the file's, int64 ``[rows]``; None where none moves.

    Of positions, a file has those that tokens take.  llama.cpp's rotary embeddings pair neighbours, those of
    transformers a head's halves, so that in a file of some architectures the rows of queries and keys are interleaved.
    GPT-NeoX has queries, keys and values head by head, a file all of each.
    Raises NotAModelError for heads that have no halves.
    """
    kind = parameter.removesuffix(".weight").removesuffix(".bias").rpartition(".")[2]
    if architecture.after_padding and kind == "position_embeddings":
        return np.arange(first_position(config), config["max_position_embeddings"])
    if kind == "query_key_value":  # there by head, in a file all queries first
        return (
            np.arange(3 * config["hidden_size"])
            .reshape(config["num_attention_heads"], 3, -1)
            .swapaxes(0, 1)
            .reshape(-1)
        )
    if not architecture.permuted or kind not in ("q_proj", "k_proj"):
        return None
    heads = config["num_attention_heads"]
    if kind == "k_proj":
        heads = config.get("num_key_value_heads") or heads
    size = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    if size % 2:
        raise NotAModelError(f"its heads have {size} numbers, and rotary embeddings take them in pairs")
    return np.arange(heads * size).reshape(heads, 2, size // 2).swapaxes(1, 2).reshape(-1)


def is_float32_only(name: str) -> bool:
    """Return whether llama.cpp reads the matrix called ``name`` in float32 alone."""
    return name.endswith(FLOAT32_ONLY)

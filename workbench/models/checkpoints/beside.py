"""Settings of a quantization that programs write into a file of their own beside config.json, or did once."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import NotAModelError
from workbench.plain_file import read_json

if TYPE_CHECKING:
    from workbench.models.sources.stored import TensorStore

BESIDE = {
    "quantize_config.json": ("gptq", "bits"), "quant_config.json": ("awq", "w_bit"),
    "hf_quant_config.json": ("modelopt", "quant_algo"), "quantization_map.json": ("quanto", ""),
}  # fmt: skip
"""The method of each file (AutoGPTQ's, AutoAWQ's, ModelOpt's, Quanto's), and a setting that it always has, if any: what
Optimum says of ONNX files beside floating-point weights is called quantize_config.json, too."""


def with_settings(folder: Path, config: Any) -> Any:
    """Return config.json with the ``quantization_config`` that a file beside it holds, where it has none itself."""
    if not isinstance(config, dict) or config.get("quantization_config") or "quantization" in config:
        return config
    for name, (method, setting) in BESIDE.items():
        with suppress(OSError, ValueError):
            settings = read_json(folder / name)
            if method == "modelopt" and isinstance(settings, dict):
                settings = settings.get("quantization")
            if isinstance(settings, dict) and (setting in settings if setting else settings):
                return {**config, "quantization_config": {**settings, "quant_method": method}}
    return config


def require_whole(store: TensorStore, folder: Path) -> None:
    """Raise NotAModelError for weights in FP8 with scales, which nothing says how to multiply."""
    if name := scaled_without(store):
        raise NotAModelError(
            f"{folder} holds {name} in FP8 with scales, and config.json does not say by which method "
            "(quantization_config); fetch the folder again, with all of its .json files"
        )


def scaled_without(store: TensorStore) -> str | None:
    """Return the first weight in FP8 that has scales of its own beside it in ``store``; None where there is none."""
    for name, tensor in store.tensors.items():
        if tensor.dtype.startswith("float8") and {f"{name}_scale", f"{name}_scale_inv"} & store.tensors.keys():
            return name
    return None

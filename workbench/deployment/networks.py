"""Whether a target's runtime runs a model's architecture at all, whatever the plan."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from workbench.deployment.checkpoints.folder import ORIGINS, has_settings
from workbench.deployment.checkpoints.mlx_networks import NETWORKS
from workbench.deployment.targets import target
from workbench.errors import ExportError, NotAModelError
from workbench.models.gguf.architectures import ARCHITECTURES, architecture_of
from workbench.models.sources.bundled import bundled_folder
from workbench.models.summary import ModelSource, ModelSummary, OutputKind
from workbench.plain_file import read_json

KNOWN: dict[str, tuple[str, ...]] = {
    "gguf": tuple(name for each in ARCHITECTURES for name in each.model_types),
    "mlx": tuple(NETWORKS),
}
"""The ``model_type`` of every network that files are written of, by runtime; others take any."""


def unknown_network(name: str, model: ModelSummary) -> str:
    """Return why the target ``name`` (empty: any) runs no network of the model's architecture, or none with its head;
    empty where it does or no config.json says what it is; PlanError for an unknown target."""
    runtime = target(name).runtime if name else None
    known = KNOWN.get(runtime.name, ()) if runtime is not None else ()
    if runtime is None or not known:
        return ""
    config = _config(model.source)
    kind = config.get("model_type")
    several = runtime.name == "mlx" and "text_config" in config  # left to mlx-vlm
    if not isinstance(kind, str) or several:
        return ""
    if kind not in known:
        return f"{runtime.title} is given no network of the architecture {kind[:40]} yet, only of {', '.join(known)}"
    return other_head(runtime.name, kind, model)


def other_head(name: str, kind: str, model: ModelSummary) -> str:
    """Return why the network of the architecture ``kind`` that the runtime ``name`` has gives no answer such as the
    model's; empty where it does."""
    if name == "mlx":
        return _lacking(model, "the next token", f"mlx-lm's {kind}", "an MLX checkpoint", OutputKind.TOKEN_LOGITS)
    architecture = architecture_of(kind, ExportError)
    program = f"llama.cpp's {architecture.name}"
    if "attention.causal" in architecture.constants:
        return _lacking(model, "embeddings", program, "GGUF", OutputKind.EMBEDDING)
    return _lacking(model, "the next token", program, "GGUF", OutputKind.TOKEN_LOGITS, OutputKind.EMBEDDING)


def _lacking(model: ModelSummary, answer: str, program: str, file: str, *given: OutputKind) -> str:
    if model.output in (OutputKind.NONE, *given):  # of weights alone, none knows
        return ""
    lacks = f"has a head for another answer than {answer}, and {program} has none"
    return f"{model.name} {lacks}; it cannot be written as {file}"


def has_folder(source: ModelSource) -> bool:
    """Return whether a model came from a folder with a config.json, or lies beside one."""
    return source.kind in ORIGINS or source.kind == "safetensors" and has_settings(Path(source.path))


def _config(source: ModelSource) -> dict[str, Any]:
    """Return the model's config.json, empty where it has none that can be read."""
    if not has_folder(source):
        return {}
    try:
        bundled = source.path.startswith("demo:")
        path = bundled_folder(source.path.removeprefix("demo:")) if bundled else Path(source.path)
        file = (path if path.is_dir() else path.parent) / "config.json"
        return _read(file, file.stat().st_mtime_ns)
    except (OSError, ValueError, NotAModelError):
        return {}


@lru_cache(maxsize=4)
def _read(file: Path, changed: int) -> dict[str, Any]:
    config = read_json(file)
    return config if isinstance(config, dict) else {}

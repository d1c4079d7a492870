"""What each runtime accepts, one file each; a new one is one line in RUNTIMES."""

from __future__ import annotations

from functools import lru_cache

from workbench.deployment.targets.gguf import GGUF
from workbench.deployment.targets.onnx_runtime import ONNX_RUNTIME
from workbench.deployment.targets.runtime import Runtime, Target
from workbench.deployment.targets.torchao import TORCHAO
from workbench.deployment.targets.vllm import VLLM
from workbench.errors import PlanError, nearest
from workbench.models.layer import Layer
from workbench.planning.hardware import hardware, profiles

__all__ = ["RUNTIMES", "Runtime", "Target", "legal", "target", "target_names"]

RUNTIMES: tuple[Runtime, ...] = (VLLM, ONNX_RUNTIME, GGUF, TORCHAO)


def target_names() -> tuple[str, ...]:
    """Return the runtimes and the hardware profiles; ``runtime@hardware`` joins two of them."""
    return (*(runtime.name for runtime in RUNTIMES), *profiles())


@lru_cache(maxsize=64)
def target(name: str) -> Target:
    """Return the target called ``name``; PlanError that names the closest ones."""
    first, _, second = name.strip().lower().partition("@")
    by_name = {runtime.name: runtime for runtime in RUNTIMES}
    if first in by_name:
        return Target(name=name, runtime=by_name[first], chip=hardware(second) if second else None)
    if first in profiles() and not second:
        return Target(name=name, chip=hardware(first))
    raise PlanError(
        f"there is no target {name!r}{nearest(name, target_names())}; there are {', '.join(target_names())}, and "
        "runtime@hardware such as vllm@nvidia-9.0"
    )


def legal(scheme: str, layer: Layer, target_name: str | Target, inputs: str | None = None) -> str | None:
    """Return why a target cannot run ``layer`` with weights in ``scheme``, None if it can."""
    accepted = target(target_name) if isinstance(target_name, str) else target_name
    return accepted.legal(layer, scheme, inputs)

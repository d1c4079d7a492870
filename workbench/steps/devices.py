"""What the engine can compute on: torch, its threads, the processor, every GPU."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

from workbench.insight.quantities import plural
from workbench.models.placement import Device, devices
from workbench.steps.step import Context, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesOptions:
    """None."""


def _run(context: Context, options: DevicesOptions) -> tuple[str, ...]:
    """Return one line for torch, the processor, and each GPU with its memory and compute capability."""
    import torch

    lines = [f"torch {torch.__version__}, {plural(torch.get_num_threads(), 'compute thread')}"]
    lines.append(f"CPU: {processor()}, {plural(os.cpu_count() or 1, 'core')}")
    for number in range(torch.cuda.device_count()):
        facts = torch.cuda.get_device_properties(number)
        lines.append(
            f"GPU {number}: {facts.name}, {facts.total_memory / 1e9:.0f} GB, compute capability "
            f"{facts.major}.{facts.minor}"
        )
    return tuple(lines) if torch.cuda.device_count() else (*lines, "GPU: none that torch can use")


def processor() -> str:
    """Return the processor's name as the operating system gives it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # no Linux
    return platform.processor() or platform.machine()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacesOptions:
    """None."""


def _places(context: Context, options: PlacesOptions) -> tuple[Device, ...]:
    """Return the devices on which a model can run."""
    return devices()


DEVICES = Step(
    name="devices", title="List the devices", options=DevicesOptions, run=_run, document=False,
    summary="Names the engine's torch, its threads, the processor and every GPU.",
)  # fmt: skip
PLACES = Step(
    name="places", title="Find the devices", options=PlacesOptions, run=_places, document=False, listed=False,
    summary="Finds the devices on which a model can run.",
)  # fmt: skip

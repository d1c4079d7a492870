"""What a device can do at most, measured in the same run as the kernels: memory and matrix rates; and its clocks."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

from ..gpu.baselines import eight_bit, linear
from ..gpu.thread import Device

BYTES = 2**30
SIDE = 8192
REPEATS = 10
QUERY = "clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.draw,temperature.gpu,driver_version"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """Rates of one device: GB/s of a copy (bytes read and written) and of reading, Tops of products of 8192 cubed.

    ``products`` has bf16, int8 and fp8; ``refused`` why one is missing.
    """

    copy: float
    read: float
    products: dict[str, float] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def measure(device: Device) -> Ceilings:
    """Measure; each rate is the best of ten."""
    copy, read = _memory(device.device)
    shape = {"m": SIDE, "n": SIDE, "k": SIDE}
    baselines = {
        "bf16": linear(device.device, **shape)[2], "int8": eight_bit(device.device, **shape, dtype=torch.int8)[0],
        "fp8": eight_bit(device.device, **shape, dtype=torch.float8_e4m3fn)[0],
    }  # fmt: skip
    products: dict[str, float] = {}
    refused: dict[str, str] = {}
    for name, baseline in baselines.items():
        try:
            products[name] = 2 * SIDE**3 / _best(baseline.make(0)) / 1e6
        except (RuntimeError, NotImplementedError) as error:
            refused[name] = str(error).splitlines()[0]
    return Ceilings(copy=copy, read=read, products=products, refused=refused)


def _memory(device: torch.device) -> tuple[float, float]:
    source = torch.zeros(BYTES // 4, device=device)
    target = torch.empty_like(source)
    copy = 2 * BYTES / _best(lambda: target.copy_(source)) / 1e3
    return copy, BYTES / _best(lambda: torch.sum(source)) / 1e3


def _best(launch: Callable[[], object]) -> float:
    """Return the least microseconds of ten launches, by events."""
    times = []
    for _ in range(REPEATS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        launch()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    return float(np.min(times))


def clocks() -> dict[str, str]:
    """Return what nvidia-smi says of clocks (MHz), power (W), temperature and driver; the reason if it says nothing."""
    if shutil.which("nvidia-smi") is None:
        return {"clocks": "unknown: nvidia-smi is not installed"}
    command = ["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader,nounits", "--id=0"]
    try:
        completed = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"clocks": f"unknown: nvidia-smi failed ({error})"}
    values = [value.strip() for value in completed.stdout.splitlines()[0].split(",")] if completed.stdout else []
    if completed.returncode or len(values) != len(QUERY.split(",")):
        return {"clocks": f"unknown: nvidia-smi ended with {completed.returncode}"}
    return dict(zip(QUERY.split(","), values, strict=True))

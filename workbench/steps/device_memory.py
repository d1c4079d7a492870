"""What is said and done where memory runs out, the machine's or a device's."""

from __future__ import annotations

import gc
import sys
from typing import Any

from workbench.errors import DeviceError, first_line
from workbench.memory import anonymous_memory, available_memory


def is_of_device(error: BaseException) -> bool:
    """Return whether a device ran out of memory."""
    torch: Any = sys.modules.get("torch")  # without it, nothing ran on a device
    return torch is not None and isinstance(error, torch.OutOfMemoryError)


def device_error(error: BaseException, title: str) -> DeviceError:
    """Return the named error, with the next best choice, of a step that cannot run with fewer samples at once."""
    return DeviceError(
        f"{title}: the device ran out of memory, and fewer samples at once are not possible ({first_line(error)}); use "
        "shorter samples (--window), the model in its own dtype (--dtype stored), another device, or the CPU "
        "(--device cpu)"
    )


def free() -> None:
    """Give back what the failed attempt held, the allocator's cache of a CUDA device too."""
    gc.collect()
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def smaller_rooms() -> tuple[tuple[int, str], ...]:
    """Return limits of memory, in bytes, under which work that ran out of it takes smaller pieces, and in words.

    Under the last one everything that can lie on the disk does: nothing is free by that limit.
    """
    quarter = anonymous_memory() + available_memory() // 4
    return (quarter, "pieces of a quarter of the memory"), (1, "the smallest pieces, and the rest on the disk")

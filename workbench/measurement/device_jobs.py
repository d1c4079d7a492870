"""Jobs for the kernels: on the GPU's one thread where there is a GPU, and every failure as one of our errors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from workbench.errors import BackendUnavailableError, DeviceError, DeviceLostError
from workbench.progress import Progress

if TYPE_CHECKING:
    from workbench_kernels.gpu.thread import Device, Report

T = TypeVar("T")


@contextlib.contextmanager
def kernel_errors() -> Iterator[None]:
    """Raise what the kernels raise as BackendUnavailableError or DeviceError, with the same message.

    A fault of the device is a DeviceLostError: the window's engine starts its process again after it.
    """
    from workbench_kernels import errors

    try:
        yield
    except errors.BackendUnavailable as error:
        raise BackendUnavailableError(str(error)) from error
    except errors.DeviceFault as error:
        raise DeviceLostError(str(error)) from error
    except (errors.CompileError, errors.OutOfDeviceMemory, errors.WrongResultError) as error:
        raise DeviceError(str(error)) from error


def on_gpu(title: str, job: Callable[[Device, Report], T], progress: Progress) -> T:
    """Run a job on the GPU's thread, in a stream of its own, and wait; ``progress`` is called on that thread.

    Raises BackendUnavailableError without a device, DeviceError when its memory runs out (later jobs run),
    DeviceLostError when it fails (no later job of this process runs), and what the job itself raises.
    """
    from workbench_kernels.gpu.thread import shared

    with kernel_errors():
        result: T = shared().run(title, job, lambda fraction, what: progress(fraction, what))
    return result

"""One thread that owns the device: its own stream, jobs one after another, every failure with its reason."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

import torch

from ..build import source as sources
from ..build.source import CudaSource
from ..errors import BackendUnavailable, DeviceFault, OutOfDeviceMemory
from .device import CudaDevice
from .launch import Executor

T = TypeVar("T")
Report = Callable[[float, str], None]
"""``report(fraction, what)``; called on the thread."""


class Device(Executor, Protocol):
    """An executor that can wait for what it was given."""

    @property
    def name(self) -> str:
        """What the device is called."""
        ...

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability, (9, 0) for example."""
        ...

    def synchronize(self) -> None:
        """Wait; raises what went wrong on the device since the last call."""
        ...

    def own_stream(self) -> None:
        """Give the calling thread a stream of its own."""
        ...


def silent(fraction: float, what: str) -> None:
    """Report to nobody."""


class GpuThread:
    """Runs jobs on the device, which is opened by the first of them.

    A job that runs out of memory ends with OutOfDeviceMemory, and the next one runs.  A fault of the device ends its
    job with DeviceFault; the CUDA context is lost then, so that all later jobs end with DeviceFault as well and say
    which one was the cause.  Without a device a job ends with BackendUnavailable.
    """

    def __init__(self, open_device: Callable[[], Device] = CudaDevice) -> None:
        self._open = open_device
        self._device: Device | None = None
        self._lost: str | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="gpu")

    def submit(self, title: str, job: Callable[[Device, Report], T], report: Report = silent) -> Future[T]:
        """Queue a job; its future holds the result or the error."""
        return self._pool.submit(self._run, title, job, report)

    def run(self, title: str, job: Callable[[Device, Report], T], report: Report = silent) -> T:
        """Queue a job and wait for it.  If the wait is interrupted, the job ends at its next report."""
        left = threading.Event()

        def forward(fraction: float, what: str) -> None:
            if left.is_set():
                raise CancelledError(f"{title}: nobody waits for it any more")
            report(fraction, what)

        try:
            return self.submit(title, job, forward).result()
        except BaseException:
            left.set()
            raise

    def close(self) -> None:
        """Wait for the job that runs, drop those that wait, and end the thread."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, title: str, job: Callable[[Device, Report], T], report: Report) -> T:
        if self._lost is not None:
            raise DeviceFault(f"{title} cannot run: {self._lost}. The device can be used again from a new process")
        if self._device is None:
            self._device = self._open()
            self._device.own_stream()
        try:
            result = job(self._device, report)
            self._device.synchronize()
        except Exception as error:
            self._raise(title, error)
            raise
        return result

    def _raise(self, title: str, error: Exception) -> None:
        """Raise the named error for one of torch's or CuPy's; return for any other."""
        if isinstance(error, torch.OutOfMemoryError) or type(error).__name__ == "OutOfMemoryError":
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            raise OutOfDeviceMemory(
                f"{title} needs more memory than the device has left ({_first_line(error)}). Choose a smaller batch or "
                "shape, or close other programs on the device"
            ) from error
        if is_fault(error):
            self._lost = f"{title} ended with a fault of the device ({_first_line(error)})"
            raise DeviceFault(f"{self._lost}; its state is lost, and a new process is needed to use it") from error


@functools.cache
def shared() -> GpuThread:
    """Return the thread of this process: two would take the device's memory from each other."""
    return GpuThread()


def is_fault(error: Exception) -> bool:
    """Return whether an error comes from the device or its driver, after which the CUDA context cannot be trusted."""
    if isinstance(error, DeviceFault) or type(error).__name__ in ("AcceleratorError", "CUDARuntimeError"):
        return True
    return isinstance(error, RuntimeError) and "CUDA error" in str(error)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def compile_all(device: Device, needed: Sequence[CudaSource], report: Report) -> dict[str, str]:
    """Load the images of sources, compiling those that are neither prebuilt nor cached.

    Returns, by file, where each image came from, or why the device has none.
    """
    origins: dict[str, str] = {}
    for number, item in enumerate(needed):
        report(number / len(needed), f"compiling {item.file}")
        try:
            origins[item.file] = sources.image(item, device.capability).origin
        except BackendUnavailable as error:
            origins[item.file] = str(error)
    report(1.0, "compiled")
    return origins

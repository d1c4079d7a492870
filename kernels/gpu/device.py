"""Runs kernels on a CUDA device through CuPy; memory is torch's, and the stream is torch's current one."""

from __future__ import annotations

import ctypes.util
import functools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from ..build import source as sources
from ..build.source import CudaSource, Resources
from ..errors import BackendUnavailable, DeviceFault
from .launch import Argument, Float, Int, Launch

DEFAULT_SHARED = 48 * 1024
"""Bytes of dynamic shared memory that a kernel may have without asking."""


def cuda_reason() -> str | None:
    """Return why there is no CUDA device to time on, None if there is one.  CuPy is not imported."""
    if torch.cuda.is_available():
        return None
    if ctypes.util.find_library("cuda") is None:
        return "no CUDA device: this machine has no NVIDIA driver"
    return "no CUDA device: a driver is installed, but torch sees no device"


def unavailable() -> str | None:
    """Return why no CUDA kernel runs here, None if they do.  Imports CuPy only where torch sees a device."""
    if not torch.cuda.is_available():
        return cuda_reason()
    try:
        import cupy
    except ImportError as error:
        return f"CuPy is not installed ({error}); pip install cupy-cuda13x"
    driver = cupy.cuda.runtime.driverGetVersion()
    needed = sources.CUDA[0] * 1000 + sources.CUDA[1] * 10
    if driver < needed:
        return f"the driver is for CUDA {driver // 1000}.{driver % 1000 // 10}; {needed // 1000}.0 or newer is needed"
    return None


class CudaDevice:
    """A device of this machine; raises BackendUnavailable with the reason where there is none."""

    def __init__(self, index: int = 0) -> None:
        if reason := unavailable():
            raise BackendUnavailable(reason)
        self.device = torch.device("cuda", index)
        properties = torch.cuda.get_device_properties(index)
        self.name: str = properties.name
        self.processors: int = properties.multi_processor_count
        self.capability: tuple[int, int] = (properties.major, properties.minor)

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Return memory of torch's pool."""
        return torch.empty(*shape, dtype=dtype, device=self.device)

    def synchronize(self) -> None:
        """Wait for all that was enqueued; raises what torch raises for a fault."""
        torch.cuda.synchronize(self.device)

    def own_stream(self) -> None:
        """Make a new stream the calling thread's current one."""
        torch.cuda.set_device(self.device)
        torch.cuda.set_stream(torch.cuda.Stream(self.device))  # type: ignore[no-untyped-call]

    def resources(self, source: CudaSource, entry: str) -> Resources:
        """Return what a loaded kernel takes, as the driver says."""
        function = _function(source, entry, self.device.index, self.capability)
        return Resources(
            registers=function.num_regs, stack=function.local_size_bytes, spills=0, shared=function.shared_size_bytes
        )

    def run(self, source: CudaSource, launch: Launch) -> None:
        """Enqueue a kernel on torch's current stream."""
        import cupy

        with cupy.cuda.Device(self.device.index):
            function = _function(source, launch.entry, self.device.index, self.capability)
            if launch.shared > DEFAULT_SHARED:
                _allow_shared(function, launch)
            stream = cupy.cuda.Stream.from_external(torch.cuda.current_stream(self.device))
            with stream:
                try:
                    function(launch.grid, (launch.block,), _arguments(launch.arguments), shared_mem=launch.shared)
                except cupy.cuda.driver.CUDADriverError as error:
                    raise DeviceFault(f"{launch.entry} could not be launched on {self.name}: {error}") from error


def _allow_shared(function: Any, launch: Launch) -> None:
    import cupy

    try:
        function.max_dynamic_shared_size_bytes = launch.shared
    except cupy.cuda.driver.CUDADriverError as error:
        raise BackendUnavailable(
            f"{launch.entry} needs {launch.shared} bytes of shared memory, more than this device has ({error})"
        ) from error


@functools.cache
def _function(source: CudaSource, entry: str, index: int, capability: tuple[int, int]) -> Any:
    return _module(source, index, capability).get_function(entry)


@functools.cache
def _module(source: CudaSource, index: int, capability: tuple[int, int]) -> Any:
    """Load a source's image on device ``index``.  A cubin gets the zero byte at its end that some loaders read."""
    import cupy

    image = sources.image(source, capability)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{Path(source.file).stem}.{image.kind}"
        path.write_bytes(image.data if image.data.endswith(b"\0") else image.data + b"\0")
        module = cupy.RawModule(path=str(path))
        try:
            module.compile()
        except cupy.cuda.driver.CUDADriverError as error:
            reason = f"the driver does not load the image for {image.architecture} ({image.origin}): {error}"
            raise BackendUnavailable(reason) from error
    return module


def _arguments(arguments: tuple[Argument, ...]) -> tuple[Any, ...]:
    import numpy as np

    def plain(argument: Argument) -> Any:
        if argument is None:
            return np.uint64(0)
        if isinstance(argument, torch.Tensor):
            return np.uint64(argument.data_ptr())
        if isinstance(argument, Float):
            return np.float32(argument.value)
        return np.int32(argument.value) if isinstance(argument, Int) else np.int64(argument.value)

    return tuple(map(plain, arguments))

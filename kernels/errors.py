"""What the kernels raise."""

from __future__ import annotations


class BackendUnavailable(RuntimeError):  # noqa: N818  (the name says what is the matter, as in "device unavailable")
    """A kernel cannot run here: no CuPy, no driver, no device, a device too old, no image for it.  Says which and what
    to do."""


class CompileError(RuntimeError):
    """CUDA source that does not compile; the message holds the compiler's ``file(line): error``."""


class ArgumentError(ValueError):
    """A tensor or a number that a kernel does not take; the message says what came and what was expected."""


class OutOfDeviceMemory(RuntimeError):  # noqa: N818
    """The device has too little memory left for a job; other jobs can run."""


class DeviceFault(RuntimeError):  # noqa: N818
    """A launch failed on the device.  The CUDA context may be lost: what runs next in this process may fail as well."""


class WrongResultError(RuntimeError):
    """A kernel's result is not its reference's; it is not timed."""

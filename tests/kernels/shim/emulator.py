"""Builds a ``.cu`` file with g++ and runs its kernels on the CPU, one fiber for each CUDA thread."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from workbench_kernels.build import nvrtc
from workbench_kernels.build.source import FOLDER, CudaSource, expand
from workbench_kernels.gpu.launch import Argument, Float, Int, Launch, Long

from .. import ahead

HERE = Path(__file__).parent
ORDERS = ("forward", "reverse", "random", "greedy")
PLAIN = ("-O1",)
THREADS = ("-O1", "-g", "-fsanitize=thread", "-DSHIM_THREADS", "-pthread")
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
OPTIONS = ("-std=c++17", "-fno-strict-aliasing", "-ffp-contract=off", "-w", "-fPIC", "-shared", "-fvisibility=hidden")
POISON = 0xA5
SHIM = ("fibers.h", "threads.h", "grid.h", "portable_host.h")


class EmulatedFault(RuntimeError):  # noqa: N818
    """What a kernel did wrong, with block and thread; or a kernel that g++ does not build."""


def missing() -> str | None:
    """Return why nothing can be emulated here, None if it can."""
    if shutil.which("g++") is None:
        return "g++ is not installed: kernels cannot be run on the CPU"
    try:
        nvrtc.include_folder()
    except Exception as error:
        return f"kernels cannot be run on the CPU: {error}"
    return None


def _flags() -> tuple[str, ...]:
    return {"": PLAIN, "thread": THREADS}.get(os.environ.get("QW_SANITIZE", ""), SANITIZED)


def build(text: str, entries: tuple[str, ...], flags: tuple[str, ...] = PLAIN) -> Path:
    """Compile expanded source to a shared library, kept by the hash of all that goes into it."""
    wrapped = text + "".join(f"SHIM_ENTRY({entry})\n" for entry in entries)
    shim = "".join((HERE / name).read_text(encoding="utf-8") for name in SHIM)
    key = hashlib.sha256("\0".join((wrapped, shim, *flags, *OPTIONS)).encode()).hexdigest()[:24]
    folder = Path(tempfile.gettempdir()) / f"kernel-shim-{os.getuid()}"
    library = folder / f"{key}.so"
    if library.is_file():
        return library
    folder.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        source, made = Path(place) / "kernel.cpp", Path(place) / "kernel.so"
        source.write_text(wrapped, encoding="utf-8")
        folders = [nvrtc.include_folder(), *(folder / "include" for folder in nvrtc.toolkit_folders())]
        headers = [f"-isystem{folder}" for folder in folders if folder.is_dir()]
        command = ["g++", *OPTIONS, *flags, f"-I{HERE}", *headers, str(source), "-o", str(made)]
        completed = subprocess.run(command, capture_output=True, text=True)
        if completed.returncode:
            raise EmulatedFault(f"g++ does not build the kernel:\n{completed.stderr[:4000]}")
        os.replace(made, library)
    return library


@functools.cache
def load(library: Path) -> ctypes.CDLL:
    """Load a library; its launch function returns null or a message."""
    loaded = ctypes.CDLL(str(library))
    loaded.shim_launch.restype = ctypes.c_char_p
    loaded.shim_launch.argtypes = [
        ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint), ctypes.POINTER(ctypes.c_uint), ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_ulonglong,
    ]  # fmt: skip
    return loaded


def _value(argument: Argument) -> ctypes._SimpleCData[object]:
    if argument is None:
        return ctypes.c_void_p(None)
    if isinstance(argument, torch.Tensor):
        return ctypes.c_void_p(argument.data_ptr())
    kinds = {Int: ctypes.c_int, Long: ctypes.c_longlong, Float: ctypes.c_float}
    return kinds[type(argument)](argument.value)


@dataclass(frozen=True, kw_only=True)
class Emulator:
    """An executor on the CPU.  ``changes`` are replacements made in the source first: seeded bugs."""

    order: str = "forward"
    seed: int = 1
    processors: int = 2
    device: torch.device = torch.device("cpu")
    changes: tuple[tuple[str, str], ...] = ()

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Return memory full of a pattern, so that what a kernel leaves out shows."""
        made = torch.empty(*shape, dtype=dtype)
        made.view(-1).view(torch.uint8).fill_(POISON)
        return made

    def text(self, source: CudaSource) -> str:
        """Return the expanded source with the changes, each of which must be found once."""
        text = expand(FOLDER / source.file)
        for old, new in self.changes:
            if text.count(old) != 1:
                raise ValueError(f"{source.file} has {old!r} {text.count(old)} times; expected once")
            text = text.replace(old, new)
        return text

    def run(self, source: CudaSource, launch: Launch) -> None:
        """Run a kernel to its end; raises EmulatedFault with what it did wrong."""
        library = load(ahead.result(build, self.text(source), source.entries, _flags()))
        values = [_value(argument) for argument in launch.arguments]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        grid, block = (ctypes.c_uint * 3)(*launch.grid), (ctypes.c_uint * 3)(launch.block, 1, 1)
        wrong = library.shim_launch(
            launch.entry.encode(), grid, block, launch.shared, pointers, ORDERS.index(self.order), self.seed
        )
        if wrong:
            raise EmulatedFault(f"{launch.entry}: {wrong.decode()}")

"""NVIDIA's runtime compiler through ctypes: compiles CUDA C++ to cubins and PTX; needs neither a GPU nor CuPy."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import BackendUnavailable, CompileError

INSTALL = 'pip install "nvidia-cuda-nvrtc==13.0.*" "nvidia-cuda-runtime==13.0.*" "nvidia-cuda-crt==13.0.*"'
_WINDOWS = sys.platform == "win32"
_PLACES = ("bin", "bin/x64") if _WINDOWS else ("lib", "lib64")
_LIBRARY, _BUILTINS = (
    ("nvrtc64_1*_0.dll", "nvrtc-builtins64_1*.dll")
    if _WINDOWS
    else ("libnvrtc.so.1[3-9]", "libnvrtc-builtins.so.1[3-9].*")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A cubin (or PTX text, as bytes) and what the compiler printed."""

    image: bytes
    log: str


def toolkit_folders() -> Iterator[Path]:
    """Yield the folders that may hold ``include`` and ``lib`` of a CUDA toolkit, the Python packages first."""
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or []) if spec else []:
        yield from (path for path in sorted(Path(place).glob("cu1[3-9]"), reverse=True) if path.is_dir())
    for name in ("CUDA_PATH", "CUDA_HOME"):
        if os.environ.get(name):
            yield Path(os.environ[name])
    yield Path("/usr/local/cuda")


@functools.cache
def include_folder() -> Path:
    """Return the folder of ``cuda_fp16.h``; raises BackendUnavailable without one."""
    for folder in toolkit_folders():
        if (folder / "include" / "cuda_fp8.h").is_file():
            return folder / "include"
    raise BackendUnavailable(f"CUDA's header files are not installed; {INSTALL}")


@functools.cache
def library() -> ctypes.CDLL:
    """Return libnvrtc; raises BackendUnavailable where it is not installed."""
    folders = [folder / place for folder in toolkit_folders() for place in _PLACES]
    for file in (file for folder in folders for file in sorted(folder.glob(_LIBRARY))):
        try:
            for builtins in file.parent.glob(_BUILTINS):  # NVRTC opens it by name, and does not look beside itself
                ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(str(file))
        except OSError:
            continue
    known = ctypes.util.find_library("nvrtc")
    if known is None:
        raise BackendUnavailable(f"NVRTC, CUDA's runtime compiler, is not installed; {INSTALL}")
    return ctypes.CDLL(known)


def reason() -> str | None:
    """Return why nothing can be compiled here, None if it can."""
    try:
        library()
        include_folder()
    except BackendUnavailable as error:
        return str(error)
    return None


def _check(code: int) -> None:
    if code:
        text = library().nvrtcGetErrorString
        text.restype = ctypes.c_char_p
        raise CompileError(f"NVRTC: {text(code).decode()}")


@functools.cache
def version() -> tuple[int, int]:
    """Return NVRTC's version, (13, 0) for example."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return major.value, minor.value


@functools.cache
def architectures() -> tuple[int, ...]:
    """Return the compute capabilities, times ten, that this NVRTC compiles for."""
    count = ctypes.c_int()
    _check(library().nvrtcGetNumSupportedArchs(ctypes.byref(count)))
    numbers = (ctypes.c_int * count.value)()
    _check(library().nvrtcGetSupportedArchs(numbers))
    return tuple(numbers)


def compile_program(text: str, name: str, options: tuple[str, ...], *, ptx: bool = False) -> Compiled:
    """Compile ``text``, which the messages call ``name``; raises CompileError with the compiler's lines."""
    nvrtc = library()
    program = ctypes.c_void_p()
    _check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), name.encode(), 0, None, None))
    try:
        flags = [f"-I{include_folder()}", *options]
        array = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
        failed = nvrtc.nvrtcCompileProgram(program, len(flags), array)
        log = _read(program, "ProgramLog").rstrip(b"\0 \n").decode(errors="replace")
        if failed:
            raise CompileError(f"{name} does not compile with {' '.join(options)}:\n{log}")
        return Compiled(image=_read(program, "PTX" if ptx else "CUBIN"), log=log)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _read(program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _check(getattr(library(), f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(max(size.value, 1))
    _check(getattr(library(), f"nvrtcGet{what}")(program, buffer))
    return buffer.raw[: size.value]

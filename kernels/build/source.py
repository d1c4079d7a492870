"""From a ``.cu`` file to a loadable image: prebuilt, from the cache, compiled now, or PTX that the driver compiles.

CuPy's own build is not used: its cache does not see changed header files, and it always flushes denormals to zero.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..errors import BackendUnavailable
from . import nvrtc

_ROOT = Path(__file__).parent.parent
FOLDER = _ROOT / "gpu" / "cuda"
"""Where the CUDA sources are."""
PREBUILT = _ROOT / "cubins"
"""Where ``packaging/build_cubins.py`` puts the images that come with a wheel."""
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120")
OPTIONS = ("-std=c++17", "-ftz=false", "-prec-div=true", "-prec-sqrt=true", "--ptxas-options=-v")
CUDA = (13, 0)
"""The CUDA version that the prebuilt images are made with; a driver must be at least as new."""
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaSource:
    """A ``.cu`` file of ``kernels/gpu/cuda``: its ``extern "C"`` kernels, and the architectures it claims to run on."""

    file: str
    entries: tuple[str, ...]
    architectures: tuple[str, ...] = ARCHITECTURES

    @property
    def text(self) -> str:
        """The source with its local header files in place, so that a change of any of them changes the key."""
        return expand(FOLDER / self.file)

    def minimum(self) -> tuple[int, int]:
        """Return the lowest compute capability, (8, 9) for example."""
        return min(capability(name) for name in self.architectures)


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What a driver loads: ``kind`` is cubin or ptx; ``origin`` is prebuilt, cache or compiled."""

    data: bytes
    kind: str
    origin: str
    architecture: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What one kernel takes: registers of a thread; bytes of stack, of spills and of static shared memory."""

    registers: int
    stack: int
    spills: int
    shared: int


def capability(architecture: str) -> tuple[int, int]:
    """Return (9, 0) for ``sm_90a``, (12, 0) for ``sm_120``."""
    number = int(re.sub(r"\D", "", architecture))
    return number // 10, number % 10


def expand(path: Path) -> str:
    """Return a file with its quoted includes in place, each once; ``#line`` keeps the compiler's messages right."""
    return "\n".join(_lines(path, set())) + "\n"


def _lines(path: Path, seen: set[Path]) -> list[str]:
    seen.add(path)
    lines = [f'#line 1 "{path.name}"']
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = _INCLUDE.match(line)
        if match is None:
            lines.append("" if line.strip() == "#pragma once" else line)
            continue
        included = path.parent / match[1]
        if not included.is_file():
            raise FileNotFoundError(f"{path.name}, line {number}, includes {match[1]}, which is not in {path.parent}")
        if included not in seen:
            lines += _lines(included, seen)
        lines.append(f'#line {number + 1} "{path.name}"')
    return lines


def source_key(text: str, architecture: str) -> str:
    """Return the hash of what decides a prebuilt image's contents, apart from the compiler's version."""
    return hashlib.sha256("\0".join((text, *OPTIONS, architecture)).encode()).hexdigest()[:32]


def cache_folder() -> Path:
    """Return the user's cache for compiled images; ``WORKBENCH_KERNEL_CACHE`` overrides it."""
    if os.environ.get("WORKBENCH_KERNEL_CACHE"):
        return Path(os.environ["WORKBENCH_KERNEL_CACHE"])
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home()))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "quantization-workbench" / "cubins"


def compile_text(text: str, name: str, architecture: str, *, ptx: bool = False) -> nvrtc.Compiled:
    """Compile expanded source for ``sm_90`` (a cubin) or, with ``ptx``, for its virtual architecture."""
    target = architecture.replace("sm_", "compute_") if ptx else architecture
    return nvrtc.compile_program(text, name, (f"--gpu-architecture={target}", *OPTIONS), ptx=ptx)


def cubin(source: CudaSource, architecture: str) -> Image:
    """Return a source's cubin: prebuilt, else cached, else compiled.  Raises BackendUnavailable, CompileError."""
    text = source.text
    image = prebuilt(source, architecture)
    if image is not None:
        return image
    key = hashlib.sha256(f"{source_key(text, architecture)}{nvrtc.version()}".encode()).hexdigest()[:32]
    path = cache_folder() / architecture / f"{Path(source.file).stem}-{key}.cubin"
    data = _read_cubin(path)
    if data is not None:
        return Image(data=data, kind="cubin", origin="cache", architecture=architecture)
    data = compile_text(text, source.file, architecture).image
    _write(path, data)
    return Image(data=data, kind="cubin", origin="compiled", architecture=architecture)


def prebuilt(source: CudaSource, architecture: str) -> Image | None:
    """Return the image that came with the package, None if there is none for this very source."""
    name = f"{Path(source.file).stem}-{source_key(source.text, architecture)}.cubin"
    data = _read_cubin(PREBUILT / architecture / name)
    return None if data is None else Image(data=data, kind="cubin", origin="prebuilt", architecture=architecture)


def _read_cubin(path: Path) -> bytes | None:
    """Return a cubin's bytes; None if the file is missing or cut short, so that it is made again."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    return data if data.startswith(b"\x7fELF") else None


def _write(path: Path, data: bytes) -> None:
    """Write at once or not at all; a cache that cannot be written costs time, no more."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(data)
        os.replace(file.name, path)
    except OSError:
        return


def image(source: CudaSource, device: tuple[int, int]) -> Image:
    """Return what a device of capability ``device`` loads; raises BackendUnavailable with the reason if nothing fits.

    In this order: a cubin for this device; one for an older device of its generation that came with the package;
    PTX of the newest architecture that the compiler knows and the device is not older than.
    """
    if device < source.minimum():
        required, available = (".".join(map(str, pair)) for pair in (source.minimum(), device))
        raise BackendUnavailable(
            f"{source.file} needs compute capability {required} or newer, the device has {available}"
        )
    exact = f"sm_{device[0]}{device[1]}"
    specific = [name for name in (exact + "a", exact) if name in source.architectures]
    if all(name.endswith("a") for name in source.architectures) and not specific:
        raise BackendUnavailable(f"{source.file} runs on {', '.join(source.architectures)} only, the device is {exact}")
    if specific:
        return cubin(source, specific[0])
    return _older(source, device) or _ptx(source, device)


def _older(source: CudaSource, device: tuple[int, int]) -> Image | None:
    names = [name for name in source.architectures if not name.endswith("a") and capability(name)[0] == device[0]]
    for name in sorted(names, key=capability, reverse=True):
        if capability(name) <= device and (nvrtc.reason() is None or prebuilt(source, name)):
            return cubin(source, name)
    return None


def _ptx(source: CudaSource, device: tuple[int, int]) -> Image:
    known = [f"sm_{number}" for number in nvrtc.architectures() if (number // 10, number % 10) <= device]
    usable = [name for name in known if capability(name) >= source.minimum()]
    if not usable:
        raise BackendUnavailable(f"{source.file}: this NVRTC compiles for nothing that a device of {device} can run")
    data = compile_text(source.text, source.file, usable[-1], ptx=True).image
    return Image(data=data, kind="ptx", origin="compiled", architecture=usable[-1])


@functools.cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    return (
        re.compile(r"Compiling entry function '(\w+)'"),
        re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"),
        re.compile(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?"),
    )


def resources(log: str) -> dict[str, Resources]:
    """Read the assembler's report: what every kernel of a compilation takes."""
    entry, frame, used = _patterns()
    kernels: dict[str, Resources] = {}
    name, stack, spills = "", 0, 0
    for line in log.splitlines():
        if match := entry.search(line):
            name = match[1]
        elif match := frame.search(line):
            stack, spills = int(match[1]), int(match[2]) + int(match[3])
        elif (match := used.search(line)) and name:
            kernels[name] = Resources(registers=int(match[1]), stack=stack, spills=spills, shared=int(match[2] or 0))
    return kernels

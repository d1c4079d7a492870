"""A pretend accelerator: the device "pretend" over host memory, on which any mixture of devices fails.

Built from ``pretend.cpp`` with the system's C++ compiler against torch's headers, once for each version of both; the
compiled library is stored in a cache folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import types
from pathlib import Path

import torch

SOURCE = Path(__file__).with_name("pretend.cpp")
NAME = "pretend"


def compiler() -> str | None:
    """Return the C++ compiler, None where there is none."""
    return next(filter(None, map(shutil.which, (os.environ.get("CXX", ""), "c++", "g++", "clang++"))), None)


def build(folder: Path) -> Path:
    """Compile the backend into ``folder`` unless it is there; raises RuntimeError with the compiler's first lines."""
    from torch.utils import cpp_extension

    program = compiler()
    if program is None:
        raise RuntimeError("there is no C++ compiler")
    circumstances = f"{torch.__version__} {program} {sys.platform}".encode()
    key = hashlib.sha256(SOURCE.read_bytes() + circumstances).hexdigest()[:16]
    library = folder / f"pretend-{key}.so"
    if library.exists():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{library.stem}-{os.getpid()}.part"
    command = [
        program, "-shared", "-fPIC", "-O0", "-std=c++20", str(SOURCE), "-o", str(part), "-w",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        *(f"-I{place}" for place in cpp_extension.include_paths()),
        *(f"-L{place}" for place in cpp_extension.library_paths()), "-lc10", "-ltorch_cpu",
    ]  # fmt: skip
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    if completed.returncode:
        raise RuntimeError(f"the pretend accelerator does not compile:\n{completed.stderr[:2000]}")
    part.replace(library)
    return library


def install(folder: Path) -> None:
    """Build the backend and make the device "pretend" known to torch, once for this process."""
    if torch._C._get_privateuse1_backend_name() == NAME:
        return
    torch.ops.load_library(build(folder))
    torch.utils.rename_privateuse1_backend(NAME)
    module = types.ModuleType("torch.pretend")
    facts = {
        "is_available": lambda: True, "is_initialized": lambda: True, "device_count": lambda: 1,
        "current_device": lambda: 0, "_is_in_bad_fork": lambda: False, "manual_seed_all": lambda seed: None,
        "_lazy_init": lambda: None, "synchronize": lambda device=None: None,
    }  # fmt: skip
    for name, fact in facts.items():
        setattr(module, name, fact)
    torch._register_device_module(NAME, module)
    torch.utils.generate_methods_for_privateuse1_backend()

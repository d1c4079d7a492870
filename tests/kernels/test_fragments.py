"""How operands of tensor cores lie across a warp: the shim as the PTX manual says, a device as the shim.

Written out once more here, element by element: PTX ISA 9.0, "Matrix Fragments for mma.m16n8k16 / mma.m16n8k32" and
"ldmatrix".  All values are small integers, so that every sum is exact.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from workbench_kernels.build import nvrtc, source
from workbench_kernels.build.source import CudaSource, compile_text, resources
from workbench_kernels.catalog import cuda_reason
from workbench_kernels.gpu.device import CudaDevice
from workbench_kernels.gpu.launch import Launch

from .shim import emulator
from .shim.emulator import Emulator, missing

SOURCE = CudaSource(
    file="fragments.cu", entries=("fragments_f16", "fragments_s8", "fragments_e4m3", "matrices"),
    architectures=("sm_89", "sm_90", "sm_100", "sm_120"),
)  # fmt: skip
KINDS = {  # entry -> element, products of one instruction along K, result
    "fragments_f16": (torch.float16, 16, torch.float32),
    "fragments_s8": (torch.int8, 32, torch.int32),
    "fragments_e4m3": (torch.float8_e4m3fn, 32, torch.float32),
}
SHIM = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture(autouse=True)
def kernels_of_this_folder(monkeypatch):
    for module in (source, emulator):
        monkeypatch.setattr(module, "FOLDER", Path(__file__).parent / "shim")


def operands(kind: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a matrix ``[16, K]`` and one ``[K, 8]`` of small integers."""
    dtype, depth, _ = KINDS[kind]
    generator = torch.Generator().manual_seed(depth)
    left, right = (torch.randint(-4, 5, size, generator=generator) for size in ((16, depth), (depth, 8)))
    return left.to(dtype), right.to(dtype)


def registers(kind: str, left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what every lane holds of both, as the manual says: 16 and 8 bytes of it."""
    dtype, depth, _ = KINDS[kind]
    each = depth // 8  # elements of a register
    a, b = torch.zeros(32, 4 * each, dtype=dtype), torch.zeros(32, 2 * each, dtype=dtype)
    for lane in range(32):
        group, pair = lane // 4, lane % 4
        for register in range(4):
            for i in range(each):
                at = pair * each + i + (depth // 2 if register >= 2 else 0)
                a[lane, register * each + i] = left[group + 8 * (register % 2), at]
                if register < 2:
                    b[lane, register * each + i] = right[pair * each + i + register * depth // 2, group]
    return a, b


def product(on, kind: str) -> torch.Tensor:
    """Return the sums of every lane ``[32, 4]``."""
    a, b = (x.view(torch.uint8).to(on.device) for x in registers(kind, *operands(kind)))
    out = torch.zeros(32, 4, dtype=KINDS[kind][2], device=on.device)
    on.run(SOURCE, Launch(entry=kind, grid=(1, 1, 1), block=32, arguments=(out, a, b)))
    return out.cpu()


def loaded(on) -> torch.Tensor:
    """Return the halves of every lane ``[32, 8]`` of a 16 x 16 matrix that counts its elements."""
    x = torch.arange(256).half().to(on.device)
    out = torch.zeros(32, 8, dtype=torch.float16, device=on.device)
    on.run(SOURCE, Launch(entry="matrices", grid=(1, 1, 1), block=32, arguments=(out, x)))
    return out.cpu()


@SHIM
@pytest.mark.parametrize("kind", KINDS)
def test_a_product_lies_as_the_manual_says(kind):
    left, right = operands(kind)
    expected, out = left.float() @ right.float(), product(Emulator(), kind)
    for lane in range(32):
        for i in range(4):
            assert out[lane, i] == expected[lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2]


@SHIM
def test_loaded_matrices_lie_as_the_manual_says():
    out = loaded(Emulator())
    for lane in range(32):
        for i in range(8):
            row, column = lane // 4 + 8 * (i // 2 % 2), lane % 4 * 2 + i % 2 + 8 * (i // 4)
            assert out[lane, i] == 16 * row + column


@pytest.mark.skipif(nvrtc.reason() is not None, reason=str(nvrtc.reason()))
@pytest.mark.parametrize("architecture", SOURCE.architectures)
def test_the_device_can_be_asked(architecture):
    result = resources(compile_text(SOURCE.text, SOURCE.file, architecture).log)
    assert set(result) == set(SOURCE.entries) and not any(used.stack + used.spills for used in result.values())


@SHIM
@pytest.mark.gpu
@pytest.mark.skipif(cuda_reason() is not None, reason=str(cuda_reason()))
def test_a_device_agrees_with_the_shim():
    on = CudaDevice()
    if on.capability < SOURCE.minimum():
        pytest.skip(f"e4m3 needs compute capability 8.9, the device has {on.capability}")
    assert torch.equal(loaded(on), loaded(Emulator()))
    for kind in KINDS:
        assert torch.equal(product(on, kind), product(Emulator(), kind)), kind

"""The CPU shim finds what it is there to find."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from workbench_kernels.build.source import CudaSource
from workbench_kernels.gpu.launch import Launch

from .shim import emulator
from .shim.emulator import ORDERS, EmulatedFault, Emulator, missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

FAULTY = CudaSource(
    file="faulty.cu",
    entries=("missed_barrier", "ended_early", "missed_shuffle", "foreign_lane", "misaligned", "no_barrier",
             "overwritten", "copy_without_wait", "beyond_the_end"),
)  # fmt: skip


@pytest.fixture(autouse=True)
def kernels_of_this_folder(monkeypatch):
    monkeypatch.setattr(emulator, "FOLDER", Path(__file__).parent / "shim")


def run(entry: str, *arguments: torch.Tensor, block: int = 64, order: str = "forward", shared: int = 0) -> None:
    Emulator(order=order).run(
        FAULTY, Launch(entry=entry, grid=(1, 1, 1), block=block, arguments=arguments, shared=shared)
    )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("entry", "message"),
    [("missed_barrier", "deadlock"), ("ended_early", "some threads have ended, others wait at a barrier"),
     ("missed_shuffle", "deadlock|different collectives"), ("foreign_lane", "reads a lane outside its mask"),
     ("misaligned", "not a multiple of 16")],
)  # fmt: skip
def test_a_wrong_kernel_is_named_with_its_block(entry, message, order):
    x = torch.zeros(64)
    with pytest.raises(EmulatedFault, match=rf"{entry}: block \(0, 0, 0\).*({message})"):
        run(entry, x, order=order)


def reversed_in_every_order(entry: str) -> list[bool]:
    result = []
    for order in ORDERS:
        x, y = torch.arange(64.0), torch.zeros(64)
        run(entry, y, x, order=order)
        result.append(torch.equal(y, x.flip(0)))
    return result


def test_a_missing_barrier_shows_in_some_order():
    assert not all(reversed_in_every_order("no_barrier"))


def test_what_is_overwritten_while_another_warp_reads_shows_in_some_order():
    received = []
    for order in ORDERS:
        y = torch.zeros(64)
        run("overwritten", y, order=order)
        received.append(bool((y == 1).all()))
    assert not all(received)


def test_an_asynchronous_copy_that_is_not_waited_for_is_poison():
    x, y = torch.ones(128), torch.zeros(128)
    run("copy_without_wait", y, x, block=32, shared=512)
    assert y.isnan().all()


def test_shared_memory_starts_as_poison():
    x, y = torch.ones(128), torch.zeros(128)
    run("copy_without_wait", y, x, block=1, shared=512)
    assert y[4:].eq(0).all() and y[:4].isnan().all()


def test_a_kernel_that_does_not_build_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(emulator, "FOLDER", tmp_path)
    (tmp_path / "broken.cu").write_text("int broken = nothing;\n")
    broken = CudaSource(file="broken.cu", entries=())
    with pytest.raises(EmulatedFault, match=r"broken\.cu:1:14: error: .nothing. was not declared"):
        Emulator().run(broken, Launch(entry="none", grid=(1, 1, 1), block=1, arguments=()))

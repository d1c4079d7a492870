"""What runs on a device takes few and large operations: their number does not grow with the size of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from workbench.measurement.divergence import compare_logits
from workbench.numerics.formats import parse_scheme
from workbench.numerics.statistics.observe import observe


class Operations(TorchDispatchMode):
    """Counts operations."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


def operations(call: Callable[[], object]) -> int:
    with Operations() as counted:
        call()
    return counted.count


@pytest.mark.parametrize("name", ["int4-g128-asym", "int8-channel", "fp8-e4m3-channel", "nvfp4", "bf16"])
def test_rounding_takes_as_many_for_a_large_matrix_as_for_a_small_one(accelerator: str, name: str) -> None:
    scheme = parse_scheme(name)

    def rounded(rows: int) -> int:
        weight = torch.randn(rows, 512, generator=torch.Generator().manual_seed(0)).to(accelerator)
        return operations(lambda: scheme.round(weight, scheme.fit(weight, clip_search=True)))

    assert rounded(2048) == rounded(4)


def test_statistics_take_as_many_for_a_large_tensor_as_for_a_small_one(accelerator: str) -> None:
    def observed(rows: int) -> int:
        tensor = torch.randn(rows, 2048, generator=torch.Generator().manual_seed(0)).to(accelerator)
        return operations(lambda: observe(tensor, 0))

    assert observed(3000) == observed(4)


def test_comparing_logits_takes_as_many_for_many_rows_as_for_few(accelerator: str) -> None:
    def compared(rows: int) -> int:
        own, other = torch.randn(2, rows, 2048, generator=torch.Generator().manual_seed(0)).to(accelerator)
        return operations(lambda: compare_logits(own, other))

    assert compared(512) <= compared(4) + 4  # more than one tile's worth of rows is cut and joined

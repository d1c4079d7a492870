"""Schemes by size: families, and the next scheme with more or fewer bits."""

from __future__ import annotations

import pytest

from workbench.insight.schemes import families, neighbour, reference_bits, unlike
from workbench.planning.plan import KEEP

EVERY = tuple(name for _, names in families() for name in names)


@pytest.mark.parametrize(
    ("scheme", "fewer", "more"),
    [("q4_k", "iq4_xs", "q4_1"), ("q8_0", "q6_k", "bf16"), ("tq1_0", "iq1_s", "tq2_0"),
     ("int8-channel", "int8-tensor-asym", "int8-g32"), ("int8-g32", "int8-channel", "bf16"),
     ("mxfp4", "int4-g128-asym", "nvfp4"), ("fp32", "bf16", KEEP)],
)  # fmt: skip
def test_the_next_scheme_is_of_the_same_family(scheme: str, fewer: str, more: str) -> None:
    assert neighbour(scheme, (*EVERY, KEEP), -1) == fewer and neighbour(scheme, (*EVERY, KEEP), 1) == more


def test_more_is_more_and_fewer_is_fewer() -> None:
    for name in EVERY:
        for direction in (-1, 1):
            other = neighbour(name, (*EVERY, KEEP), direction)
            assert other is None or direction * (reference_bits(other) - reference_bits(name)) > 0


def test_at_the_end_there_is_none() -> None:
    assert neighbour(KEEP, EVERY, 1) is None and neighbour("q4_0", ("q4_0", "iq4_nl"), -1) is None
    assert neighbour(KEEP, ("fp16", "int8-channel"), -1) == "fp16"


def test_what_makes_values_alike() -> None:
    assert unlike("int4-g64-asym", "q4_k") == 0 == unlike("mxfp4", "mxfp4-gguf")
    assert unlike("int4-g64-asym", "mxfp4") == 2 and unlike("nf4-b64", "q4_0") == 1

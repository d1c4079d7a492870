"""bitsandbytes' tables: NF4 from its published construction, FP4 from its tree of bits, the dynamic map of scales."""

from __future__ import annotations

import numpy as np
import torch
from scipy.stats import norm

from tests.numerics.formats.references.weights import weights
from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.codebook import FP4_BNB, NF4, dynamic_map


def test_nf4_is_the_quantiles_of_a_normal_distribution() -> None:
    """``create_normal_map(offset=0.9677083)`` of bitsandbytes."""
    positive = norm.ppf(np.linspace(0.9677083, 0.5, 9)[:-1])
    negative = -norm.ppf(np.linspace(0.9677083, 0.5, 8)[:-1])
    levels = np.sort([*positive, 0.0, *negative])
    assert np.abs(NF4.table() - levels / levels.max()).max() < 1e-6
    assert NF4.bits == 4


def test_fp4_is_the_tree_of_bits() -> None:
    """Sign, then the branches of ``dDequantizeFP4Tree``."""
    tree = [0.0, 0.005208333333, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25]
    assert np.allclose(FP4_BNB.table(), [*tree, *(-value for value in tree)], rtol=1e-7, atol=0)


def test_the_dynamic_map_is_that_of_create_dynamic_map() -> None:
    """The same construction with torch, as published."""
    data: list[float] = []
    for exponent in range(7):
        bounds = torch.linspace(0.1, 1, 2**exponent + 1, dtype=torch.float32)
        means = (bounds[:-1] + bounds[1:]) / 2.0
        data += (10 ** (exponent - 6) * means).tolist() + (-(10 ** (exponent - 6)) * means).tolist()
    expected = torch.tensor(sorted([*data, 0.0, 1.0]), dtype=torch.float32)
    assert np.allclose(dynamic_map(), expected.numpy(), rtol=1.2e-7, atol=0)
    assert dynamic_map().size == 256


def test_quantization_is_that_of_the_reference_kernel() -> None:
    """The nearest table value of ``weight * (1 / absmax)`` in blocks of 64, by brute force; ties fall otherwise."""
    for kind, weight in weights().items():
        for name, element in (("nf4-b64", NF4), ("fp4-bnb-b64", FP4_BNB)):
            blocks = weight.reshape(-1, 64)
            absmax = blocks.abs().amax(dim=1, keepdim=True)
            table = torch.from_numpy(element.table())
            scaled = blocks * (1 / absmax.clamp(min=1e-38))
            theirs = table[(scaled.unsqueeze(-1) - table).abs().argmin(dim=-1)] * absmax
            ours = parse_scheme(name).quantize(weight).reshape(-1, 64)
            differ = ours != theirs
            assert kind == "ties" or float(differ.float().mean()) < 1e-3
            assert torch.allclose((ours - blocks)[differ].abs(), (theirs - blocks)[differ].abs(), rtol=1e-5, atol=0)


def test_double_quantization_costs_little_and_saves_what_is_published() -> None:
    weight = torch.randn(512, 512, generator=torch.Generator().manual_seed(0))
    errors = [float((parse_scheme(n).quantize(weight) - weight).square().mean()) for n in ("nf4-b64", "nf4-b64-dq")]
    assert abs(errors[1] / errors[0] - 1) < 2e-3
    saved = parse_scheme("nf4-b64").bits((4096, 4096)) - parse_scheme("nf4-b64-dq").bits((4096, 4096))
    assert abs(saved / 4096**2 - 0.373) < 1e-3

"""IQ1_S to IQ3_S: the package's decoder, a naive search, and the errors of llama.cpp's own encoder."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, dequantize

from workbench.errors import SchemeError
from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.gguf.lattice import LATTICES, Lattice, LatticeScheme, table
from workbench.numerics.rounding import algorithm
from workbench.numerics.rounding.algorithm import Context

THEIRS = {
    "IQ1_S": 0.193588, "IQ1_M": 0.153038, "IQ2_XXS": 0.095646, "IQ2_XS": 0.069073, "IQ2_S": 0.051970,
    "IQ3_XXS": 0.023054, "IQ3_S": 0.014809,
}  # fmt: skip
"""The relative weighted errors of ``ggml_quantize_chunk`` (llama.cpp, llama-cpp-python 0.3.36) on :func:`example`."""

each = pytest.mark.parametrize("lattice", LATTICES, ids=lambda lattice: lattice.ggml.lower())


def example() -> tuple[torch.Tensor, torch.Tensor]:
    """Return weights ``[8, 512]`` and the importance of their columns."""
    generator = np.random.default_rng(7)
    weights = generator.standard_normal((8, 512)) * np.exp(generator.standard_normal((8, 1)) * 0.5)
    weights = weights.astype(np.float32) * np.float32(0.02)
    return torch.from_numpy(weights), torch.from_numpy(np.exp(generator.standard_normal(512)).astype(np.float32))


@each
def test_what_is_written_is_what_the_package_decodes_and_stays_where_it_is(lattice: Lattice) -> None:
    scheme = LatticeScheme(lattice)
    assert parse_scheme(scheme.name) == scheme
    weights, importance = example()
    parameters = scheme.fit(weights, importance)
    stored, rounded = scheme.encode(weights, parameters), scheme.round(weights, parameters)
    kind = GGMLQuantizationType[scheme.ggml_type]
    assert stored.arrays["blocks"].shape[1] == 2 * GGML_QUANT_SIZES[kind][1]
    assert np.array_equal(dequantize(stored.arrays["blocks"], kind), rounded.numpy())
    assert np.array_equal(scheme.encode(rounded, parameters).arrays["blocks"], stored.arrays["blocks"])


@each
def test_the_weighted_error_is_below_that_of_llama_cpp(lattice: Lattice) -> None:
    scheme = LatticeScheme(lattice)
    weights, importance = example()
    method, context = algorithm("rtn-weighted"), Context(importance=importance[None])
    rounded = method.quantize(weights, scheme, context).values
    error = ((rounded - weights).double().square() * importance).sum() / (weights.double().square() * importance).sum()
    assert float(error) < 0.93 * THEIRS[scheme.ggml_type]


@pytest.mark.parametrize("name", ["iq2_s", "iq3_s"])
def test_entries_are_the_nearest_of_the_whole_table(name: str) -> None:
    scheme = parse_scheme(name)
    assert isinstance(scheme, LatticeScheme)
    weights, importance = example()
    weights = weights[:1, :256]
    parameters = scheme.fit(weights, importance[:256])
    rounded, grid = scheme.round(weights, parameters), torch.from_numpy(table(scheme.lattice).grid.T)
    weighing = importance[None, :256]
    size = scheme.lattice.vector
    for start in range(0, 256, size):
        part = slice(start, start + size)
        scale = float(parameters.scale[0, start // scheme.lattice.group])
        errors = ((scale * grid - weights[0, part].abs()).square() * weighing[0, part]).sum(dim=1)
        mine = ((rounded[0, part] - weights[0, part]).square() * weighing[0, part]).sum()
        assert float(mine) <= float(errors.min()) * (1 + 1e-4) + 1e-12


def test_signs_of_even_formats_multiply_to_plus() -> None:
    for name, first in itertools.product(("iq2_xxs", "iq2_xs", "iq3_xxs"), (1.0, -1.0)):
        weights = torch.full((1, 256), 0.5)
        weights[0, 0] *= first
        rounded = parse_scheme(name).quantize(weights)
        assert bool((rounded.reshape(-1, 8).sign().prod(dim=1) > 0).all())


def test_widths_that_are_no_whole_blocks_fall_back() -> None:
    scheme = parse_scheme("iq3_s")
    assert isinstance(scheme, LatticeScheme)
    assert scheme.fallback((4, 512)) is scheme
    assert [scheme.fallback((4, width)).name for width in (96, 100)] == ["iq4_nl", "fp16"]
    with pytest.raises(SchemeError, match="fixed range"):
        scheme.fit_range(-1.0, 1.0)

"""The contract that every algorithm keeps, and round-to-nearest itself."""

from __future__ import annotations

import pytest
import torch

from workbench.errors import AlgorithmError, PlanError
from workbench.numerics.formats import parse_scheme
from workbench.numerics.rounding import ALGORITHMS, Algorithm, Context, Rtn, algorithm, canonical

WEIGHT = torch.randn(12, 96, generator=torch.Generator().manual_seed(0)) ** 3
INPUTS = torch.randn(400, 96, generator=torch.Generator().manual_seed(1))
CONTEXT = Context(importance=INPUTS.square().mean(0, keepdim=True), second_moment=INPUTS.T @ INPUTS / 400)


@pytest.mark.parametrize("member", ALGORITHMS, ids=lambda member: member.name)
@pytest.mark.parametrize("name", ["int4-g32-asym", "int4-g32", "int8-channel", "fp8-e4m3-channel", "bf16"])
def test_values_are_on_the_grid_and_the_stored_form_decodes_to_them(member: Algorithm, name: str) -> None:
    scheme = parse_scheme(name)
    try:
        rounded = member.quantize(WEIGHT, scheme, CONTEXT)
    except AlgorithmError as error:
        assert scheme.name in str(error), "an algorithm that cannot serve a scheme names it"
        return
    assert rounded.values.dtype == torch.float32
    assert torch.equal(scheme.round(rounded.values, rounded.parameters), rounded.values)
    assert torch.equal(scheme.decode(scheme.encode(rounded.values, rounded.parameters)), rounded.values)
    assert algorithm(member.name) == member


def test_rtn_is_the_schemes_own_rounding() -> None:
    scheme = parse_scheme("int3-g32-asym")
    assert torch.equal(Rtn().quantize(WEIGHT, scheme).values, scheme.quantize(WEIGHT))


def test_clip_search_lowers_the_weighted_error() -> None:
    scheme = parse_scheme("int3-g32-asym")
    assert CONTEXT.importance is not None
    errors = [
        float(((algorithm(name).quantize(WEIGHT, scheme, CONTEXT).values - WEIGHT).square() * CONTEXT.importance).sum())
        for name in ("rtn", "rtn-clip")
    ]
    assert errors[1] < 0.98 * errors[0]


def test_an_unknown_algorithm_is_told() -> None:
    with pytest.raises(PlanError, match="closest are rtn"):
        algorithm("rtm")


@pytest.mark.parametrize(
    ("alias", "name"), [("adaround", "learned"), ("SignRound", "learned"), ("gptaq", "gptq-sequential")]
)
def test_names_from_papers_mean_our_algorithms(alias: str, name: str) -> None:
    assert algorithm(alias).name == canonical(alias) == name
    assert canonical(name) == name

"""Layers rounded together have the very bits that they have alone, for every scheme and algorithm."""

from __future__ import annotations

import pytest
import torch

from tests.models.networks import decoder, model_of
from workbench.models.summary import OutputKind
from workbench.numerics.formats import activation_schemes, standard_schemes
from workbench.numerics.rounding.round_weight import round_weight
from workbench.sensitivity import stacked_rounding
from workbench.sensitivity.stacked_rounding import rounded_layers, rounds_by_rows

OTHERS = ("q4_k", "q8_0", "nf4-b64-dq", "int8-tensor", "int4-g128-asym-sbf16", "mxfp6-e3m2")
NAMES = tuple(dict.fromkeys([*(scheme.name for scheme in standard_schemes()), *OTHERS]))


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.a, self.b, self.c = (torch.nn.Linear(256, n, bias=False) for n in (64, 33, 5))
        self.d = torch.nn.Linear(172, 40, bias=False)
        for index, parameter in enumerate(self.parameters()):
            parameter.data = torch.randn(parameter.shape, generator=generator) * 10.0 ** (index - 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.a(x)
        return result


@pytest.mark.parametrize("algorithm", ["rtn", "rtn-clip"])
@pytest.mark.parametrize("scheme", NAMES)
def test_rounding_together_gives_the_same_bits(scheme: str, algorithm: str) -> None:
    model = model_of(Net(), OutputKind.EMBEDDING)
    names = ["a", "b", "c"] if scheme in ("q4_k", "q8_0") else ["a", "d", "b", "c"]
    result = dict(rounded_layers(model, dict.fromkeys(names, (scheme,)), algorithm, {}))
    assert set(result) == set(names)
    for name in names:
        weight = model.weight(name).float()
        alone = round_weight(name, weight, scheme, algorithm).values
        assert torch.equal(result[name][scheme], alone)


def test_what_looks_beyond_a_row_is_rounded_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rounds_by_rows("int4-g32-asym") and rounds_by_rows("int8-channel") and rounds_by_rows("mxfp4")
    assert not any(map(rounds_by_rows, ("int8-tensor", "nvfp4", "q4_k")))
    assert not any(rounds_by_rows(item.name) for item in activation_schemes() if "tensor" in item.name)
    monkeypatch.setattr(stacked_rounding, "STACKED", 256 * 40)
    model = model_of(Net(), OutputKind.EMBEDDING)
    expected = dict.fromkeys(("a", "b", "c"), ("int4-g32",))
    assert list(stacked_rounding._stacks(model, expected, "rtn-clip")) == [["a"], ["b", "c"]]
    assert list(stacked_rounding._stacks(model, expected, "gptq")) == [["a"], ["b"], ["c"]]


def test_layers_with_other_open_schemes_are_apart() -> None:
    expected = {"up": ("int4-channel",), "down": ("int8-channel",), "value": ("int4-channel", "int8-channel")}
    result = dict(rounded_layers(decoder(), expected, "rtn-clip", {}))
    assert {name: tuple(changes) for name, changes in result.items()} == expected

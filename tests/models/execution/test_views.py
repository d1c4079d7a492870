"""Views of a model with other kept tensors and with ties cut; the network itself never changes."""

from __future__ import annotations

import pytest
import torch

from tests.models.networks import decoder, tokens
from workbench.errors import ModelError


@torch.no_grad()
def test_other_tensors_are_replaced_in_the_view_alone():
    model, batch = decoder(), tokens().tensors
    before = model.run(batch)
    zero = {name: torch.zeros(model.other(name).shape) for name in ("up.bias", "down.bias")}
    view = model.with_others(zero)
    assert torch.equal(view.other("up.bias"), zero["up.bias"]) and model.other("up.bias").any()
    with_weights = view.with_weights({"up": model.weight("up")})
    assert torch.equal(view.run(batch), with_weights.run(batch)) and not torch.equal(view.run(batch), before)
    network = model.body.network
    for name in zero:
        network.get_parameter(name).zero_()
    assert torch.equal(model.run(batch), view.run(batch))


def test_a_wrong_name_or_shape_is_refused():
    with pytest.raises(ModelError, match="up.bia.*up.bias"):
        decoder().with_others({"up.bia": torch.zeros(12)})
    with pytest.raises(ModelError, match=r"\(13,\).*\(12,\)"):
        decoder().with_others({"up.bias": torch.zeros(13)})
    with pytest.raises(ModelError, match="up is tied to no other"):
        decoder().untied(["up"])


@torch.no_grad()
def test_an_untied_head_has_its_own_weight():
    model, batch = decoder(), tokens().tensors
    before, own = model.run(batch), model.untied(["head"])
    assert own.summary.by_name["head"].tied_to is None and model.summary.by_name["head"].tied_to == "embed"
    assert torch.equal(own.run(batch), before)
    twice = own.with_weights({"head": 2 * model.weight("head")})
    assert torch.equal(twice.run(batch), 2 * before)
    assert torch.equal(twice.weight("embed"), model.weight("embed"))
    both = model.with_weights({"embed": 2 * model.weight("embed")})
    assert not torch.allclose(both.run(batch), 2 * before)
    assert torch.equal(both.untied(["head"]).run(batch), both.run(batch))
    assert torch.equal(model.run(batch), before)

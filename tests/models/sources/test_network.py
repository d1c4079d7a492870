"""Running, tapping and replacing weights: against the plain network."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn import functional

from tests.models.sources.networks import Experts, Images, Tokens, save_python, seeded
from workbench.errors import CannotRunError, DataError, ModelError, TrustRequiredError
from workbench.models.execution.network import NetworkModel
from workbench.models.model import Model
from workbench.models.sources import open_model

IDS = torch.arange(10).reshape(2, 5)
PICTURES = torch.linspace(-1, 1, 2 * 3 * 8 * 8).reshape(2, 3, 8, 8)
CASES = [(Tokens, {"input_ids": IDS}), (Images, {"inputs": PICTURES}), (Experts, {"inputs": torch.ones(3, 8)})]


def opened(folder: Path, kind: type[torch.nn.Module]) -> NetworkModel:
    model = open_model(save_python(folder, kind), trust=True)
    assert isinstance(model, NetworkModel) and isinstance(model, Model)
    return model


@pytest.mark.parametrize(("kind", "batch"), CASES)
def test_runs_as_the_plain_network(tmp_path: Path, kind: type[torch.nn.Module], batch: dict[str, torch.Tensor]) -> None:
    torch.testing.assert_close(opened(tmp_path, kind).run(batch), seeded(kind)(*batch.values()))


@pytest.mark.parametrize(("kind", "batch"), CASES)
def test_its_own_weights_change_nothing(
    tmp_path: Path, kind: type[torch.nn.Module], batch: dict[str, torch.Tensor]
) -> None:
    model = opened(tmp_path, kind)
    view = model.with_weights({layer.name: model.weight(layer.name) for layer in model.summary.layers})
    torch.testing.assert_close(view.run(batch), model.run(batch), rtol=1e-6, atol=1e-6)  # LSTMs pack their own weights


@pytest.mark.parametrize(("kind", "batch"), CASES)
def test_every_replaced_weight_is_the_one_that_runs(
    tmp_path: Path, kind: type[torch.nn.Module], batch: dict[str, torch.Tensor]
) -> None:
    model = opened(tmp_path, kind)
    before = model.run(batch)
    for layer in model.summary.layers:
        plain = seeded(kind)
        with torch.no_grad():
            plain.get_parameter(layer.parameter).mul_(0.5)
        view = model.with_weights({layer.name: model.weight(layer.name) * 0.5})
        torch.testing.assert_close(view.run(batch), plain(*batch.values()), msg=layer.name)
        assert torch.equal(view.weight(layer.name), model.weight(layer.name) * 0.5)
    assert torch.equal(model.run(batch), before)


def test_taps_see_each_layer_alone(tmp_path: Path) -> None:
    model = opened(tmp_path, Tokens)
    seen: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
    model.run({"input_ids": IDS}, tap=lambda name, x, y: seen.update({name: (x, y)}))
    assert seen.keys() == model.tappable == {"embed", "conv", "blocks.0.0", "blocks.0.2", "head"}
    x, y = seen["blocks.0.0"]
    bias = seeded(Tokens).get_parameter("blocks.0.0.bias")
    torch.testing.assert_close(y, functional.linear(x, model.weight("blocks.0.0"), bias))
    assert seen["embed"][0].dtype == torch.int64
    assert torch.equal(seen["embed"][1], functional.embedding(IDS, model.weight("embed")))


def test_a_tap_can_be_limited_and_leaves_nothing_behind(tmp_path: Path) -> None:
    model = opened(tmp_path, Tokens)
    seen: list[str] = []
    model.run({"input_ids": IDS}, tap=lambda name, x, y: seen.append(name), layers=["head"])
    model.run({"input_ids": IDS})
    assert seen == ["head"]


def test_an_error_in_a_tap_comes_out_as_it_is(tmp_path: Path) -> None:
    def tap(name: str, x: torch.Tensor, y: torch.Tensor) -> None:
        raise ZeroDivisionError(name)

    model = opened(tmp_path, Tokens)
    with pytest.raises(ZeroDivisionError, match="embed"):
        model.run({"input_ids": IDS}, tap=tap)
    model.run({"input_ids": IDS})


def test_inputs_are_replaced_before_the_layer_and_its_tap(tmp_path: Path) -> None:
    model = opened(tmp_path, Tokens)
    seen: list[torch.Tensor] = []
    model.run(
        {"input_ids": IDS}, tap=lambda name, x, y: seen.append(x), inputs={"head": torch.zeros_like}, layers=["head"]
    )
    assert not seen[0].any()


def test_inputs_of_what_no_module_runs_are_refused(tmp_path: Path) -> None:
    model = opened(tmp_path, Tokens)
    with pytest.raises(CannotRunError, match="attention.in_proj_weight"):
        model.run({"input_ids": IDS}, inputs={"attention.in_proj_weight": torch.round})


def test_gradients_reach_outputs_and_replaced_weights(tmp_path: Path) -> None:
    model = opened(tmp_path, Images)
    matrix = model.weight("up").clone().requires_grad_()
    outputs: list[torch.Tensor] = []
    result = model.with_weights({"up": matrix}).run({"inputs": PICTURES}, tap=lambda name, x, y: outputs.append(y))
    gradients = torch.autograd.grad(result.sum(), [matrix, *outputs])
    assert all(gradient.abs().sum() > 0 for gradient in gradients)
    plain = seeded(Images)
    plain(PICTURES).sum().backward()
    weight = plain.get_parameter("up.weight").grad
    assert weight is not None
    torch.testing.assert_close(gradients[0], weight.permute(1, 0, 2, 3).reshape(6, -1))


def test_tied_layers_run_with_one_tensor(tmp_path: Path) -> None:
    model = opened(tmp_path, Tokens)
    zero = torch.zeros(32, 8)
    for name in ("embed", "head"):
        view = model.with_weights({name: zero})
        assert not view.run({"input_ids": IDS}).any()
        assert not view.weight("embed").any() and not view.weight("head").any()


def test_views_add_up(tmp_path: Path) -> None:
    model = opened(tmp_path, Images)
    half = {name: model.weight(name) * 0.5 for name in ("conv", "up")}
    view = model.with_weights({"conv": half["conv"]}).with_weights({"up": half["up"]})
    assert torch.equal(view.run({"inputs": PICTURES}), model.with_weights(half).run({"inputs": PICTURES}))


def test_wrong_names_shapes_and_data_are_told(tmp_path: Path) -> None:
    model = opened(tmp_path, Images)
    with pytest.raises(ModelError, match="has no layer 'heat'; the closest are head"):
        model.weight("heat")
    with pytest.raises(ModelError, match=r"\(2, 2\), its matrix is \(4, 4\)"):
        model.with_weights({"head": torch.zeros(2, 2)})
    with pytest.raises(DataError, match=r"does not accept a batch of images \(2, 1, 8, 8\) float32"):
        model.run({"inputs": PICTURES[:, :1]})


def test_a_python_file_needs_trust(tmp_path: Path) -> None:
    file = save_python(tmp_path, Images)
    with pytest.raises(TrustRequiredError, match="net.py") as caught:
        open_model(file)
    assert caught.value.file == str(file)

"""Products of differences in two bytes with gradients, against float64."""

from __future__ import annotations

import pytest
import torch

from workbench.sensitivity import differences as module
from workbench.sensitivity.differences import Differences


def random(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def held(weight: torch.Tensor, changes: list[torch.Tensor], rows: torch.Tensor | None = None) -> Differences:
    differences = Differences.empty(len(changes), weight if rows is None else weight[rows], rows)
    for scheme, change in enumerate(changes):
        differences.values[scheme] = change if rows is None else change[rows]
    return differences


@pytest.mark.parametrize(("tile", "error"), [(768, 4e-3), (769, 1e-6)], ids=["bfloat16", "float32"])
@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_products_are_those_of_float64_whatever_the_size_of_the_differences(size, tile, error, monkeypatch):
    monkeypatch.setattr(module, "TILE", tile)
    weight, gradients = random(24, 32, seed=0), random(5, 24, 32, seed=1)
    changes = [size * random(24, 32, seed=seed) for seed in (2, 3, 4)]
    products = held(weight, changes).products(gradients)
    exact = torch.stack([(gradients.double() * change.double()).sum(dim=(1, 2)) for change in changes], dim=1)
    torch.testing.assert_close(products.double(), exact, rtol=0, atol=error * float(exact.abs().max()))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("cells", [1 << 17, (1 << 18) + 5_000], ids=["whole strips", "a rest"])
def test_compiled_products_of_long_rows_do_not_depend_on_the_threads(cells, threads, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    weight, gradients, change = random(1, cells, seed=0), random(2, 1, cells, seed=1), random(1, cells, seed=2)
    differences = held(weight, [change, -3 * change])
    products = differences.products(gradients)
    exact = gradients[:, 0].double() @ differences.values[:, 0].double().T
    torch.testing.assert_close(products.double(), exact, rtol=1e-6, atol=1e-3)
    one = Differences(values=differences.values[:1].expand(3, -1, -1))
    assert torch.equal(one.products(gradients), products[:, :1].expand(-1, 3))


def test_what_is_looked_up_is_multiplied_row_by_row():
    weight, gradients, ids = random(50, 8, seed=0), random(3, 7, 8, seed=1), torch.randint(10, 30, (3, 7))
    changes = [random(50, 8, seed=seed) for seed in (2, 3)]
    exact = torch.stack([(gradients * change[ids]).sum(dim=(1, 2)) for change in changes], dim=1)
    for rows in (None, torch.arange(10, 30)):
        products = held(weight, changes, rows).looked_up(ids, gradients)
        torch.testing.assert_close(products, exact, rtol=0, atol=1e-5 * float(exact.abs().max()))


def test_some_rows_meet_those_of_a_gradient_of_the_whole_matrix():
    weight, change, rows = random(20, 8, seed=0), random(20, 8, seed=1), torch.tensor([3, 4, 11])
    gradients = random(2, 20, 8, seed=2)
    product = held(weight, [change], rows).products(gradients)[:, 0]
    torch.testing.assert_close(product, (gradients * change)[:, rows].sum(dim=(1, 2)), rtol=1e-6, atol=1e-5)


def test_nothing_changed_and_nothing_finite_stay_what_they_are():
    weight = random(4, 8, seed=0)
    differences = held(weight, [torch.zeros(4, 8), torch.full((4, 8), torch.nan)])
    assert not differences.values[0].any()
    assert differences.values[1].isnan().all() and differences.products(weight[None])[0, 1].isnan()

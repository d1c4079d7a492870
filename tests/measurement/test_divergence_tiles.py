"""Divergences in tiles: the same as of the whole, for any number of rows and entries."""

from __future__ import annotations

import pytest
import torch

from workbench.measurement import divergence
from workbench.measurement.divergence import Divergence, logit_divergence
from workbench.models.summary import OutputKind


@pytest.mark.parametrize("shape", [(3, 7, 50), (1, 90), (2, 3, 4000), (5, 1, 1)])
def test_tiles_give_what_the_whole_gives(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(5)
    a = 3 * torch.randn(shape, generator=generator)
    b = a + 0.2 * torch.randn(shape, generator=generator)
    p = torch.softmax(a.double(), dim=-1)
    whole = logit_divergence(a, b)
    monkeypatch.setattr(divergence, "TILE", 128)
    for tiled in (logit_divergence(a, b), logit_divergence(a, b, p)):
        assert tiled.shape == whole.shape and torch.allclose(tiled, whole, rtol=1e-12, atol=1e-18)
    if len(shape) == 3:
        each = Divergence(a, {}, OutputKind.POSITION_CLASSES).of(b)
        assert torch.allclose(each, whole.sum(dim=1), rtol=1e-12)

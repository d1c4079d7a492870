"""The compiled clip search against the readable one in torch, and against a plain loop over all candidates."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.affine import Affine
from workbench.numerics.formats.clip_search import least_error
from workbench.numerics.formats.compiled import clip_compiled
from workbench.numerics.formats.scaled import ScaledScheme
from workbench.numerics.granularity import grid

SCHEMES = (
    "int3-g32-asym", "int4-g48", "int4-g64-asym-zfp16", "int4-b128x128", "int8-channel", "int8-tensor-asym",
    "fp8-e4m3-channel", "fp8-e5m2-tensor", "mxfp4", "mxint8", "nvfp4", "nf4-b64", "fp4-bnb-b64",
)  # fmt: skip


def weights(rows: int, columns: int) -> torch.Tensor:
    """Return a matrix whose rows differ in size, with a row and a group of zeros."""
    made = torch.randn(rows, columns, generator=torch.Generator().manual_seed(3))
    made *= torch.linspace(0.01, 2.0, rows)[:, None]
    made[1], made[2, :64] = 0.0, 0.0
    return made


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("weighed", ["not", "columns", "rows and columns"])
def test_chooses_what_the_search_in_torch_chooses(name: str, weighed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scheme, weight = parse_scheme(name), weights(300, 400)
    assert isinstance(scheme, ScaledScheme)
    columns = torch.rand(1, 400, generator=torch.Generator().manual_seed(4))
    rows = torch.linspace(0.1, 3.0, 300)[:, None]
    importance = {"not": None, "columns": columns, "rows and columns": rows * columns}[weighed]
    compiled = scheme.fit(weight, importance, clip_search=True)
    monkeypatch.setattr(ScaledScheme, "is_compiled", lambda self, weight, times=1: False)
    readable = scheme.fit(weight, importance, clip_search=True)
    assert (compiled.scale == readable.scale).float().mean() > 0.999  # candidates of equal error may change places
    values = [scheme.round(weight, each).double() for each in (compiled, readable)]
    weigh = torch.ones(1, 1) if importance is None else importance
    errors = [float(((each - weight).square() * weigh).sum()) for each in values]
    assert errors[0] == pytest.approx(errors[1], rel=1e-6)


def test_half_precision_and_a_strided_view_give_what_their_copies_give() -> None:
    scheme = parse_scheme("int4-g32-asym")
    half = weights(300, 800).half()
    for view in (half, half[:, ::2], half.T):
        own, copied = (scheme.fit(each, clip_search=True) for each in (view, view.float().contiguous()))
        assert torch.equal(own.scale, copied.scale)


def test_is_the_best_of_all_candidates_by_a_plain_loop() -> None:
    """Each group's error is counted in numpy, one candidate after another."""
    scheme = parse_scheme("int4-g32-asym")
    assert isinstance(scheme, ScaledScheme)
    weight = weights(280, 256)
    assert weight.numel() >= 1 << 16
    parameters = scheme.fit(weight, clip_search=True)
    exact = weight.numpy().astype(np.float64)
    for row, group in ((0, 0), (1, 3), (2, 1), (77, 7), (279, 5)):
        own = exact[row, group * 32 : group * 32 + 32]
        low, high = min(own.min(), 0.0), max(own.max(), 0.0)
        errors = []
        for step in range(21):
            scale = float(np.float16((high - low) * (1 - 0.03 * step) / 15))
            zero = np.clip(np.round(-low * (1 - 0.03 * step) / scale), 0, 15) if scale else 0.0
            codes = np.clip(np.round(own / (scale or 1.0)) + zero, 0, 15)
            errors.append(float(((codes - zero) * scale - own) @ ((codes - zero) * scale - own)))
        values = scheme.round(weight, parameters)[row, group * 32 : group * 32 + 32].numpy().astype(np.float64)
        assert (values - own) @ (values - own) == pytest.approx(min(errors), rel=1e-3, abs=1e-12)


def test_the_first_of_equals_wins() -> None:
    weight = torch.zeros(4, 32)
    scheme = parse_scheme("int4-g32-asym")
    assert isinstance(scheme, ScaledScheme)
    cut = grid(scheme.granularity, (4, 32))
    equal = scheme._affine(torch.zeros(3 * 4, 1), torch.ones(3 * 4, 1), signed=False)
    stacked = equal.apply(lambda member: member.reshape(3, 4, 1))
    chosen = clip_compiled.least_error(
        weight,
        cut,
        lambda bands: stacked.apply(lambda member: member.permute(1, 2, 0)[bands]),
        None,
        scheme.element,
        (torch.zeros(4, 1), torch.zeros(4, 1)),
    )
    each = [equal.apply(lambda member, part=part: member[part : part + 4]) for part in (0, 4, 8)]
    assert chosen.tolist() == least_error(weight, cut, each, None, scheme._snap).tolist() == [[0]] * 4


def plainly_chosen(scheme: ScaledScheme, weight: torch.Tensor, importance: torch.Tensor | None) -> np.ndarray:
    """Return each group's error with every candidate, float64 ``[candidates, rows, groups]``, one after another."""
    cut = grid(scheme.granularity, tuple(weight.shape))
    low, high = scheme._extremes(weight, cut)
    rule = scheme._rule(low, high)
    weigh = torch.ones(1, 1) if importance is None else importance
    errors = []
    for factor in scheme._factors:
        parameters = scheme._settled(rule(*scheme._shrunk(low, high, factor)), cut)
        difference = (scheme.round(weight, parameters).double() - weight) ** 2 * weigh
        width = min(cut.width, cut.columns)
        filled = torch.nn.functional.pad(difference, (0, cut.groups * width - cut.columns))
        errors.append(filled.reshape(cut.rows, cut.groups, width).sum(-1).numpy())
    return np.stack(errors)


BY_ROWS = (
    *(name for name in SCHEMES if "-b128x" not in name and "-tensor" not in name),
    "int2-g16-asym", "int5-g7", "int4-g1000-asym", "int6-channel-asym",
)  # fmt: skip


@pytest.mark.parametrize("name", BY_ROWS)
@pytest.mark.parametrize("shape", [(2, 40_001), (517, 129), (66_000, 1)])
@pytest.mark.parametrize("weighed", [False, True])
def test_no_candidate_is_better_whatever_the_shape(name: str, shape: tuple[int, int], weighed: bool) -> None:
    """Ragged tails, odd widths, single columns, heavy tails; weights that leave out an extreme altogether."""
    scheme = parse_scheme(name)
    assert isinstance(scheme, ScaledScheme)
    generator = torch.Generator().manual_seed(7)
    weight = torch.randn(shape, generator=generator) ** 3
    weight[0] = weight[0].abs()  # no element below zero
    weight[1] = 3e38 if shape[1] > 1 else 0.0
    importance = torch.rand(shape, generator=generator) if weighed else None
    if importance is not None:
        importance[weight.abs() > 2] = 0.0
    cut = grid(scheme.granularity, shape)
    low, high = scheme._extremes(weight, cut)
    factors = torch.tensor(scheme._factors)
    rule = scheme._rule(low, high)

    def candidates(part: slice) -> Affine:
        least, greatest = scheme._shrunk(low[part, :, None], high[part, :, None], factors)
        return rule(least.flatten(1), greatest.flatten(1)).apply(lambda member: member.reshape(least.shape))

    best = clip_compiled.least_error(weight, cut, candidates, importance, scheme.element, (low, high)).numpy()
    errors = plainly_chosen(scheme, weight, importance)
    errors[:, 1] = 0.0  # beyond float32
    chosen = np.take_along_axis(errors, best[None], 0)[0]
    assert (chosen <= errors.min(0) * (1 + 2e-5) + 1e-30).all()
    assert (best[1] == 0).all() or shape[1] > 1

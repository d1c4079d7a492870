"""Losses by few samples: chance is taken out of single schemes, and nothing else is."""

from __future__ import annotations

import numpy as np

from workbench.sensitivity.shrinkage import shrunk

SCHEMES, SAMPLES = 12, 10


def _case(samples: int, seed: int, spread: float = 0.0) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Return true losses, what the Kronecker form says of them, and slopes of ``samples`` with two draws each."""
    random = np.random.default_rng(seed)
    separable = np.geomspace(1e-4, 1.0, SCHEMES)
    true = 3.0 * separable * np.exp(spread * random.standard_normal(SCHEMES))
    slopes = random.standard_normal((SCHEMES, 2 * samples)) * np.sqrt(2 * true)[:, None]
    return true, separable, {f"s{index}": row.astype(np.float32) for index, row in enumerate(slopes)}


def _losses(slopes: dict[str, np.ndarray]) -> dict[str, float]:
    return {name: float(0.5 * np.square(row.astype(np.float64)).mean()) for name, row in slopes.items()}


def _shrunk(true: np.ndarray, separable: np.ndarray, slopes: dict[str, np.ndarray], samples: int) -> np.ndarray:
    by_scheme = dict(zip(slopes, separable.tolist(), strict=True))
    return np.array([*shrunk(_losses(slopes), by_scheme, slopes, samples).values()])


def test_errors_of_few_samples_fall_to_what_all_schemes_share() -> None:
    before, after = [], []
    for seed in range(30):
        true, separable, slopes = _case(SAMPLES, seed)
        before.append(np.log(np.array([*_losses(slopes).values()]) / true).std())
        after.append(np.log(_shrunk(true, separable, slopes, SAMPLES) / true).std())
    assert np.mean(after) < 0.4 * np.mean(before)


def test_the_least_of_few_samples_is_no_longer_too_small() -> None:
    """The search picks the scheme that chance favours: the winner's curse."""
    picked, kept = [], []
    for seed in range(60):
        true, separable, slopes = _case(SAMPLES, seed)
        for found, losses in ((picked, np.array([*_losses(slopes).values()])),
                              (kept, _shrunk(true, separable, slopes, SAMPLES))):  # fmt: skip
            best = int(np.argmin(losses / true))
            found.append(np.log(losses[best] / true[best]))
    assert np.mean(picked) < -0.4
    assert np.mean(kept) > 0.5 * np.mean(picked)


def test_many_samples_and_true_differences_stay() -> None:
    true, separable, slopes = _case(4000, 1, spread=0.8)
    losses = np.array([*_losses(slopes).values()])
    np.testing.assert_allclose(_shrunk(true, separable, slopes, 4000), losses, rtol=2e-3)


def test_what_has_no_loss_or_no_slopes_and_few_schemes_stay() -> None:
    _, separable, slopes = _case(SAMPLES, 2)
    by_scheme = dict(zip(slopes, separable.tolist(), strict=True))
    losses = _losses(slopes) | {"s0": 0.0, "open": float("nan")}
    found = shrunk(losses, by_scheme, slopes | {"s1": np.zeros(2 * SAMPLES, np.float32)}, SAMPLES)
    assert found["s0"] == 0.0
    assert np.isnan(found["open"])
    assert found["s1"] == losses["s1"]
    assert found["s5"] != losses["s5"]
    few = {name: slopes[name] for name in ("s3", "s4", "s5")}
    assert shrunk(_losses(few), by_scheme, few, SAMPLES) == _losses(few)
    one = {name: row[:2] for name, row in slopes.items()}
    assert shrunk(_losses(one), by_scheme, one, 1) == _losses(one)


def test_what_is_not_finite_keeps_no_other_scheme_from_it() -> None:
    _, separable, slopes = _case(SAMPLES, 4)
    by_scheme = dict(zip(slopes, separable.tolist(), strict=True)) | {"s0": float("inf")}
    losses = _losses(slopes) | {"s1": float("inf")}
    found = shrunk(losses, by_scheme, slopes | {"s2": np.full(2 * SAMPLES, np.inf, np.float32)}, SAMPLES)
    assert [name for name in found if found[name] == losses[name]] == ["s0", "s1", "s2"]


def test_the_unit_of_the_other_form_does_not_matter() -> None:
    true, separable, slopes = _case(SAMPLES, 3)
    np.testing.assert_allclose(
        _shrunk(true, separable, slopes, SAMPLES), _shrunk(true, 1e-9 * separable, slopes, SAMPLES), rtol=1e-9
    )

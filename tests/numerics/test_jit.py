"""Compilation: counted apart from what a step takes."""

import numpy as np

from workbench.numerics import jit
from workbench.preflight import Estimate, measured


def test_compilation_does_not_count_as_work() -> None:
    """The first trial of a step on a machine compiled kernels: an estimate of 8 minutes came of it, for 5 seconds."""

    def callee(values: np.ndarray) -> float:
        total = 0.0
        for value in values:
            total += value * value
        return total

    inner = jit._numba.njit(callee)

    def caller(values: np.ndarray) -> float:
        return float(inner(values) + np.sort(values).sum())

    kernel = jit._numba.njit(caller)
    values = np.ones(8)
    with measured() as first:
        assert kernel(values) == 16.0
    with measured() as second:
        assert kernel(values) == 16.0
    assert first.compiling > 0.05 and first.seconds < first.compiling
    assert second.compiling == 0.0


def test_the_outcome_names_compilation() -> None:
    outcome = Estimate(seconds=4.0, memory=10**9, took=5.0, peak=10**9, compiling=8.4).outcome
    assert outcome.endswith("(4 s and 1 GB were estimated), and 8.4 s to compile kernels, once on a machine")
    assert "compile" not in Estimate(seconds=4.0, memory=10**9, took=5.0, peak=10**9).outcome

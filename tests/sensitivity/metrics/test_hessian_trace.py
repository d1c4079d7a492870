"""The HAWQ trace against the trace of the Kronecker product itself."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.networks import decoder, tokens
from workbench.errors import MissingResultError
from workbench.measurement.calibrate import calibrate
from workbench.numerics.formats import parse_scheme
from workbench.sensitivity.score import score

SCHEMES = ("int3-g32-asym", "int8-channel")


def test_it_is_the_mean_of_the_fisher_diagonal_times_the_squared_error() -> None:
    model = decoder()
    curvature = calibrate(model, tokens()).curvature
    table = score(model, "hessian_trace", SCHEMES, curvature=curvature)
    assert table.unit == "nats"
    for name in table.layers:
        fisher = np.kron(np.diag(curvature[name].rows), np.diag(curvature[name].columns))
        weight = model.weight(name)
        for scheme in SCHEMES:
            error = parse_scheme(scheme).quantize(weight, clip_search=True).double() - weight.double()
            expected = 0.5 * np.trace(fisher) / weight.numel() * float(error.square().sum())
            assert table.of(name, scheme) == pytest.approx(expected, rel=1e-6)


def test_without_a_calibration_it_says_what_to_do() -> None:
    with pytest.raises(MissingResultError, match="calibrate"):
        score(decoder(), "hessian_trace", SCHEMES)

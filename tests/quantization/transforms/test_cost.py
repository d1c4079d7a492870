"""The predicted loss of quantized inputs, against its definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from tests.quantization.transforms.networks import Gated, language_model, sentences
from workbench.measurement.calibrate import calibrate
from workbench.numerics.formats import parse_scheme
from workbench.planning.plan import Assignment
from workbench.quantization.transforms.cost import inputs_cost, observe
from workbench.quantization.transforms.rewrite import Draft


def test_inputs_cost_what_their_errors_do_to_the_outputs() -> None:
    model = language_model(Gated)
    curvature = dict(calibrate(model, sentences()).curvature)
    names = ["body.0.a", "body.1.f"]
    curvature[names[1]] = replace(curvature[names[1]], outputs=None)
    draft = Draft.of(model, curvature)
    observed = observe(model, sentences(), names, 8)
    assignments = {name: Assignment(weights="int8-channel", inputs="int4-token") for name in names}
    expected = 0.0
    for name in names:
        rows = torch.cat(observed[name].rows)
        errors = (parse_scheme("int4-token").quantize(rows) - rows) @ model.weight(name).T
        whole = curvature[name].outputs
        second = np.diag(curvature[name].rows) if whole is None else whole.astype(float)
        expected += 0.5 * float(np.mean([error @ second @ error for error in errors.double().numpy()]))
    assert expected > 0
    assert abs(inputs_cost(draft, assignments, observed) - expected) < 1e-4 * expected
    plain = {name: Assignment(weights="int8-channel") for name in names}
    assert inputs_cost(draft, plain, observed) == 0.0

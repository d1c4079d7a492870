"""One layer before and after its plan, and where its error sits, against quantizing the whole model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import workbench as wb
from tests.numerics.statistics.same import same
from workbench.errors import MissingResultError, PlanError
from workbench.models.layer import LayerKind
from workbench.numerics.formats import parse_scheme
from workbench.numerics.range_error import histogram_loss
from workbench.numerics.ranges import Range
from workbench.numerics.statistics.observe import observe
from workbench.steps.layer.before_after import BEFORE_AFTER, BeforeAfterOptions
from workbench.steps.layer.channel_errors import CHANNEL_ERRORS, ChannelErrorsOptions


def before_after(session, layer, *, model, **options):
    return BEFORE_AFTER(session, BeforeAfterOptions(layer=layer, **options), model=model)


def channel_errors(session, layer, *, model):
    return CHANNEL_ERRORS(session, ChannelErrorsOptions(layer=layer), model=model)


DIGITS = "demo:digits-classifier"


@pytest.fixture(scope="module")
def calibrated():
    model = wb.open(DIGITS, trust=True)
    session = wb.calibrate(model, DIGITS, samples=64, session=wb.start(model))
    names = [layer.name for layer in session.model.layers]
    linear = [layer.name for layer in session.model.layers if layer.kind is LayerKind.LINEAR]
    return model, replace(session, plan=session.plan.assign(names, weights="int3-g32-asym")), linear[-1]


def test_the_rounded_weight_is_that_of_the_whole_plan(calibrated):
    model, session, name = calibrated
    result = before_after(session, name, model=model)
    stored = wb.quantize(model, session.plan, session=session).tensors[name]
    assert same(result.rounded, observe(parse_scheme(stored.scheme).decode(stored), 0))
    assert result.transformed is None and result.inputs is None and result.scheme == stored.scheme
    saved = before_after(replace(session, plan=session.plan.assign([name], weights="keep")), name, model=model)
    assert saved.rounded is None
    with pytest.raises(PlanError, match="no layer 'nothing'"):
        before_after(session, "nothing", model=model)


def test_transforms_are_seen(calibrated):
    model, session, name = calibrated
    transformed = replace(session, plan=replace(session.plan, transforms=("fold-norms", "bias-correction")))
    convolution = next(layer.name for layer in session.model.layers if layer.kind is not LayerKind.LINEAR)
    result = before_after(transformed, convolution, model=model, samples=8)
    assert result.transforms == ("fold-norms",)
    assert not same(result.transformed, session.statistics[convolution, "weight"]), "the norm was folded in"
    assert result.inputs is not None and result.rounded is not None
    with pytest.raises(PlanError, match="under transforms"):
        channel_errors(transformed, name, model=model)
    with pytest.raises(MissingResultError, match="calibrate first"):
        before_after(replace(transformed, calibration=None), name, model=model)


def test_errors_by_channel_add_up_to_the_weighed_error(calibrated):
    model, session, name = calibrated
    result = channel_errors(session, name, model=model)
    stored = wb.quantize(model, session.plan, session=session).tensors[name]
    error = (parse_scheme(stored.scheme).decode(stored).double() - model.weight(name).double()).numpy() ** 2
    curvature = session.curvature[name]
    weighed = error * curvature.rows[:, None] * curvature.weighing
    assert result.weighed and result.rows.sum() == pytest.approx(1) and result.columns.sum() == pytest.approx(1)
    assert np.allclose(result.rows, weighed.sum(1) / weighed.sum())
    assert np.allclose(result.columns, weighed.sum(0) / weighed.sum())
    plain = channel_errors(replace(session, curvature={}), name, model=model)
    assert not plain.weighed and np.allclose(plain.rows, error.sum(1) / error.sum())
    saved = channel_errors(replace(session, plan=session.plan.assign([name], weights="keep")), name, model=model)
    assert not saved.rows.any()


def test_the_costs_of_an_input_give_the_loss_that_scoring_it_predicts(calibrated):
    """Independent: rounding every value itself and weighing it where it stands, as the table of input losses does."""
    model, session, name = calibrated
    observed = session.statistics[name, "input"]
    for high in (observed.maximum, observed.maximum / 3):
        reach = Range(low=0.0, high=high, method="manual", clipped=0.0)
        manual = replace(session, active_ranges={**session.active_ranges, (name, "input"): reach})
        metric, schemes = "predicted_kl_inputs", ("int8-tensor", "int4-tensor")
        table = wb.score(manual, metric, model=model, schemes=schemes, batch_size=16).sensitivities[metric]
        for scheme in table.schemes:
            loss = histogram_loss(observed, observed.costs, parse_scheme(scheme), reach.low, reach.high)
            assert loss == pytest.approx(table.of(name, scheme), rel=0.1)

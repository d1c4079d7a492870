"""Data sheets beside measurements: which layers are estimated, at which batch, and that it is said."""

from __future__ import annotations

import numpy as np
import pytest

from tests.planning.synthetic import linear, summary_of
from workbench.errors import PlanError
from workbench.insight.roofline import chip_of, predicted
from workbench.measurement.evaluation import Timing
from workbench.planning.hardware import hardware, plan_estimate
from workbench.planning.plan import Plan, resolve
from workbench.session.session import Environment, Session

SUMMARY = summary_of(linear("a", 4096, 4096, dtype="bfloat16"), linear("b", 4096, 4096, dtype="bfloat16"))
PLAN = Plan().assign(["a"], weights="int8-channel", inputs="int8-token").assign(["b"], weights="nvfp4")


def timed(layer: str, scheme: str, batch: int = 1) -> Timing:
    return Timing(
        layer=layer, scheme=scheme, kernel="k", baseline_kernel="fp32", shape=(4096, 4096), batch=batch, device="cpu",
        note="", samples=np.ones(3), baseline_samples=np.ones(3),
    )  # fmt: skip


def test_a_sessions_layers_are_estimated_as_its_plan_runs_them():
    here = Environment(workbench="0", python="3", numpy="2", torch="2", device="cpu", threads=1)
    session = Session(model=SUMMARY, plan=PLAN, environment=here)
    result = predicted("vllm@nvidia-9.0", [timed("a", "int8-channel", 4096), timed("b", "nvfp4")], session)
    first, second = result.kernels
    assert first is not None and first.how == "INT8 tensor cores" and first.bound == "compute"
    device = hardware("nvidia-9.0").devices[0]
    assert first.microseconds == pytest.approx(2 * 4096**3 / device.peaks["int8"] / 1e6, rel=1e-6)
    assert second is not None and second.speedup == pytest.approx(16 / 4.5, rel=0.01)
    assert list(result.plans) == [4096, 1]
    assert result.plans[1] == plan_estimate(SUMMARY, resolve(PLAN, SUMMARY.layers), hardware("nvidia-9.0"))
    assert device.name in result.title and "estimate" in result.title and "not measured" in result.title


def test_bare_shapes_have_no_plan_and_are_compared_with_fp32():
    result = predicted("nvidia-9.0", [timed("4096x4096 int8-channel", "int8-channel")])
    assert result.kernels[0] is not None and result.kernels[0].speedup == pytest.approx(4, rel=0.01)
    assert not result.plans
    assert predicted("edge-tpu", [timed("x", "int4-g32")]).kernels == (None,)


def test_a_target_without_hardware_is_refused_where_figures_are_asked_for():
    assert chip_of("") is None and chip_of("vllm") is None and chip_of("vllm@nvidia-8.0") is hardware("nvidia-8.0")
    with pytest.raises(PlanError, match="gguf names no hardware .* nvidia-9.0"):
        predicted("gguf", [])

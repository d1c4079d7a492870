"""Timings of a model's layers: one measurement for each shape and scheme, and notes that say what ran."""

from __future__ import annotations

import pytest
from workbench_kernels.bench.choice import fastest
from workbench_kernels.catalog import candidates

from workbench.measurement.timing import choose, device_name, time_layers
from workbench.models.layer import LayerKind
from workbench.planning.plan import Assignment


@pytest.mark.parametrize(
    ("scheme", "inputs", "kernels", "note"),
    [
        ("int8-channel", "int8-token", "int8", "INT8 weights per channel"),
        ("int8-channel", None, "int8", "the plan's activations are not dynamic INT8"),
        ("int4-g32", None, "int4 group 32", "group 32"),
        ("int4-g64-asym", None, "int4 group 64", "group 64"),
        ("int4-g64-asym", "int8-token", "int4 group 64", "the plan's int8-token activations are not quantized"),
        ("bf16", None, "bf16", "bfloat16"),
        ("fp8-e5m2-channel", None, "", "no kernel of this machine serves fp8-e5m2-channel"),
        ("int3-g32", None, "", "no kernel of this machine serves int3-g32"),
        ("int8-channel-asym", None, "", "no kernel of this machine serves"),
    ],
)
def test_the_note_says_what_runs(scheme, inputs, kernels, note):
    result = choose((64, 128), scheme, inputs)
    serving = candidates(kernels)
    assert result.op in serving if serving else "decoded weight" in result.note
    assert note in result.note


def test_of_several_kernels_the_fastest_is_taken_and_all_figures_are_told():
    serving = [op for op in candidates("int8") if not (op.available() or op.refuses(96, 64))]
    if len(serving) < 2:
        pytest.skip("one kernel only serves INT8 on this machine")
    result = choose((96, 64), "int8-channel", None, batch=2)
    measured = fastest(tuple(serving), 96, 64, 2)
    assert result.op is measured.op and f"fastest of {len(serving)}" in result.note
    assert all(op.name in result.note for op in serving)
    assert measured.microseconds[result.op.name] == min(measured.microseconds.values())


def test_a_shape_that_does_not_fit_says_why():
    result = choose((64, 72), "int4-g32", None)
    assert "decoded weight" in result.note and "multiple" in result.note and "72" in result.note


def test_layers_of_one_shape_share_a_measurement():
    from tests.planning.synthetic import linear, summary_of

    layers = [linear("a", 32, 64), linear("b", 32, 64), linear("c", 64, 64), linear("kept", 32, 64)]
    summary = summary_of(linear("embed", 32, 64, kind=LayerKind.EMBEDDING), *layers)
    assignments = {x.name: Assignment(weights="keep" if x.name == "kept" else "int8-channel") for x in summary.layers}
    result = time_layers(summary, assignments, batch=2, repeats=3)
    assert [timing.layer for timing in result] == ["a", "b", "c"]
    assert result[0].samples is result[1].samples and result[0].samples is not result[2].samples
    assert all(timing.samples.shape == timing.baseline_samples.shape == (3,) for timing in result)
    assert result[0].batch == 2 and result[0].device == device_name() and result[0].median > 0

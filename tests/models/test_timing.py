"""Timings of a model's layers: one measurement for each shape and scheme, and notes that say what ran."""

from __future__ import annotations

import pytest

from workbench.models.layer import LayerKind
from workbench.models.timing import choose, time_layers
from workbench.planning.plan import Assignment


@pytest.mark.parametrize(
    ("scheme", "inputs", "kernel", "note"),
    [
        ("int8-channel", "int8-token", "torch int8 dynamic linear", "INT8 weights per channel"),
        ("int8-channel", None, "torch int8 dynamic linear", "the plan's activations are not dynamic INT8"),
        ("int4-g32", None, "torch int4 group 32 linear", "INT4 weight-only, group 32, bfloat16 activations"),
        ("int4-g64-asym", None, "torch int4 group 64 linear", "group 64"),
        ("bf16", None, "torch bf16 linear", "bfloat16"),
        ("fp8-e4m3-channel", None, "torch fp32 linear", "no CPU kernel serves fp8-e4m3-channel"),
        ("int3-g32", None, "torch fp32 linear", "no CPU kernel serves int3-g32"),
    ],
)
def test_the_note_says_what_runs(scheme, inputs, kernel, note):
    found = choose((64, 128), scheme, inputs)
    assert found.op.name == kernel and note in found.note


def test_a_shape_that_does_not_fit_says_why():
    found = choose((172, 64), "int4-g32", None)
    assert found.op.name == "torch fp32 linear" and "multiple of 16 rows" in found.note


def test_layers_of_one_shape_share_a_measurement():
    from tests.planning.synthetic import linear, summary_of

    layers = [linear("a", 32, 64), linear("b", 32, 64), linear("c", 64, 64), linear("kept", 32, 64)]
    summary = summary_of(linear("embed", 32, 64, kind=LayerKind.EMBEDDING), *layers)
    given = {x.name: Assignment(weights="keep" if x.name == "kept" else "int8-channel") for x in summary.layers}
    found = time_layers(summary, given, batch=2, repeats=3)
    assert [timing.layer for timing in found] == ["a", "b", "c"]
    assert found[0].samples is found[1].samples and found[0].samples is not found[2].samples
    assert all(timing.samples.shape == timing.baseline_samples.shape == (3,) for timing in found)
    assert found[0].batch == 2 and found[0].device.startswith("CPU") and found[0].median > 0

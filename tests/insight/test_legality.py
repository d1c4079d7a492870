"""What targets refuse, what repairs a plan, and which schemes can be chosen for a target."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from tests.gui import sessions
from workbench.deployment.targets import RUNTIMES, target
from workbench.errors import PlanError
from workbench.insight import legality
from workbench.insight.schemes import reference_bits
from workbench.planning.latest import Latest
from workbench.planning.plan import KEEP, Plan, resolve

Q, K, V = (f"model.layers.0.self_attn.{part}_proj" for part in "qkv")
UP = "model.layers.1.mlp.up_proj"
SESSION = sessions.opened(sessions.summary(2))
LAYERS = SESSION.model.layers
PLAN = (
    SESSION.plan.assign([Q], weights="nf4-b64").assign([K, V], weights="int4-g128")
    .assign([UP], weights="int3-g32-asym", inputs="int8-token")
)  # fmt: skip
ASSIGNMENTS = resolve(PLAN, LAYERS)


def test_no_target_refuses_nothing_and_offers_everything() -> None:
    assert legality.refusals(PLAN, LAYERS, "") == ()
    assert legality.repair(PLAN, LAYERS, "").plan is PLAN
    assert "nf4-b64" in legality.weight_choices(SESSION, ASSIGNMENTS, layers=[Q])


def test_layers_that_are_refused_are_counted_before_they_are_scored() -> None:
    """K-quants take rows of 256 values, other GGUF blocks rows of 32."""
    own = [layer for layer in LAYERS if not layer.tied_to]
    narrow = [replace(layer, shape=(layer.shape[0], 576)) if layer.name in (Q, UP) else layer for layer in LAYERS]
    wide = sum(layer.matrix[1] % 256 != 0 for layer in own)
    counted, total = legality.refused_layers(narrow, "gguf", ("q4_k", "q4_0", "int4-g64"))
    assert counted == {"q4_k": wide + 2, "q4_0": 0, "int4-g64": total} and total == len(own)


def test_refused_cells_need_no_score_but_those_of_a_scheme_that_was_named_all_the_same() -> None:
    """On a model of width 576 two fifths of the cells that were scored for GGUF could not be used."""
    narrow = [replace(layer, shape=(layer.shape[0], 256 if layer.name == UP else 576)) for layer in LAYERS]
    found = legality.left_out(narrow, "gguf", ("q4_k", "q4_0", "int4-g64"))
    assert found == {layer.name: frozenset({"q4_k"}) for layer in narrow if layer.name != UP}
    assert legality.left_out(narrow, "", ("q4_k",)) == legality.left_out(narrow, None, ("q4_k",)) == {}
    assert "int8-channel" not in legality.left_out(LAYERS, "onnxruntime", ("int8-channel", "q4_k")).get(Q, ())


def test_an_unknown_target_is_named() -> None:
    with pytest.raises(PlanError, match="vlm"):
        legality.refusals(PLAN, LAYERS, "vlm")


@pytest.mark.parametrize("name", [runtime.name for runtime in RUNTIMES])
def test_a_repaired_plan_breaks_nothing(name: str) -> None:
    refused = legality.refusals(PLAN, LAYERS, name)
    assert {Q, UP} <= {layer for refusal in refused for layer in refusal.layers}
    assert {Q, UP} <= legality.reasons_by_layer(refused, name).keys()
    repaired = legality.repair(PLAN, LAYERS, name, ASSIGNMENTS)
    assert repaired.left == () == legality.refusals(repaired.plan, LAYERS, name)
    after = resolve(repaired.plan, LAYERS)
    changed = {change.layer: change for change in repaired.changes}
    for layer in after:
        pairs = [(assignments[layer].weights, assignments[layer].inputs) for assignments in (ASSIGNMENTS, after)]
        assert (layer in changed) == (pairs[0] != pairs[1])
        if layer in changed:
            assert [changed[layer].before, changed[layer].after] == pairs


def test_a_repair_of_ten_thousand_layers_does_not_take_seconds() -> None:
    model = sessions.summary(1430)
    names = [layer.name for layer in model.layers[1:-1]]
    plan = Plan(name="p", model=model.name, fingerprint=model.fingerprint)
    plan = plan.assign(names[::2], weights="int4-g32-asym").assign(names[1::2], weights="int3-g32-asym")
    begin = time.process_time()
    result = legality.repair(plan, model.layers, "gguf")
    assert time.process_time() - begin < 2.5
    assert len(result.changes) == len(names) and not result.left


def test_a_plan_that_the_target_runs_is_not_touched() -> None:
    plan = Plan().assign([Q, K, V], weights="int4-g128")
    assert legality.refusals(plan, LAYERS, "vllm") == ()
    repaired = legality.repair(plan, LAYERS, "vllm")
    assert repaired.plan is plan and repaired.changes == ()


def test_the_nearest_scheme_has_the_nearest_bits() -> None:
    after = {change.layer: change.after for change in legality.repair(PLAN, LAYERS, "gguf").changes}
    assert after[UP] == ("q3_k", None)
    assert after[Q][0] in ("q4_0", "q4_k", "iq4_nl", "mxfp4-gguf")


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [("int4-g64-asym", {"q4_k"}), ("nf4-b64", {"iq4_nl", "iq4_xs"}), ("mxfp4", {"mxfp4-gguf", "iq4_xs"}),
     ("int4-g32", {"q4_0"}), ("int8-channel", {"q8_0"}), ("int5-g64-asym", {"q5_k"}), ("int6-g64-asym", {"q6_k"})],
)  # fmt: skip
def test_a_repair_keeps_zero_points_and_even_steps(scheme: str, expected: set[str]) -> None:
    """The nearest bits alone made MXFP4, with neither, of asymmetric integers."""
    plan = SESSION.plan.assign([UP], weights=scheme)
    (change,) = (each for each in legality.repair(plan, LAYERS, "gguf").changes if each.layer == UP)
    assert change.after[0] in expected
    assert abs(reference_bits(change.after[0]) - reference_bits(scheme)) <= 0.5


def test_choices_are_those_of_the_target() -> None:
    names = legality.weight_choices(SESSION, ASSIGNMENTS, target="vllm", layers=[UP])
    layer = SESSION.model.by_name[UP]
    assert KEEP in names and "int4-g128" in names and "int3-g32-asym" not in names
    assert legality.input_choices(SESSION, ASSIGNMENTS, target="vllm", layers=[K]) == (None,)
    inputs = legality.input_choices(SESSION, ASSIGNMENTS)
    for name in names:
        assert any(target("vllm").legal(layer, name, scheme) is None for scheme in inputs), name


def test_the_latest_results_are_kept_for_the_same_objects_only() -> None:
    calls: list[object] = []

    def count(plan: object, layers: object) -> int:
        calls.append(plan)
        return len(calls)

    latest = Latest(count)
    assert [latest(PLAN, LAYERS), latest(PLAN, LAYERS)] == [1, 1]
    edited, other = replace(PLAN), replace(PLAN)
    undone = [latest(plan, LAYERS) for plan in (edited, PLAN, edited, PLAN)]
    assert undone == [2, 1, 2, 1], "an edit that is undone and redone"
    assert [latest(plan, LAYERS) for plan in (other, PLAN, edited)] == [3, 1, 4]

"""Targets side by side: each has the plan that a search for it finds, the best comes first, others say why not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.gui import sessions
from workbench.errors import BudgetError, PlanError
from workbench.insight.legality import refusals
from workbench.numerics.formats.gguf.inputs import SCHEMES as ROUNDED
from workbench.numerics.formats.gguf.inputs import inputs_beside
from workbench.planning.plan import resolve
from workbench.planning.totals import plan_totals
from workbench.session.session import Session
from workbench.steps.search import search
from workbench.steps.targets import best_targets

NAMES = ("q4_0", "q8_0", "int4-g32", "int8-channel", "int4-g128-asym")


def scored(names: tuple[str, ...] = NAMES) -> Session:
    """A small Llama with random losses, fewer for more bits."""
    session = sessions.full(1)
    table = session.sensitivities["predicted_kl"]
    random = np.random.default_rng(0).uniform(0.5, 1.5, (len(table.layers), len(names)))
    scores = random * [1e-4 if "8" in name.split("-")[0] else 1e-2 for name in names]
    table = replace(table, schemes=names, score=scores, error=None)
    return replace(session, sensitivities={"predicted_kl": table}, plan=replace(session.plan, rules=()))


def test_every_target_has_the_plan_that_a_search_for_it_finds() -> None:
    session = scored()
    rows = best_targets(session, bits_per_weight=5.0)
    found = [row for row in rows if row.plan is not None]
    assert {"gguf", "vllm", "onnxruntime"} <= {row.target for row in found}
    assert [row.loss for row in found] == sorted(row.loss for row in found)
    for row in found:
        plan = search(session, bits_per_weight=5.0, metric="predicted_kl", target=row.target)
        assert row.plan is not None and row.plan.hash == plan.hash
        assert not refusals(plan, session.model.layers, row.target)
        assert row.nbytes >= plan_totals(session.model, plan).nbytes
    assert {row.target for row in rows if not row.plan} and all(row.reason for row in rows if not row.plan)


@pytest.mark.parametrize("name, schemes", [
    ("torchao", ("int4-g32", "int8-channel")), ("mlx", ("int4-g32-asym-zfp16", "int8-g32-asym-zfp16")),
    ("vllm", ("int4-g32", "int8-channel")),
])  # fmt: skip
def test_a_size_is_that_of_the_folder_that_the_target_loads(name: str, schemes: tuple[str, ...]) -> None:
    """A plan of as many bytes was found, and torchao, which stores 4 bits in 8, wrote a folder of many more."""
    session = scored(schemes)
    counted = [
        plan_totals(session.model, search(session, bits_per_weight=bits, target=name)).nbytes for bits in (5.5, 8.6)
    ]
    floating = sum(layer.nbytes for layer in session.model.stored) + session.model.other_nbytes
    for size in (*counted, floating):
        try:
            (row,) = best_targets(session, size=size, targets=[name])
            plan = search(session, size=size, target=name)
        except BudgetError:
            continue
        if row.plan is None:
            assert "no plan fits into" in row.reason and name == "torchao"
            continue
        assert row.plan.hash == plan.hash and 0.8 * size < row.nbytes <= size
        whole = search(session, size=size)
        assert plan_totals(session.model, whole).nbytes <= size
    with pytest.raises(BudgetError, match="the smallest possible takes") as refused:
        search(session, size=1000, target=name)
    smallest = int(refused.value.smallest or 0)
    (row,) = best_targets(session, size=smallest, targets=[name])
    assert row.nbytes == smallest


def test_a_target_without_a_scored_scheme_names_some_that_it_runs() -> None:
    (row,) = best_targets(scored(("q4_0", "q8_0")), bits_per_weight=6.0, targets=["vllm"])
    assert row.plan is None and "runs none of the schemes that were scored" in row.reason and "int4" in row.reason


def test_the_rounding_of_inputs_of_llama_cpp_counts_where_it_is_known() -> None:
    session = scored()
    (before,) = best_targets(session, bits_per_weight=5.0, targets=["llama.cpp"])
    assert before.target == "gguf" and "rounds the inputs" in before.remark
    table = session.sensitivities["predicted_kl"]
    inputs = replace(table, schemes=ROUNDED, score=np.full((len(table.layers), len(ROUNDED)), 1e-5))
    session = replace(session, sensitivities={**session.sensitivities, "predicted_kl_inputs": inputs})
    (after,) = best_targets(session, bits_per_weight=5.0, targets=["gguf"])
    assert after.plan is not None and not after.remark
    assignments = resolve(after.plan, session.model.layers)
    rounded = [x.name for x in session.model.stored if inputs_beside(assignments[x.name].weights) is not None]
    assert rounded and after.loss == pytest.approx(before.loss + 1e-5 * len(rounded))


def test_the_inputs_of_a_head_that_is_tied_to_a_table_are_rounded_too() -> None:
    session = scored()
    table, head = session.sensitivities["predicted_kl"], session.model.by_name["lm_head"]
    inputs = replace(table, layers=(head.name,), schemes=ROUNDED, score=np.full((1, len(ROUNDED)), 1e-5))
    (before,) = best_targets(session, bits_per_weight=5.0, targets=["gguf"])
    session = replace(session, sensitivities={**session.sensitivities, "predicted_kl_inputs": inputs})
    (after,) = best_targets(session, bits_per_weight=5.0, targets=["gguf"])
    assert head.tied_to and after.plan is not None
    assert resolve(after.plan, session.model.layers)[head.tied_to].weights in NAMES
    assert after.loss == pytest.approx(before.loss + 1e-5, rel=1e-9)


def test_a_budget_and_known_targets_are_needed() -> None:
    with pytest.raises(PlanError, match="give bits per weight or a size"):
        best_targets(scored())
    with pytest.raises(PlanError, match="no target 'vlm'"):
        best_targets(scored(), size=1000, targets=["vlm"])
    (row,) = best_targets(scored(), size=1000, targets=["gguf"])
    assert row.plan is None and "no plan fits" in row.reason

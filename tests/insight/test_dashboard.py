"""The key figures of a plan beside those of the last saved plan and the best uniform one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.gui import sessions
from workbench.insight import dashboard
from workbench.insight.dashboard import Dashboard
from workbench.insight.plan_differences import smallest_batch_time
from workbench.planning.plan import Plan, resolve
from workbench.planning.totals import totals
from workbench.session.session import Session
from workbench.session.workspace import Workspace

SCHEME = "int4-g32-asym"


def compared() -> tuple[Session, Plan]:
    """Return a session whose plan is a uniform one but for a layer, and that uniform plan, evaluated and timed."""
    session = sessions.full(2)
    layers, scored = session.model.layers, session.sensitivities["predicted_kl"].layers
    names = [layer.name for layer in layers if layer.name in scored and layer.name not in session.model.embeddings]
    uniform = Plan(name="uniform").assign(names, weights=SCHEME)
    plan = uniform.assign(names[:1], weights="int8-channel")
    sizes = {layer.matrix for layer in layers}
    timings = tuple(
        replace(sessions.timing("q", np.random.default_rng(0)), shape=size, scheme=scheme, samples=np.full(9, time))
        for size in sizes for scheme, time in ((SCHEME, 60.0), ("int8-channel", 80.0))
    )  # fmt: skip
    sums = totals(session.model, resolve(uniform, layers))
    run = replace(session.evaluations[0], plan_hash=uniform.hash, nbytes=sums.nbytes, notes=())
    own = replace(run, plan_hash=plan.hash, nbytes=totals(session.model, resolve(plan, layers)).nbytes)
    kept = {"the same everywhere": uniform}
    return replace(session, plan=plan, plans=kept, timings=timings, evaluations=(run, own)), uniform


@pytest.mark.parametrize("at_once", [True, False])
def test_every_figure_says_how_the_best_uniform_plan_of_its_size_does(
    at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bits, the measured loss and the speed stood alone, and all where losses of many layers interact."""
    monkeypatch.setattr(dashboard, "UNIFORM_LIMIT", 300 if at_once else 0)
    monkeypatch.setattr(dashboard, "_uniform", ((), (), (), {}))
    session, uniform = compared()
    workspace, board = Workspace(), Dashboard()
    workspace.open(session, None)
    state = workspace.state
    if not at_once:
        before = board.figures(state)
        assert board.waits and not any(each.kind == "uniform" for figure in before for each in figure.differences)
        dashboard.best_uniform(state)
    figures = board.figures(state)
    assert not board.waits
    differences = [{each.kind: each for each in figure.differences}["uniform"] for figure in figures[:4]]
    assert {each.against for each in differences} == {f"{SCHEME} everywhere but in embeddings"}
    other = totals(session.model, resolve(uniform, session.model.layers), session.sensitivities["predicted_kl"])
    assert differences[1].text == f"+{state.totals.bits_per_weight - other.bits_per_weight:.3f}"
    assert differences[3].text == "the same", "both were measured to be the same"
    times = [smallest_batch_time(session, each) for each in (state.assignments, resolve(uniform, session.model.layers))]
    assert all(times) and (len(figures[4].differences) == 2) == (not any(time.missing for time in times if time))


def test_a_uniform_plan_with_another_measurement_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboard, "_uniform", ((), (), (), {}))
    session, _ = compared()
    workspace = Workspace()
    workspace.open(replace(session, evaluations=session.evaluations[1:]), None)
    measured = Dashboard().figures(workspace.state)[3]
    assert measured.value != "–" and not any(each.kind == "uniform" for each in measured.differences)

"""The next decision is the change that a naive walk over all cells finds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from copy import copy
from dataclasses import replace

import pytest

from tests.gui import sessions
from workbench.insight.decisions import decision, decisions
from workbench.insight.layer_facts import PlanFacts
from workbench.planning.plan import KEEP, resolve
from workbench.planning.totals import layer_bits
from workbench.session.session import Session

OPENED = sessions.opened(sessions.summary(3))
TABLE = sessions.table(OPENED.model)
SMALLEST = min(TABLE.schemes, key=lambda name: layer_bits(OPENED.model.layers[1], name))


def _session(**changes: object) -> Session:
    names = [layer.name for layer in OPENED.model.layers]
    plan = OPENED.plan.assign(names, weights=SMALLEST)
    return replace(OPENED, plan=plan, sensitivities={"predicted_kl": TABLE}, **changes)


def _facts(session: Session) -> PlanFacts:
    return PlanFacts(session, resolve(session.plan, session.model.layers), "predicted_kl")


def test_every_decision_is_the_best_of_all_larger_schemes() -> None:
    facts = _facts(_session())
    for layer in OPENED.model.layers:
        best = decision(facts.of(layer))
        now, rates = TABLE.of(layer.name, SMALLEST), {}
        for name in (*TABLE.schemes, KEEP):
            more = layer_bits(layer, name) - layer_bits(layer, SMALLEST)
            loss = 0.0 if name == KEEP else TABLE.of(layer.name, name)
            if more > 0 and loss < now:
                rates[name] = (now - loss) / (more / 8)
        if layer.tied_to:
            assert best is None
            continue
        assert best is not None
        assert best.rate == pytest.approx(max(rates.values()))
        assert rates[best.better] == pytest.approx(best.rate)


def test_the_highest_rate_comes_first_and_locked_layers_are_left_out() -> None:
    ordered = decisions(_facts(_session()))
    assert [each.rate for each in ordered] == sorted((each.rate for each in ordered), reverse=True)
    locked = _session(locked=frozenset({ordered[0].layer}))
    assert ordered[0].layer not in {each.layer for each in decisions(_facts(locked))}


def _least(work: Callable[[], object]) -> float:
    """The processor time of the quickest of five runs, in seconds."""
    taken = []
    for _ in range(5):
        begin = time.process_time()
        work()
        taken.append(time.process_time() - begin)
    return min(taken)


def test_ten_thousand_layers_are_decided_about_in_the_time_of_a_sorted_table() -> None:
    """0.7 of one, 0.015 s, while no other process runs; an absolute time would be one of the machine."""
    model = sessions.summary(1430)
    names = [layer.name for layer in model.layers]
    session = sessions.opened(model, with_weights=False)
    plan = session.plan.assign(names, weights=SMALLEST)
    facts = _facts(replace(session, plan=plan, sensitivities={"predicted_kl": sessions.table(model)}))
    assert len(decisions(facts)) == len(model.stored)
    table = _least(lambda: sorted({str(number): number * 0.5 for number in range(100_000)}.values(), reverse=True))
    assert _least(lambda: decision(copy(facts).of(model.layers[1]))) < 2 * table


def test_what_is_not_known_or_kept_has_none() -> None:
    layer = OPENED.model.layers[1]
    unknown = replace(TABLE, score=TABLE.score * math.nan)
    assert decision(_facts(replace(_session(), sensitivities={"predicted_kl": unknown})).of(layer)) is None
    assert decision(_facts(replace(_session(), sensitivities={})).of(layer)) is None
    saved = replace(_session(), plan=OPENED.plan.assign([layer.name], weights=KEEP))
    assert decision(_facts(saved).of(layer)) is None


def test_the_sentence_says_what_it_costs_and_saves() -> None:
    best = decision(_facts(_session()).of(OPENED.model.layers[1]))
    assert best is not None
    assert best.sentence("nats").startswith(f"{best.layer}: {SMALLEST} to {best.better} saves ")
    assert best.sentence("nats").endswith("B")

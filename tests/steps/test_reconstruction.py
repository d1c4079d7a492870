"""Reconstruction: figures by hand with NumPy, kept in the session and its file, gone with the plan."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.errors import PlanError
from workbench.numerics.formats import parse_scheme
from workbench.steps.checks.reconstruction import RECONSTRUCTION, ReconstructionOptions, reconstructions


def compared(session: wb.Session) -> wb.Session:
    request = RECONSTRUCTION.request(session, ReconstructionOptions())
    return request.joined(session, RECONSTRUCTION(session, ReconstructionOptions()))


def test_it_is_what_the_decoded_weights_are_off_by(bare: Path, tmp_path: Path) -> None:
    model = wb.open(bare)
    session = wb.start(model)
    first, second = (layer.name for layer in session.model.layers[1:3])
    plan = session.plan.assign([first], weights="int3-channel", algorithm="rtn").assign([second], weights="fp32")
    session = wb.Session(model=session.model, environment=session.environment, plan=plan)
    compared(session).save(tmp_path / "s.qwb")
    rows = {row.layer: row for row in reconstructions(wb.Session.load(tmp_path / "s.qwb"))}
    assert set(rows) == {first, second} and rows[first].scheme == "int3-channel"
    weight = model.weight(first)
    error = (parse_scheme("int3-channel").quantize(weight) - weight).double().numpy()
    exact = weight.double().numpy()
    assert rows[first].sqnr == pytest.approx(10 * np.log10(np.sum(exact**2) / np.sum(error**2)), rel=1e-9)
    assert rows[first].largest == pytest.approx(np.abs(error).max() / np.abs(exact).max(), rel=1e-9)
    assert rows[first].zeros == np.mean(error + exact == 0)
    assert rows[second].sqnr == float("inf") and rows[second].largest == 0


def test_another_plan_has_no_figures_of_this_one(bare: Path) -> None:
    session = wb.start(wb.open(bare))
    name = session.model.layers[1].name
    session = wb.Session(
        model=session.model, environment=session.environment, plan=session.plan.assign([name], weights="int8-channel")
    )
    done = compared(session)
    assert len(reconstructions(done)) == 1
    edited = wb.Session(
        model=done.model, environment=done.environment, plan=done.plan.assign([name], weights="int4-channel"),
        results=done.results,
    )  # fmt: skip
    assert reconstructions(edited) == ()


def test_a_plan_that_quantizes_nothing_is_refused(bare: Path) -> None:
    with pytest.raises(PlanError, match="quantizes nothing; give layers a scheme first"):
        RECONSTRUCTION(wb.start(wb.open(bare)), ReconstructionOptions())

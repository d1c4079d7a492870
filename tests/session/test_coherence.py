"""Sessions whose parts contradict each other are refused in one line when they are read, and not by a later crash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.session.sessions import full_session
from workbench.cli import main
from workbench.errors import SessionError
from workbench.session.session import Session


def _layer(**changes: Any) -> Callable[[Session], Session]:
    def change(session: Session) -> Session:
        first, *rest = session.model.layers
        return replace(session, model=replace(session.model, layers=(replace(first, **changes), *rest)))

    return change


def _renamed(name: str, tap: str | None = None) -> Callable[[Session], Session]:
    def change(session: Session) -> Session:
        table = getattr(session, name)
        renamed = {(key[0], tap, *key[2:]) if tap else ("gone", *key[1:]): value for key, value in table.items()}
        return replace(session, **{name: renamed})

    return change


def _table(**changes: Any) -> Callable[[Session], Session]:
    def change(session: Session) -> Session:
        name, table = next(iter(session.sensitivities.items()))
        return replace(session, sensitivities={name: replace(table, **changes)})

    return change


def _twice(session: Session) -> Session:
    return replace(session, model=replace(session.model, layers=(*session.model.layers, session.model.layers[0])))


@pytest.mark.parametrize(("change", "words"), [
    (_twice, "two layers of its model have one name"), (_layer(dtype="float9"), "the unknown dtype float9"),
    (_layer(shape=(1 << 30, 1 << 30)), "has the shape 1073741824 x 1073741824"), (_layer(shape=(-8, -8)), "-8 x -8"),
    (_layer(axes=(0, 0)), r"is not a matrix along the axes \(0, 0\)"), (_layer(row_axes=9), "is not a matrix"),
    (_layer(view=(3, 5)), "is not a matrix"), (_layer(macs=-1), "with -1 multiplications"),
    (_layer(tied_to="gone"), "tied to gone"), (_layer(shares_with=("gone",)), "shares its scheme with gone"),
    (_renamed("statistics"), "its statistics name gone"), (_renamed("outliers"), "its outliers name gone"),
    (_renamed("ranges", "sideways"), "its ranges name sideways"), (_table(metric="other"), "it is one of other"),
    (_table(error=np.zeros(99)), r"the error of shape \(99,\)"),
])  # fmt: skip
def test_contradictions_are_refused(tmp_path: Path, change: Callable[[Session], Session], words: str) -> None:
    change(full_session()).save(tmp_path / "s.qwb")
    with pytest.raises(SessionError, match=words) as caught:
        Session.load(tmp_path / "s.qwb")
    assert "\n" not in str(caught.value)


def test_outliers_without_their_statistics_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a repair may leave them."""
    replace(full_session(), statistics={}).save(tmp_path / "s.qwb")
    assert main(["outliers", str(tmp_path / "s.qwb"), "--quiet"]) == 1
    assert capsys.readouterr().err.count("\n") == 1

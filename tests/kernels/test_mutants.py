"""Bugs seeded into the kernels are noticed by the emulated checks: the checks can fail."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from . import ahead
from .shim.emulator import missing
from .shim.mutants import MUTANTS

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

QUICK = (
    "statistics: a barrier is missing before warps are joined", "gemm: waits for one copy too few",
    "attention: sums are not rescaled",
)  # fmt: skip


def run(*names: str) -> dict[str, str | None]:
    command = [sys.executable, "-m", "tests.kernels.shim.mutants", *names]
    root = Path(__file__).parent.parent.parent
    completed = subprocess.run(command, capture_output=True, text=True, cwd=root, check=True)
    result: dict[str, str | None] = json.loads(completed.stdout)
    return result


@pytest.mark.ahead(run, *QUICK)
def test_some_seeded_bugs_are_noticed():
    result = ahead.result(run, *QUICK)
    assert set(result) == set(QUICK)
    assert all(result.values()) and not any(str(what).startswith("ERROR") for what in result.values()), result


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_every_seeded_bug_is_noticed_or_explained():
    result = run(*(mutant.name for mutant in MUTANTS))
    assert len(result) == len(MUTANTS) >= 20
    assert not [name for name, what in result.items() if str(what).startswith("ERROR")], result
    unnoticed = {name for name, what in result.items() if what is None}
    assert unnoticed == {mutant.name for mutant in MUTANTS if mutant.explained}

"""Steps on other processes: the bits of one process, a killed worker, and clusters that are not there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

import workbench as wb
from tests.engine.fakes import Fake
from tests.engine.processes import engine, run, until
from tests.numerics.statistics.same import same
from workbench.errors import BackendUnavailableError, CancelledError
from workbench.session.session import Session
from workbench.steps.calibrate import CALIBRATE, CalibrateOptions
from workbench.steps.score import SCORE, ScoreOptions

MODEL = "demo:language-model"
BEGUN = 4.0
"""Seconds of two processes that have imported torch, begun to work."""

SCHEMES = ("int4-g32", "int3-g32-asym")


def worked(progress=lambda *report: None) -> Session:
    session = wb.calibrate(wb.open(MODEL), samples=12, batch_size=2, progress=progress)
    return wb.score(session, schemes=SCHEMES)


@pytest.fixture(scope="module")
def alone() -> Session:
    return worked()


def seconds_of_children(pid: int) -> float:
    """Return the processor time of a process's children that live."""
    seconds = 0.0
    for child in psutil.Process(pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            seconds += child.cpu_times().user
    return seconds


def running_workers(recursive: bool = False) -> list[psutil.Process]:
    """Return the worker processes below this one; a process that ends meanwhile is none of them."""
    workers = []
    for child in psutil.Process().children(recursive=recursive):
        with contextlib.suppress(psutil.NoSuchProcess):  # the base of ZombieProcess, too
            if "spawn_main" in " ".join(child.cmdline()):
                workers.append(child)
    return workers


def require_same(session: Session, alone: Session) -> None:
    assert session.statistics.keys() == alone.statistics.keys() and session.curvature.keys() == alone.curvature.keys()
    assert all(same(session.statistics[key], value) for key, value in alone.statistics.items())
    for name, known in alone.curvature.items():
        np.testing.assert_array_equal(session.curvature[name].rows, known.rows)
        np.testing.assert_array_equal(session.curvature[name].columns, known.columns)
        np.testing.assert_array_equal(session.curvature[name].weighing, known.weighing)
    for metric, table in alone.sensitivities.items():
        np.testing.assert_array_equal(session.sensitivities[metric].score, table.score)
        np.testing.assert_array_equal(session.sensitivities[metric].error, table.error)


def test_two_processes_give_the_bits_of_one_though_one_is_killed(alone):
    killed = []

    def progress(fraction, text, partial=None):
        if not killed and "calibrating, batch 5" in text and (running := running_workers(recursive=True)):
            killed.append(running[-1].pid)
            os.kill(killed[0], signal.SIGKILL)

    with wb.cluster("local:2"):
        result = worked(progress)
    assert killed
    require_same(result, alone)
    assert not running_workers()


def test_a_table_that_workers_have_no_part_in_says_so(alone):
    with wb.cluster("local:2"):
        scored = wb.score(alone, metric="weight_error", schemes=SCHEMES)
    assert "weight_error: scored in this process: workers take no tables of this kind" in scored.notes
    assert not any("in this process" in note for note in alone.notes)


def test_a_dask_cluster_gives_the_bits_of_one_process(alone):
    distributed = pytest.importorskip("distributed")
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, wb.cluster(cluster.scheduler_address):
        require_same(worked(), alone)


def test_the_engine_starts_workers_and_a_cancelled_job_ends_them_in_their_pieces(alone):
    request = replace(CALIBRATE.request(alone, CalibrateOptions(samples=4, batch_size=2)), cluster="local:2")
    long = replace(SCORE.request(alone, ScoreOptions(metric="measured_kl")), cluster="local:2")

    async def main():
        async with engine() as running:
            require_same(await running.run(1, request), await running.run(2, replace(request, cluster="")))
            job, pid = asyncio.ensure_future(running.run(3, long)), running.pid
            await until(lambda: seconds_of_children(pid) > BEGUN, 120)
            running.cancel(3)
            with pytest.raises(CancelledError):
                await job
            assert running.pid == pid and await running.run(4, Fake(answer="next")) == "next"
            assert not psutil.Process(pid).children()

    run(main)


@pytest.mark.parametrize(("address", "says"), [
    ("localhost:8786", "is not the address of a cluster; give that of a Dask scheduler"), ("local:0", "from 1 to 1024"),
    ("local:two", "from 1 to 1024"), ("local:", "from 1 to 1024"),
])  # fmt: skip
def test_an_address_that_is_none_is_named(address, says):
    with pytest.raises(BackendUnavailableError, match=says):
        wb.cluster(address)


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("workbench.engine.executors.CONNECT_SECONDS", 1)
    with pytest.raises(BackendUnavailableError, match="no Dask scheduler answers at tcp://127.0.0.1:1 "):
        wb.cluster("tcp://127.0.0.1:1")


def test_dask_that_is_not_installed_is_named_with_what_installs_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(BackendUnavailableError, match=r"pip install 'quantization-workbench\[cluster\]'"):
        wb.cluster("tcp://127.0.0.1:8786")


def test_the_command_line_says_so_in_one_line(capsys, tmp_path):
    from workbench.cli import main

    out = tmp_path / "s.qwb"
    for model in (MODEL, "missing-folder"):  # before anything is opened
        assert main(["calibrate", model, "--cluster", "elsewhere", "--out", str(out)]) != 0
        assert "'elsewhere' is not the address of a cluster" in capsys.readouterr().err and not Path(out).exists()

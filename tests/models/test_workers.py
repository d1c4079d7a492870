"""Pieces of work for other processes: order, lost workers, and workers that lack something."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from tests.models.networks import decoder
from workbench.errors import CannotRunError, DataError, FingerprintMismatchError, WorkerError
from workbench.models import workers as module
from workbench.models.sources import open_model
from workbench.models.spot_check import agree
from workbench.models.workers import AHEAD, LOST, MODELS, Need, Workers, current, run_piece, using
from workbench.version import VERSION

DEMO = "demo:digits-classifier"
NOTHING = pickle.dumps(None)


class Here(Executor):
    """Runs everything in this process at once; breaks at the submissions in ``breaks``, counted over its kind."""

    submitted = 0
    breaks: tuple[int, ...] = ()
    ended: list[Executor]

    def submit(self, function, /, *arguments):
        type(self).submitted += 1
        future: Future = Future()
        if self.submitted in self.breaks:
            future.set_exception(BrokenExecutor("a process ended abruptly"))
        else:
            try:
                future.set_result(function(*arguments))
            except Exception as error:
                future.set_exception(error)
        return future

    def shutdown(self, wait=True, *, cancel_futures=False):
        self.ended.append(self)


def workers(*breaks: int, count: int = 2) -> Workers:
    kind = type("Here", (Here,), {"breaks": breaks, "ended": []})
    return Workers(start=kind, count=count)


@dataclass(frozen=True)
class Thing:
    table: dict
    count: int


def double(model, piece):
    return 2 * piece


@pytest.fixture(autouse=True)
def same_model(monkeypatch):
    model = decoder()
    monkeypatch.setattr(module, "_model", lambda need: model)
    return model


@pytest.mark.parametrize("breaks", [(), (1,), (3,), (2, 9, 14)])
def test_results_come_in_the_order_of_the_pieces_whatever_is_lost(breaks, same_model):
    assert list(workers(*breaks).map(same_model, double, range(12))) == [2 * number for number in range(12)]


def test_only_so_many_pieces_are_under_way(same_model):
    calls = []
    pieces = (calls.append(number) or number for number in range(100))
    results = workers(count=3).map(same_model, double, pieces)
    next(results)
    assert len(calls) <= AHEAD * 3 + 1


@pytest.mark.parametrize("fails", [False, True])
def test_the_executor_ends_with_the_step(fails, same_model):
    group = workers()
    with pytest.raises(DataError) if fails else nullcontext(), using(group):
        assert list(group.map(same_model, double, range(3))) == [0, 2, 4]
        if fails:
            raise DataError("the step failed")
    assert len(group.start.ended) == 1


def test_workers_that_are_lost_again_and_again_end_the_step(same_model):
    with pytest.raises(WorkerError, match=f"lost {LOST + 1} times.*too little memory"):
        list(workers(*range(1, 100)).map(same_model, double, range(4)))


def test_an_error_names_the_machine_and_keeps_its_kind(same_model):
    def fails(model, piece):
        raise DataError("the labels are 3 to 9")

    with pytest.raises(DataError, match=r"worker \S+: the labels are 3 to 9"):
        list(workers().map(same_model, fails, [1]))


def test_any_other_error_of_a_worker_is_one_line(same_model):
    with pytest.raises(WorkerError, match="a worker failed: unsupported operand"):
        list(workers().map(same_model, double, [object()]))


@pytest.fixture
def elsewhere(monkeypatch):
    """Workers run on a machine of another name; returns how often pieces ran there and here."""
    ran = {"here": 0, "there": 0}
    place = ["here"]
    submit = Here.submit

    def submitted(self, function, /, *arguments):
        place[0] = "there"
        try:
            return submit(self, function, *arguments)
        finally:
            place[0] = "here"

    def measured(model, piece):
        ran[place[0]] += 1
        values = np.random.default_rng(piece).standard_normal(40)
        scale = 1 + measured.error if place[0] == "there" else 1.0
        return {"sums": [values * scale], "which": (piece, np.arange(3))}

    monkeypatch.setattr(Here, "submit", submitted)
    monkeypatch.setattr(module, "machine", lambda: place[0])
    measured.error, measured.ran = 0.0, ran
    return measured


@pytest.mark.parametrize("error", [0.0, 1e-6])
def test_the_first_result_of_another_machine_is_computed_here_too(elsewhere, error, same_model):
    elsewhere.error = error
    assert len(list(workers().map(same_model, elsewhere, range(6)))) == 6
    assert elsewhere.ran == {"here": 1, "there": 6}


@pytest.mark.parametrize("error", [0.1, float("nan"), 1e30])
def test_a_machine_that_computes_something_else_is_named(elsewhere, error, same_model):
    elsewhere.error = error
    with pytest.raises(WorkerError, match="worker there computes something else than this machine"):
        list(workers().map(same_model, elsewhere, range(6)))


def test_results_agree_by_their_floats_alone():
    one = Thing(table={"a": torch.ones(3), "b": [np.zeros(2), 1.5]}, count=3)
    assert agree(one, replace(one, count=4))
    assert agree(one, replace(one, table={**one.table, "a": torch.ones(3) + 1e-6}))
    assert not agree(one, replace(one, table={**one.table, "a": torch.ones(4)}))
    assert not agree(one, replace(one, table={"a": torch.ones(3)}))
    assert agree([float("nan")] * 3, [float("nan")] * 3) and not agree([float("nan")], [0.0]) and agree(None, None)


def test_a_model_with_changed_weights_stays_in_this_process(same_model):
    changed = same_model.with_weights({"up": same_model.weight("up") * 2})
    with pytest.raises(CannotRunError, match="without a cluster"):
        list(workers().map(changed, double, [1]))


def test_workers_are_in_use_within_the_block_only():
    team = workers()
    with using(team):
        assert current() is team
    assert current() is None


def need(**changes) -> Need:
    summary = open_model(DEMO).summary
    return replace(Need(
        version=VERSION, torch=torch.__version__, threads=torch.get_num_threads(), source=summary.source,
        fingerprint=summary.fingerprint, placement=workers().placement, trust=False,
    ), **changes)  # fmt: skip


@pytest.fixture
def opening(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(module, "_opened", {})


def name_of(model, piece):
    return model.summary.fingerprint


def test_a_worker_opens_the_model_once(opening, monkeypatch):
    expected = need()
    assert pickle.loads(run_piece(expected, name_of, NOTHING))[1] == expected.fingerprint
    monkeypatch.setattr(module, "_open", lambda need: pytest.fail("opened again"))
    assert pickle.loads(run_piece(expected, name_of, NOTHING))[1] == expected.fingerprint


@pytest.mark.parametrize(("changes", "says"), [({"version": "0.0.1"}, "the workbench"), ({"torch": "1.0"}, "torch")])
def test_a_worker_of_another_version_says_so(opening, changes, says):
    with pytest.raises(WorkerError, match=f"worker .*it has {says} .* install the same version"):
        run_piece(need(**changes), name_of, NOTHING)


def test_a_worker_without_the_file_says_where_it_looked(opening, tmp_path):
    expected = need()
    with pytest.raises(WorkerError, match=f"does not exist there; share the folder.*{MODELS}"):
        run_piece(replace(expected, source=replace(expected.source, path=str(tmp_path / "model"))), name_of, NOTHING)


def test_a_worker_finds_the_model_in_its_own_folder_and_checks_it(opening, tmp_path, monkeypatch):
    from safetensors.torch import save_file

    save_file({"a.weight": torch.randn(8, 8)}, tmp_path / "weights.safetensors")
    save_file({"a.weight": torch.randn(8, 8)}, tmp_path / "other.safetensors")
    summary = open_model(tmp_path / "weights.safetensors").summary
    folder, mark = tmp_path / "models", summary.fingerprint.removeprefix("sha256:")
    folder.mkdir()
    os.rename(tmp_path / "weights.safetensors", folder / f"{mark}.safetensors")
    expected = need(source=summary.source, fingerprint=summary.fingerprint)
    monkeypatch.setenv(MODELS, str(folder))
    assert pickle.loads(run_piece(expected, name_of, NOTHING))[1] == summary.fingerprint
    module._opened.clear()
    os.rename(tmp_path / "other.safetensors", folder / "weights.safetensors")
    with pytest.raises(FingerprintMismatchError, match="worker"):  # the name counts before the fingerprint
        run_piece(expected, name_of, NOTHING)

"""Estimates: what a trial says about all samples, what cannot fit, and who is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
import torch

import workbench as wb
from tests.engine.fakes import Fake
from tests.engine.inline_engine import InlineEngine
from tests.planning.synthetic import linear
from workbench import preflight
from workbench.deployment.onnx import capture_cost
from workbench.engine.jobs import Jobs
from workbench.errors import CancelledError, MemoryLimitError
from workbench.memory import anonymous_memory, memory_limit
from workbench.models.data.datasets import open_dataset
from workbench.models.model import Batch, Model
from workbench.models.sources import open_model
from workbench.preflight import Estimate
from workbench.progress import Progress, heeding, silent
from workbench.session.session import Session
from workbench.steps.calibrate import CALIBRATE, CalibrateOptions
from workbench.steps.preflight import costs, pilot, rounding
from workbench.steps.preflight.record import RESOURCES, StepCosts, with_estimate
from workbench.steps.step import Context, Step

GB = 10**9


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(preflight, "CLOCK", made)
    return made


@pytest.mark.parametrize(("samples", "each"), [(100, 50.0), (4, 2.0)])
def test_what_takes_long_or_runs_few_samples_is_tried_once(clock: Clock, samples: int, each: float) -> None:
    counts = []

    def run(count: int) -> None:
        counts.append(count)
        clock.now += each * count

    line = pilot.pilot(run, samples, 8)
    assert line is not None and counts == [1] and line.seconds(samples, 8) == pytest.approx(samples * each)


@pytest.mark.parametrize("loading", [0.4, 15.0])
def test_a_sample_is_tried_again_where_the_first_trial_may_have_loaded_something(clock: Clock, loading: float) -> None:
    """Libraries and kernels are loaded once, for half a minute on a busy machine, whatever the number of samples."""
    counts = []

    def run(count: int) -> None:
        counts.append(count)
        clock.now += 0.1 + 0.2 * count + (loading if len(counts) == 1 else 0.0)

    line = pilot.pilot(run, 100, 8)
    assert line is not None and counts == [1, 1, 4]
    assert (line.fixed, line.each) == (pytest.approx(0.1), pytest.approx(0.2))
    assert line.seconds(100, 8) == pytest.approx(13 * 0.1 + 100 * 0.2)


@pytest.mark.parametrize(("samples", "each"), [(16, 0.5), (100, 10.0)])
def test_a_batch_is_tried_where_that_is_a_small_part_of_the_step(clock: Clock, samples: int, each: float) -> None:
    counts = []

    def run(count: int) -> None:
        counts.append(count)
        clock.now += each * count

    line = pilot.pilot(run, samples, 8)
    assert line is not None and counts == [1, 1] and line.seconds(samples, 8) == pytest.approx(samples * each)


def test_short_work_is_not_estimated(clock: Clock) -> None:
    def run(count: int) -> None:
        clock.now += 0.01 * count

    assert pilot.pilot(run, 100, 8) is None


def test_what_cannot_fit_is_refused_with_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = Estimate(seconds=10, memory=3 * GB, least=3 * GB)
    with memory_limit("2GB"), pytest.raises(MemoryLimitError, match=r"^Score needs at least 3 GB .* 2 GB are allowed"):
        needs.require("Score")
    with memory_limit("4GB"):
        needs.require("Score")
    writes = Estimate(seconds=10, memory=GB, disk=10**18, folder=str(tmp_path / "not" / "there"))
    with pytest.raises(MemoryLimitError, match=r"^Export writes about 1e\+06 TB at .*, where .* are free"):
        writes.require("Export")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Of the step below."""


def test_a_short_calibration_is_estimated_under_a_limit_and_refused_where_it_cannot_fit(clock: Clock) -> None:
    model = open_model("demo:language-model")
    data = open_dataset("demo:language-model", model, split="calibration", samples=4)
    short = costs.calibration(model, data, batch_size=4, weights=False)
    assert (short.seconds, short.samples) == (0.0, 4), "a form says how many samples all are"
    with memory_limit(anonymous_memory() + GB):
        expected = costs.calibration(model, data, batch_size=4, weights=False)
        assert expected.is_short and 0 < expected.least < expected.memory
        expected.require("Calibrate")
    with (
        memory_limit(anonymous_memory() // 2),
        pytest.raises(MemoryLimitError, match=r"Calibrate needs at least .* of memory, one sample at a time.*allowed"),
    ):
        expected.require("Calibrate")


def test_only_a_form_gets_the_estimate_of_a_short_step_and_a_cancelled_trial_ends(clock: Clock) -> None:
    short = Estimate(seconds=1, memory=0, samples=4)
    tried: list[int] = []

    def trials(context: Context, options: Options) -> Estimate:
        pilot.pilot(tried.append, 4, 1)
        return short

    step = Step(name="short", title="", summary="", options=Options, run=lambda *each: 0, document=False, costs=trials)
    assert step.estimate(Context(), Options()) is None
    assert step.estimate(Context(), Options(), strict=True) is short and len(tried) == 2

    def cancelled(fraction: float, text: str, partial: object = None) -> None:
        raise CancelledError(text)

    with pytest.raises(CancelledError):
        step.estimate(Context(progress=cancelled), Options(), strict=True)
    assert len(tried) == 2, "a trial began after the user had closed the form"


def test_a_long_step_reports_before_and_after(clock: Clock) -> None:
    message: list[tuple[str, object]] = []

    def run(context: Context, options: Options) -> int:
        clock.now += 12
        message.append(("running", None))
        return 5

    expected = Estimate(seconds=10, memory=3 * GB)
    step = Step(
        name="long", title="Long", summary="", options=Options, run=run, document=False,
        costs=lambda context, options: expected,
    )  # fmt: skip
    assert step(None, Options(), says=lambda fraction, text, partial=None: message.append((text, partial))) == 5
    assert message[0] == ("Long: about 10 s, 3 GB of memory", expected) and message[1][0] == "running"
    after = message[2][1]
    assert isinstance(after, Estimate) and after.took == 12 and after.peak
    assert message[2][0].startswith("Long: took 12 s and ")
    assert message[2][0].endswith(" of memory (10 s and 3 GB were estimated)")


def test_the_list_of_jobs_shows_it() -> None:
    expected = Estimate(seconds=10, memory=3 * GB)

    @dataclass(frozen=True, slots=True, kw_only=True, eq=False)
    class Says(Fake):
        """Says what it will take, and goes on with another text at once."""

        def run(self, models: object, progress: Progress) -> int:
            progress(0.0, "about 10 s", expected)
            progress(0.5, "half done", "a partial result")
            return 7

    async def main() -> None:
        jobs = Jobs(InlineEngine())
        job = jobs.submit(Says())
        assert await job.result() == 7
        assert job.view.estimate == expected
        await jobs.close()

    asyncio.run(main())


def test_a_trial_speaks_for_the_run_after_it_and_for_other_numbers_of_samples(
    everything_is_long: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Batch] = []
    run = costs.observe_batch

    def observed(model: Model, batch: Batch) -> object:
        tried.append(batch)
        return run(model, batch)

    monkeypatch.setattr(costs, "observe_batch", observed)
    model = open_model("demo:language-model")
    estimate = partial(CALIBRATE.estimate, Context(opened=model, document=wb.start(model)))
    whole = estimate(CalibrateOptions())
    before = len(tried)
    part = estimate(CalibrateOptions(samples=20))
    assert before and len(tried) == before, "the trial is not repeated"
    assert whole is not None and part is not None
    assert part.samples == 20
    assert whole.seconds - part.seconds == pytest.approx((whole.samples - 20) * whole.sample_seconds)
    estimate(CalibrateOptions(batch_size=2))
    assert len(tried) > before, "other batches are tried"


def test_a_trial_that_fails_leaves_the_error_to_the_step() -> None:
    step = Step(
        name="long", title="Long", summary="", options=Options, run=lambda context, options: 5, document=False,
        costs=lambda context, options: 1 / 0,  # type: ignore[arg-type,return-value]
    )  # fmt: skip
    assert step(None, Options(), says=silent) == 5


def test_the_session_records_the_last_run_of_each_step(tmp_path: Path) -> None:
    session = wb.start(wb.open("demo:language-model"))
    for seconds in (5.0, 6.0):
        done = Estimate(seconds=seconds, memory=2 * GB, took=seconds + 1, peak=GB)
        session = with_estimate(session, "calibrate", done)
    assert with_estimate(session, "evaluate", replace(done, took=None)) is session
    session.save(tmp_path / "S.qwb")
    rows = Session.load(tmp_path / "S.qwb").results[RESOURCES].rows(StepCosts)
    assert rows == (
        StepCosts(step="calibrate", seconds=7.0, estimated_seconds=6.0, memory=GB, estimated_memory=2 * GB),
    )


@pytest.fixture
def everything_is_long(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(pilot, "SHORT", 0.0)
    monkeypatch.setattr(costs, "SHORT", 0.0)
    monkeypatch.setattr(rounding, "SHORT_WEIGHTS", 0)
    yield


def test_every_long_step_has_an_estimate(everything_is_long: None, tmp_path: Path) -> None:
    model = wb.open("demo:language-model")
    assert isinstance(wb.estimate("calibrate", model, samples=4), Estimate)
    session = wb.calibrate(model, samples=4)
    plans = {name: wb.Plan.uniform(model.summary.stored, "int4-g32-asym", algorithm=name) for name in ("rtn", "gptq")}
    session = wb.score(session, model=model, schemes=("int4-g32-asym", "int8"))
    requested = [
        wb.estimate("sensitivity", session, model=model, schemes=("int3-g32-asym",)),
        wb.estimate("sensitivity", session, model=model, schemes=("int8",), metric="measured_kl"),
        wb.estimate("evaluate", session, model=model, plan=plans["rtn"], samples=4),
        wb.estimate("evaluate", session, model=model, plan=plans["gptq"], samples=4),
        wb.estimate("refine", session, model=model, bits_per_weight=6.0),
        wb.estimate("runtime", session, model=model, plan=plans["rtn"]),
        wb.estimate("export", session, model=model, plan=plans["gptq"], kind="safetensors", out=str(tmp_path / "a")),
    ]
    assert all(isinstance(each, Estimate) and each.seconds > 0 and each.memory > 0 for each in requested), requested
    assert requested[-1] is not None and requested[-1].disk > 0
    assert wb.estimate("explain", session, model=model) is None


def test_learned_plans_are_estimated_with_all_their_steps(everything_is_long: None, tmp_path: Path) -> None:
    model = wb.open("demo:language-model")
    session = wb.calibrate(model, samples=4)
    plans = [wb.Plan.uniform(model.summary.stored, "int4-g32-asym", algorithm=name) for name in ("rtn", "learned")]
    out = str(tmp_path / "a")
    seconds = [
        [wb.estimate("evaluate", session, model=model, plan=plan, samples=4) for plan in plans],
        [wb.estimate("export", session, model=model, plan=plan, kind="gguf", out=out) for plan in plans],
    ]
    for plain, learned in seconds:
        assert plain is not None and learned is not None and learned.seconds > 10 * plain.seconds
        assert learned.memory > plain.memory
    few, many = (
        wb.estimate("train", session, model=model, plan=plans[0], steps=steps, kind="gguf", out=out)
        for steps in (1000, 9000)
    )
    assert few is not None and many is not None and 3 * few.seconds < many.seconds < 27 * few.seconds


def test_a_plan_with_transforms_has_no_estimate_rather_than_a_wrong_one(everything_is_long: None) -> None:
    model = wb.open("demo:language-model")
    session = wb.calibrate(model, samples=4)
    plan = replace(wb.Plan.uniform(model.summary.stored, "int4-g32-asym"), transforms=("smoothquant",))
    assert wb.estimate("evaluate", session, model=model, plan=plan, samples=4) is None
    assert wb.estimate("export", session, model=model, plan=plan, kind="safetensors", out="a") is None


def test_what_an_exporter_does_before_it_writes_is_part_of_the_estimate(
    everything_is_long: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture_cost, "capture_seconds", lambda model: 1000.0)
    model = wb.open("demo:language-model")
    plan = wb.Plan.uniform(model.summary.stored, "int4-g32-asym", algorithm="rtn")
    for kind, least in (("onnx", 1000.0), ("onnx-genai", 1000.0), ("safetensors", 0.0)):
        expected = wb.estimate("export", wb.start(model), model=model, plan=plan, kind=kind, out=str(tmp_path / "a"))
        assert expected is not None and least < expected.seconds < least + 500.0, kind
    written = wb.apply(model, plan, "onnx", tmp_path / "written.onnx")
    again = wb.open(written[0])  # whose own graph is written
    expected = wb.estimate("export", wb.start(again), model=again, plan=wb.Plan(), kind="onnx", out=str(tmp_path / "a"))
    assert expected is not None and expected.seconds < 500.0


def test_rounding_is_tried_on_a_layer_of_the_size_in_which_most_weights_lie() -> None:
    few = [linear(str(number), rows=4, columns=1) for number in range(20)]
    large = [linear("large", rows=30, columns=10), linear("small", rows=9, columns=10)]
    assert rounding._usual([*few, *large]).name == "large" and rounding._usual(few).parameters == 4


def test_writing_is_tried_where_the_file_goes(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    def synced(file: int) -> None:
        clock.now += 0.5

    monkeypatch.setattr(costs.os, "fsync", synced)
    assert costs.writing_seconds(tmp_path, 10 * costs.WRITTEN) == pytest.approx(5.0)
    assert costs.writing_seconds(tmp_path, 1000) == pytest.approx(0.5)
    assert costs.writing_seconds(tmp_path / "none", 1000) == 0.0 and not list(tmp_path.iterdir())


def test_the_first_samples_say_how_many_there_are() -> None:
    model = wb.open("demo:language-model")
    data = open_dataset("demo:language-model", model, split="calibration", samples=6)
    first = pilot.FirstSamples(data, 2)
    assert len(first) == 6 and [len(batch["input_ids"]) for batch in first.batches(8)] == [2]


def test_a_trial_that_is_cancelled_ends_in_the_middle_of_its_pass() -> None:
    network, run = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(20))), list[int]()
    for place, layer in enumerate(network):
        layer.register_forward_hook(lambda *_, place=place: run.append(place))

    def cancel(fraction: float, text: str, partial: object = None) -> None:
        if len(run) == 5:
            raise CancelledError("cancelled")

    with heeding(cancel), pytest.raises(CancelledError):
        pilot.pilot(lambda count: network(torch.zeros(count, 4)), 1000, 4, least=0.0)
    assert len(run) == 5
    network(torch.zeros(1, 4))
    assert len(run) == 25, "what runs later is not a trial"

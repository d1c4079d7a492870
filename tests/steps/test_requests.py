"""Requests: what crosses the pipe, what comes back, and how it joins a session that was edited meanwhile."""

from __future__ import annotations

import asyncio
import pickle
import shutil
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.test_engine import engine, run
from tests.session.models import SCHEMES, session, table
from workbench.engine import model_cache
from workbench.engine.inline_engine import InlineEngine
from workbench.engine.model_cache import ModelCache
from workbench.errors import CannotRunError, FingerprintMismatchError, SessionError, TrustRequiredError
from workbench.measurement.evaluation import Evaluation, Timing
from workbench.models.data.record import DataRecord
from workbench.numerics.curvature import Curvature
from workbench.numerics.ranges import Range
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.session.session import Session
from workbench.steps import requests, tasks
from workbench.steps.timings import TimeKernels

BIG = Curvature(rows=np.ones(32), columns=np.ones(32), full=np.ones((32, 32), np.float32), count=1)
RECORD = DataRecord(name="d", path="d", split="calibration", samples=1, seed=0, content_hash="sha256:d")


def evaluation(plan: str = "sha256:p", data: str = "sha256:d", bits: float = 4.0) -> Evaluation:
    return Evaluation(
        plan_name="p", plan_hash=plan, data_name="d", data_hash=data, bits_per_weight=bits, nbytes=1,
        predicted_kl=None, metrics={},
    )  # fmt: skip


def timing(scheme: str, microseconds: float = 1.0) -> Timing:
    return Timing(
        layer="l", scheme=scheme, kernel="k", baseline_kernel="b", shape=(1, 1), batch=1, device="cpu", note="",
        samples=np.array([microseconds]), baseline_samples=np.array([1.0]),
    )  # fmt: skip


def full_session() -> Session:
    """A session with something of everything."""
    one = session()
    return replace(
        one, calibration=RECORD, curvature={"blocks.0.proj": BIG}, evaluations=(evaluation(),),
        timings=(timing("int8-channel"),), plans={"other": Plan(name="other")},
        sensitivities={**one.sensitivities, "measured_kl": table(one.model, "measured_kl")},
    )  # fmt: skip


REQUESTS: list[Any] = [
    requests.OpenModel(path="/models/small"),
    requests.OpenSession(path="/a/s.qwb"),
    requests.SaveSession(session=full_session(), path="/a/s.qwb"),
    requests.Calibrate(session=full_session(), data="/data/text.txt"),
    requests.Score(session=full_session(), metric="predicted_kl", schemes=SCHEMES),
    requests.SearchPlan(session=full_session(), bits_per_weight=4.5),
    requests.SearchPlan(session=full_session(), nbytes=120_000_000),
    requests.Evaluate(session=full_session(), data="demo:language-model"),
    TimeKernels(session=full_session()),
    requests.Export(session=full_session(), kind="plan", out="/a/plan.json"),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: type(one).__name__)
def test_requests_have_a_title_and_cross_a_pipe_slim_or_not(request_: Any) -> None:
    assert request_.title and "/" not in request_.title
    for one in (request_, requests.slim(request_)):
        assert type(pickle.loads(pickle.dumps(one))) is type(request_)
    with pytest.raises(FrozenInstanceError):
        setattr(request_, fields(request_)[0].name, "mutable")


def test_titles_are_readable() -> None:
    assert [one.title for one in REQUESTS] == [
        "Open small", "Open s.qwb", "Save s.qwb", "Calibrate on text.txt", "Sensitivity by predicted KL",
        "Search a plan of 4.5 bits per weight", "Search a plan of 120,000,000 bytes",
        "Evaluate “plan” on demo:language-model", "Time the kernels of “plan”", "Export plan to plan.json",
    ]  # fmt: skip


def test_slimming_drops_what_the_task_does_not_need() -> None:
    whole = full_session()
    score = requests.Score(session=whole, metric="predicted_kl", schemes=SCHEMES).slim().session
    assert score.curvature["blocks.0.proj"].full is None and set(score.sensitivities) == {"predicted_kl"}
    assert not requests.Score(session=whole, metric="measured_kl").slim().session.curvature
    assert requests.Score(session=whole, algorithm="gptq").slim().session.curvature["blocks.0.proj"].full is not None
    for slimmed in (
        requests.Evaluate(session=whole).slim().session,
        TimeKernels(session=whole).slim().session,
        requests.slim(requests.Export(session=whole, kind="plan", out="x")).session,
    ):
        assert not slimmed.curvature and not slimmed.statistics and not slimmed.evaluations and not slimmed.timings
        assert slimmed.plan is whole.plan and slimmed.calibration is RECORD
    needs = replace(whole, plan=whole.plan.assign(["blocks.0.proj"], algorithm="gptq"))
    assert requests.Evaluate(session=needs).slim().session.curvature
    transformed = replace(whole, plan=replace(whole.plan, transforms=("awq",)))
    for request in (requests.Evaluate(session=transformed), requests.Export(session=transformed, kind="gguf", out="o")):
        assert requests.slim(request).session.curvature["blocks.0.proj"].full is not None, "awq looks at the inputs"


def test_calibration_joins_a_session_edited_meanwhile() -> None:
    before = full_session()
    own = Range(low=-1.0, high=1.0, method="manual", clipped=0.0)
    found = Range(low=-2.0, high=2.0, method="min-max", clipped=0.0)
    now = replace(
        before, plan=before.plan.assign(["embed"], weights="int8-channel"), locked=frozenset({"embed"}),
        active_ranges={("blocks.0.proj", "input"): own},
    )  # fmt: skip
    response = replace(
        before, calibration=RECORD, curvature={"blocks.1.proj": BIG}, notes=("batch 2 was left out",),
        ranges={("blocks.0.proj", "input", "min-max"): found},
        active_ranges={("blocks.0.proj", "input"): found, ("blocks.1.proj", "input"): found},
    )  # fmt: skip
    joined = requests.merge(now, requests.Calibrate(session=before, data="d"), response)
    assert joined.plan is now.plan and joined.locked == now.locked
    assert joined.active_ranges == {("blocks.0.proj", "input"): own, ("blocks.1.proj", "input"): found}
    assert joined.calibration is RECORD and set(joined.curvature) == {"blocks.1.proj"}
    assert joined.notes == ("batch 2 was left out",)
    assert joined.sensitivities is now.sensitivities and joined.evaluations is now.evaluations


def test_other_results_join() -> None:
    now = full_session()
    new = table(now.model, "weight_error")
    assert requests.merge(now, requests.Score(session=now, metric="weight_error"), new).sensitivities == {
        **now.sensitivities, "weight_error": new,
    }  # fmt: skip
    plan = Plan(name="found")
    assert requests.merge(now, requests.SearchPlan(session=now), plan).plan is plan
    again, other = evaluation(bits=5.0), evaluation(data="sha256:e")
    merged = requests.merge(now, requests.Evaluate(session=now), again)
    assert merged.evaluations == (again,), "a repeated evaluation must replace the earlier one"
    assert requests.merge(merged, requests.Evaluate(session=now), other).evaluations == (again, other)
    times = (timing("int8-channel", 2.0), timing("bf16"))
    assert requests.merge(now, TimeKernels(session=now), times).timings == times
    assert requests.merge(now, requests.SaveSession(session=now, path="x"), "x") is now
    assert requests.merge(now, requests.Export(session=now, kind="plan", out="x"), ("x",)) is now


def test_a_result_of_another_model_does_not_join() -> None:
    now = full_session()
    other = replace(now, model=replace(now.model, fingerprint="sha256:other"))
    with pytest.raises(FingerprintMismatchError):
        requests.merge(other, requests.Score(session=now, metric="weight_error"), table(now.model, "weight_error"))


def test_the_whole_job_through_the_engine_process(llama: Path, tokens: Path, tmp_path: Path) -> None:
    async def main() -> None:
        async with engine() as one:
            number = iter(range(1, 100))

            async def ask(request: Any) -> Any:
                return await one.run(next(number), requests.slim(request))

            now = await ask(requests.OpenModel(path=str(llama)))
            for make in (
                lambda s: requests.Calibrate(session=s, data=str(tokens), batch_size=4),
                lambda s: requests.Score(session=s, metric="predicted_kl", schemes=SCHEMES),
                lambda s: requests.SearchPlan(session=s, bits_per_weight=5.0),
                lambda s: requests.Evaluate(session=s, batch_size=4),
            ):
                request = make(now)
                now = requests.merge(now, request, await ask(request))
            path = str(tmp_path / "s.qwb")
            assert await ask(requests.SaveSession(session=now, path=path)) == path
            back = await ask(requests.OpenSession(path=path))
            assert back.plan == now.plan and back.ranges == now.ranges
            (written,) = await ask(requests.Export(session=back, kind="plan", out=str(tmp_path / "plan.json")))
            assert Plan.load(written).hash == now.plan.hash
            with pytest.raises(SessionError):
                await ask(requests.OpenSession(path=str(tokens)))
            results.append(now)

    results: list[Session] = []
    run(main)
    (now,) = results
    model = tasks.open(llama)
    inline = tasks.score(tasks.calibrate(model, tokens, batch_size=4), model=model, schemes=SCHEMES)
    np.testing.assert_allclose(
        now.sensitivities["predicted_kl"].score, inline.sensitivities["predicted_kl"].score, rtol=1e-4
    )
    assert now.evaluations[0].metrics["kl"].value > 0


NETWORK = """
from torch import nn

def build():
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
"""


def test_a_python_file_needs_trust_each_time_it_is_opened(tmp_path: Path) -> None:
    file = tmp_path / "network.py"
    file.write_text(NETWORK)
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    save_file(
        {
            "0.weight": torch.randn(8, 8),
            "0.bias": torch.zeros(8),
            "2.weight": torch.randn(4, 8),
            "2.bias": torch.zeros(4),
        },
        str(tmp_path / "weights.safetensors"),
    )
    models = ModelCache()
    with pytest.raises(TrustRequiredError) as caught:
        requests.OpenModel(path=str(file)).run(models, silent)
    assert caught.value.file == str(file)
    found = requests.OpenModel(path=str(file), trust=True).run(models, silent)
    assert models.get(found.model).summary.fingerprint == found.model.fingerprint, "an open model needs no more trust"
    score = requests.Score(session=found, metric="weight_error", schemes=("int8-channel",))
    score.run(models, silent)
    with pytest.raises(TrustRequiredError):
        score.run(ModelCache(), silent)
    replace(score, trust=True).run(ModelCache(), silent)
    file.write_text(NETWORK + "\n# edited\n")
    with pytest.raises(TrustRequiredError):
        models.get(found.model)


def test_the_cache_keeps_a_few_models_and_notices_changed_files(
    llama: Path, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "weights.safetensors"
    shutil.copy(bare, copy)
    opened: list[str] = []
    real = model_cache.reopen

    def counting(summary: Any, *, trust: bool = False) -> Any:
        opened.append(summary.source.path)
        return real(summary, trust=trust)

    monkeypatch.setattr(model_cache, "reopen", counting)
    models = ModelCache(size=2)
    facts = [tasks.open(path).summary for path in (copy, bare, llama)]
    for one in (facts[0], facts[1], facts[0], facts[2], facts[0]):
        models.get(one)
    assert opened == [facts[0].source.path, facts[1].source.path, facts[2].source.path]
    models.get(facts[1])
    assert len(opened) == 4, "the least recently used model was not the one closed"
    content = bytearray(copy.read_bytes())
    content[-1] ^= 1
    copy.write_bytes(content)
    with pytest.raises(FingerprintMismatchError):
        models.get(facts[0])


def test_a_stamp_sees_every_file_that_can_matter(tmp_path: Path) -> None:
    from workbench.models.summary import ModelSource

    code = tmp_path / "network.py"
    code.write_text("x")
    source = ModelSource(kind="python_module", path=str(code))
    first = model_cache.stamp(source)
    (tmp_path / "weights.pt").write_bytes(b"1")
    second = model_cache.stamp(source)
    (tmp_path / "notes.txt").write_text("no part of the model")
    assert first != second == model_cache.stamp(source)
    assert model_cache.stamp(ModelSource(kind="huggingface", path="demo:language-model")) == ()


def test_weights_only_models_say_why_they_cannot_be_evaluated(bare: Path) -> None:
    async def main() -> None:
        one = InlineEngine()
        found = await one.run(1, requests.OpenModel(path=str(bare)))
        with pytest.raises(CannotRunError):
            await one.run(2, requests.slim(requests.Evaluate(session=found)))
        await one.close()

    asyncio.run(main())

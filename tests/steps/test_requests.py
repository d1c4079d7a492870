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

import workbench as wb
from tests.engine.inline_engine import InlineEngine
from tests.engine.processes import engine, run
from tests.session.models import SCHEMES, session, table
from workbench.engine import model_cache
from workbench.engine.model_cache import ModelCache
from workbench.errors import CannotRunError, FingerprintMismatchError, SessionError, TrustRequiredError
from workbench.measurement.evaluation import Evaluation, Timing
from workbench.models.data.record import DataRecord
from workbench.models.summary import OutputKind
from workbench.numerics.curvature import Curvature
from workbench.numerics.ranges import Range
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.session.session import Session
from workbench.session.shared_file import stamp_of
from workbench.steps.calibrate import CALIBRATE, CalibrateOptions
from workbench.steps.evaluate import EVALUATE, EvaluateOptions
from workbench.steps.files.export import EXPORT, ExportOptions
from workbench.steps.files.open_model import OPEN, OpenModelOptions
from workbench.steps.files.open_session import OPEN_SESSION, OpenSessionOptions
from workbench.steps.files.save_session import SAVE_SESSION, SaveSessionOptions
from workbench.steps.score import SCORE, ScoreOptions
from workbench.steps.search import SEARCH, SearchOptions
from workbench.steps.timing.kernels import TIME_KERNELS, TimeKernelsOptions

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
    written = session()
    return replace(
        written, calibration=RECORD, curvature={"blocks.0.proj": BIG}, evaluations=(evaluation(),),
        timings=(timing("int8-channel"),), plans={"other": Plan(name="other")},
        sensitivities={**written.sensitivities, "measured_kl": table(written.model, "measured_kl")},
    )  # fmt: skip


REQUESTS: list[Any] = [
    OPEN.request(None, OpenModelOptions(path="/models/small")),
    OPEN_SESSION.request(None, OpenSessionOptions(path="/a/s.qwb")),
    SAVE_SESSION.request(full_session(), SaveSessionOptions(path="/a/s.qwb")),
    CALIBRATE.request(full_session(), CalibrateOptions(data="/data/text.txt")),
    SCORE.request(full_session(), ScoreOptions(metric="predicted_kl", schemes=SCHEMES)),
    SEARCH.request(full_session(), SearchOptions(bits_per_weight=4.5)),
    SEARCH.request(full_session(), SearchOptions(size=120_000_000)),
    EVALUATE.request(full_session(), EvaluateOptions(data="demo:language-model")),
    TIME_KERNELS.request(full_session(), TimeKernelsOptions()),
    EXPORT.request(full_session(), ExportOptions(kind="plan", out="/a/plan.json")),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda item: item.step.name)
def test_requests_have_a_title_and_cross_a_pipe_whole_or_reduced(request_: Any) -> None:
    assert request_.title and "/" not in request_.title
    for item in (request_, request_.reduced()):
        back = pickle.loads(pickle.dumps(item))
        assert (back.step, back.options, back.title) == (item.step, item.options, item.title)
    with pytest.raises(FrozenInstanceError):
        setattr(request_, fields(request_)[0].name, "mutable")


def test_titles_are_readable() -> None:
    assert [item.title for item in REQUESTS] == [
        "Open small", "Open s.qwb", "Save s.qwb", "Calibrate on text.txt", "Sensitivity by predicted KL",
        "Search a plan of 4.5 bits per weight", "Search a plan of 120,000,000 bytes",
        "Evaluate “plan” on demo:language-model", "Time the kernels of “plan”", "Export plan to plan.json",
    ]  # fmt: skip


def test_reducing_drops_what_the_step_does_not_need() -> None:
    whole = full_session()
    score = SCORE.request(whole, ScoreOptions(metric="predicted_kl", schemes=SCHEMES)).reduced().session
    assert score.curvature["blocks.0.proj"].full is None and set(score.sensitivities) == {"predicted_kl"}
    assert not SCORE.request(whole, ScoreOptions(metric="measured_kl")).reduced().session.curvature
    gptq = SCORE.request(whole, ScoreOptions(algorithm="gptq")).reduced().session
    assert gptq.curvature["blocks.0.proj"].full is not None
    for reduced in (
        EVALUATE.request(whole, EvaluateOptions()).reduced().session,
        TIME_KERNELS.request(whole, TimeKernelsOptions()).reduced().session,
        EXPORT.request(whole, ExportOptions(kind="plan", out="x")).reduced().session,
    ):
        assert not reduced.curvature and not reduced.statistics and not reduced.evaluations and not reduced.timings
        assert reduced.plan is whole.plan and reduced.calibration is RECORD
    needs = replace(whole, plan=whole.plan.assign(["blocks.0.proj"], algorithm="gptq"))
    assert EVALUATE.request(needs, EvaluateOptions()).reduced().session.curvature
    transformed = replace(whole, plan=replace(whole.plan, transforms=("awq",)))
    export = EXPORT.request(transformed, ExportOptions(kind="gguf", out="o"))
    for request in (EVALUATE.request(transformed, EvaluateOptions()), export):
        assert request.reduced().session.curvature["blocks.0.proj"].full is not None, "awq looks at the inputs"


def test_calibration_joins_a_session_edited_meanwhile() -> None:
    before = full_session()
    own = Range(low=-1.0, high=1.0, method="manual", clipped=0.0)
    result = Range(low=-2.0, high=2.0, method="min-max", clipped=0.0)
    now = replace(
        before, plan=before.plan.assign(["embed"], weights="int8-channel"), locked=frozenset({"embed"}),
        active_ranges={("blocks.0.proj", "input"): own},
    )  # fmt: skip
    response = replace(
        before, calibration=RECORD, curvature={"blocks.1.proj": BIG}, notes=("batch 2 was left out",),
        ranges={("blocks.0.proj", "input", "min-max"): result},
        active_ranges={("blocks.0.proj", "input"): result, ("blocks.1.proj", "input"): result},
    )  # fmt: skip
    joined = CALIBRATE.request(before, CalibrateOptions(data="d")).joined(now, response)
    assert joined.plan is now.plan and joined.locked == now.locked
    assert joined.active_ranges == {("blocks.0.proj", "input"): own, ("blocks.1.proj", "input"): result}
    assert joined.calibration is RECORD and set(joined.curvature) == {"blocks.1.proj"}
    assert joined.notes == ("batch 2 was left out",)
    assert joined.sensitivities is now.sensitivities and joined.evaluations is now.evaluations


def test_other_results_join() -> None:
    now = full_session()
    new = table(now.model, "weight_error")
    assert SCORE.request(now, ScoreOptions(metric="weight_error")).joined(now, new).sensitivities == {
        **now.sensitivities, "weight_error": new,
    }  # fmt: skip
    plan = Plan(name="found")
    assert SEARCH.request(now, SearchOptions()).joined(now, plan).plan is plan
    again, other = evaluation(bits=5.0), evaluation(data="sha256:e")
    merged = EVALUATE.request(now, EvaluateOptions()).joined(now, again)
    assert merged.evaluations == (again,), "a repeated evaluation must replace the earlier one"
    assert EVALUATE.request(now, EvaluateOptions()).joined(merged, other).evaluations == (again, other)
    times = (timing("int8-channel", 2.0), timing("bf16"))
    assert TIME_KERNELS.request(now, TimeKernelsOptions()).joined(now, times).timings == times
    assert SAVE_SESSION.request(now, SaveSessionOptions(path="x")).joined(now, "x") is now
    assert EXPORT.request(now, ExportOptions(kind="plan", out="x")).joined(now, ("x",)) is now


def test_a_result_of_another_model_does_not_join() -> None:
    now = full_session()
    other = replace(now, model=replace(now.model, fingerprint="sha256:other"))
    with pytest.raises(FingerprintMismatchError):
        SCORE.request(now, ScoreOptions(metric="weight_error")).joined(other, table(now.model, "weight_error"))


def test_the_whole_job_through_the_engine_process(llama: Path, tokens: Path, tmp_path: Path) -> None:
    async def main() -> None:
        async with engine() as running:
            number = iter(range(1, 100))

            async def ask(request: Any) -> Any:
                return await running.run(next(number), request.reduced())

            now = await ask(OPEN.request(None, OpenModelOptions(path=str(llama))))
            for make in (
                lambda s: CALIBRATE.request(s, CalibrateOptions(data=str(tokens), batch_size=4)),
                lambda s: SCORE.request(s, ScoreOptions(metric="predicted_kl", schemes=SCHEMES)),
                lambda s: SEARCH.request(s, SearchOptions(bits_per_weight=5.0)),
                lambda s: EVALUATE.request(s, EvaluateOptions(batch_size=4)),
            ):
                request = make(now)
                now = request.joined(now, await ask(request))
            path = str(tmp_path / "s.qwb")
            assert await ask(SAVE_SESSION.request(now, SaveSessionOptions(path=path))) == stamp_of(Path(path))
            back = await ask(OPEN_SESSION.request(None, OpenSessionOptions(path=path)))
            assert back.plan == now.plan and back.ranges == now.ranges
            (written,) = await ask(EXPORT.request(back, ExportOptions(kind="plan", out=str(tmp_path / "plan.json"))))
            assert Plan.load(written).hash == now.plan.hash
            with pytest.raises(SessionError):
                await ask(OPEN_SESSION.request(None, OpenSessionOptions(path=str(tokens))))
            results.append(now)

    results: list[Session] = []
    run(main)
    (now,) = results
    model = wb.open(llama)
    inline = wb.score(wb.calibrate(model, tokens, batch_size=4), model=model, schemes=SCHEMES)
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
        OPEN.request(None, OpenModelOptions(path=str(file))).run(models, silent)
    assert caught.value.file == str(file)
    result = OPEN.request(None, OpenModelOptions(path=str(file)), trust=True).run(models, silent)
    assert models.get(result.model).summary.fingerprint == result.model.fingerprint, "an open model needs no more trust"
    score = SCORE.request(result, ScoreOptions(metric="weight_error", schemes=("int8-channel",)))
    score.run(models, silent)
    with pytest.raises(TrustRequiredError):
        score.run(ModelCache(), silent)
    replace(score, trust=True).run(ModelCache(), silent)
    file.write_text(NETWORK + "\n# edited\n")
    with pytest.raises(TrustRequiredError):
        models.get(result.model)


def test_the_cache_keeps_a_few_models_and_notices_changed_files(
    llama: Path, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "weights.safetensors"
    shutil.copy(bare, copy)
    opened: list[str] = []
    real = model_cache.reopen

    def counting(summary: Any, **options: Any) -> Any:
        opened.append(summary.source.path)
        return real(summary, **options)

    monkeypatch.setattr(model_cache, "reopen", counting)
    models = ModelCache(size=2)
    facts = [wb.open(path).summary for path in (copy, bare, llama)]
    for item in (facts[0], facts[1], facts[0], facts[2], facts[0]):
        models.get(item)
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
        running = InlineEngine()
        result = await running.run(1, OPEN.request(None, OpenModelOptions(path=str(bare))))
        with pytest.raises(CannotRunError):
            await running.run(2, EVALUATE.request(result, EvaluateOptions()).reduced())
        await running.close()

    asyncio.run(main())


def test_the_title_of_an_encoders_scores_speaks_of_distances() -> None:
    session = full_session()
    encoder = replace(session, model=replace(session.model, output=OutputKind.EMBEDDING))
    for metric, title in (("predicted_kl", "predicted distance"), ("weight_error", "weight error")):
        assert SCORE.request(encoder, ScoreOptions(metric=metric)).title == f"Sensitivity by {title}"


@pytest.mark.parametrize(
    ("path", "words"),
    [("demo:python-documentation", "demo:python-documentation"),
     ("demo:python-documentation?window=2048", "demo:python-documentation (window 2048)"),
     ("/data/a.csv?column=my text&window=16", "a.csv (column my text, window 16)"), ("/data/why?.txt", "why?.txt")],
)  # fmt: skip
def test_how_data_are_read_stands_in_titles_as_words(path: str, words: str) -> None:
    for step, options in ((CALIBRATE, CalibrateOptions(data=path)), (EVALUATE, EvaluateOptions(data=path))):
        assert step.request(None, options).title.endswith(f" on {words}")

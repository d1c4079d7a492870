"""The table of steps is complete and honest: options, help, headings, scripts, what is needed and what is joined."""

from __future__ import annotations

import ast
import importlib
import inspect
import pickle
from dataclasses import MISSING, FrozenInstanceError, dataclass, fields, replace
from importlib.metadata import EntryPoint
from inspect import signature
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

import workbench as wb
from tests.gui import sessions
from workbench import registry
from workbench.errors import CannotRunError, MissingResultError, PlanError, WorkbenchError
from workbench.numerics.ranges import Range
from workbench.registry import Registry
from workbench.steps import STEPS
from workbench.steps.browse_samples import BROWSE_SAMPLES, BrowseSamplesOptions
from workbench.steps.calibrate import CALIBRATE, CalibrateOptions
from workbench.steps.checks.audit import AUDIT, AuditOptions
from workbench.steps.checks.compare_plans import COMPARE_PLANS, ComparePlansOptions, run_of
from workbench.steps.checks.error_budget import ERROR_BUDGET, ErrorBudgetOptions
from workbench.steps.checks.quality import QUALITY, QualityOptions
from workbench.steps.checks.reconstruction import RECONSTRUCTION, ReconstructionOptions
from workbench.steps.checks.refine import REFINE, RefineOptions
from workbench.steps.checks.runtime import RUNTIME, RuntimeOptions
from workbench.steps.compare import COMPARE, CompareOptions
from workbench.steps.devices import DEVICES, PLACES, DevicesOptions, PlacesOptions
from workbench.steps.evaluate import EVALUATE, EvaluateOptions
from workbench.steps.explain import EXPLAIN, ExplainOptions
from workbench.steps.files.export import EXPORT, ExportOptions
from workbench.steps.files.keep_recovery import KEEP_RECOVERY, KeepRecoveryOptions
from workbench.steps.files.open_model import OPEN, OpenModelOptions
from workbench.steps.files.open_session import OPEN_SESSION, OpenSessionOptions
from workbench.steps.files.save_session import SAVE_SESSION, SaveSessionOptions
from workbench.steps.front import FRONT, FrontOptions
from workbench.steps.layer.before_after import BEFORE_AFTER, BeforeAfterOptions
from workbench.steps.layer.channel_errors import CHANNEL_ERRORS, ChannelErrorsOptions
from workbench.steps.options import option_fields
from workbench.steps.score import SCORE, ScoreOptions
from workbench.steps.search import SEARCH, SearchOptions
from workbench.steps.step import Context, Step
from workbench.steps.targets import TARGETS, TargetsOptions
from workbench.steps.timing.candidates import TIME_CANDIDATES, TimeCandidatesOptions
from workbench.steps.timing.kernels import TIME_KERNELS, TimeKernelsOptions
from workbench.steps.timing.sweep import SWEEP_BATCHES, SweepBatchesOptions
from workbench.steps.train import TRAIN, TrainOptions

SESSION = sessions.full(1)
LAYER = SESSION.model.layers[1].name
FIRST, SECOND = (run_of(evaluation) for evaluation in SESSION.evaluations[:2])

REQUESTS = (
    OPEN.request(None, OpenModelOptions(path="m", factory="build")),
    OPEN_SESSION.request(None, OpenSessionOptions(path="s.qwb")),
    SAVE_SESSION.request(SESSION, SaveSessionOptions(path="s.qwb")),
    KEEP_RECOVERY.request(SESSION, KeepRecoveryOptions(folder="f")),
    CALIBRATE.request(SESSION, CalibrateOptions(data="text.txt", samples=3)),
    SCORE.request(SESSION, ScoreOptions(metric="weight_error", schemes=("int8-channel",))),
    SCORE.request(SESSION, ScoreOptions(metric="predicted_kl_inputs", samples=5)),
    SEARCH.request(SESSION, SearchOptions(size=123456)),
    SEARCH.request(SESSION, SearchOptions(bits_per_weight=4.0, target="vllm", allow=(("*.mlp.*", ("int8-channel",)),))),
    EXPLAIN.request(SESSION, ExplainOptions(layer="*.mlp.*")), FRONT.request(SESSION, FrontOptions(target="vllm")),
    EVALUATE.request(SESSION, EvaluateOptions(seed=4, metric="own.py:mine")),
    EXPORT.request(SESSION, ExportOptions(kind="plan-json", out="p.json")),
    TIME_KERNELS.request(SESSION, TimeKernelsOptions(batch=8)),
    TIME_CANDIDATES.request(SESSION, TimeCandidatesOptions(schemes=("int8-channel",), batch=2)),
    SWEEP_BATCHES.request(SESSION, SweepBatchesOptions(batches=(1, 7), repeats=3)),
    TRAIN.request(SESSION, TrainOptions(kind="safetensors", out="o", data="d.txt", steps=5, learning_rate=0.5)),
    AUDIT.request(SESSION, AuditOptions(data="d.txt", samples=9)),
    REFINE.request(SESSION, RefineOptions(bits_per_weight=3.5, tolerance=0.1)),
    QUALITY.request(SESSION, QualityOptions(samples=6)), RECONSTRUCTION.request(SESSION, ReconstructionOptions()),
    TARGETS.request(SESSION, TargetsOptions(bits_per_weight=4.5, targets=("gguf", "vllm"))),
    ERROR_BUDGET.request(SESSION, ErrorBudgetOptions(samples=3)), RUNTIME.request(SESSION, RuntimeOptions(samples=3)),
    BEFORE_AFTER.request(SESSION, BeforeAfterOptions(layer=LAYER)),
    CHANNEL_ERRORS.request(SESSION, ChannelErrorsOptions(layer=LAYER)),
    BROWSE_SAMPLES.request(SESSION, BrowseSamplesOptions(split="evaluation", start=20)),
    COMPARE_PLANS.request(SESSION, ComparePlansOptions(first=FIRST, second=SECOND)),
    COMPARE.request(SESSION, CompareOptions(other="b.qwb")), DEVICES.request(None, DevicesOptions()),
    PLACES.request(None, PlacesOptions()),
)  # fmt: skip


def test_one_thread_is_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.get_num_threads", lambda: 1)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    lines = DEVICES.run(Context(), DevicesOptions())
    assert lines[0].endswith(", 1 compute thread") and lines[1].endswith(", 1 core")


def test_there_is_an_example_of_every_step() -> None:
    assert {request.step.name for request in REQUESTS} == {step.name for step in STEPS}
    assert len({step.name for step in STEPS}) == len({step.title for step in STEPS}) == len(STEPS)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_every_step_says_what_it_does_and_what_its_options_mean(step: Step[Any, Any]) -> None:
    assert step.title[:1].isupper() and step.summary.endswith(".") and len(step.summary) > 20
    for item in option_fields(step.options):
        assert item.info.label and len(item.info.help) > 5, (step.name, item.name)
        if item.optional or (item.default in ("", ()) and item.info.path):
            assert item.info.empty or item.info.command is False or item.required, f"what no {item.name} means"
        if item.info.choices is not None and item.default and not item.several and not item.info.suggested:
            assert item.default in [choice.value for choice in item.info.choices()], (step.name, item.name)
        if not item.required and item.default is not None:
            assert item.fault(item.default) is None, f"the default of {item.name} is out of its limits"


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.step.name)
def test_every_request_has_a_heading_and_crosses_a_pipe_whole_or_reduced(request_: Any) -> None:
    assert request_.title and "/" not in request_.title
    for request in (request_, request_.reduced()):
        back = pickle.loads(pickle.dumps(request))
        assert (back.step, back.options, back.title) == (request.step, request.options, request_.title)
    with pytest.raises(FrozenInstanceError):
        request_.trust = True


def called(tree: ast.Module) -> list[tuple[Any, ast.Call]]:
    """Return every call of something that the script imports, with what is called."""
    there: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            module = importlib.import_module(node.module)
            there.update({alias.name: getattr(module, alias.name) for alias in node.names})
        elif isinstance(node, ast.Import):
            there["wb"] = importlib.import_module(node.names[0].name)
    calls = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            path, where = [], node.func
            while isinstance(where, ast.Attribute):
                path, where = [where.attr, *path], where.value
            if isinstance(where, ast.Name) and where.id in there:
                function = there[where.id]
                for part in path:
                    function = getattr(function, part)
                calls.append((function, node))
    return calls


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.step.name)
def test_the_script_calls_what_there_is(request_: Any) -> None:
    text = request_.python()
    compile(text, "script", "exec")
    calls = called(ast.parse(text))
    assert calls, text
    for function, call in calls:
        keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        signature(function).bind(*call.args, **keywords)


def test_what_was_asked_for_stands_in_the_script() -> None:
    texts = [request.python() for request in REQUESTS]
    for words in (
        "size=123456", "samples=3", "target='vllm'", "steps=5", "metric='own.py:mine'", "tolerance=0.1",
        "metric='predicted_kl_inputs', samples=5", "split='evaluation', start=20", repr(LAYER),
        "batches=(1, 7), repeats=3",
    ):  # fmt: skip
        assert any(words in text for text in texts), words
    evaluation = next(request for request in REQUESTS if request.step.name == "evaluate")
    assert 'wb.Session.load("session.qwb")' in evaluation.python()
    assert "wb.Session.load('/my/it.qwb')" in evaluation.python(PurePosixPath("/my/it.qwb"))
    bare = CALIBRATE.request(SESSION, CalibrateOptions(data="text.txt"))
    assert bare.python().endswith("wb.calibrate(model, data='text.txt')\n")


@pytest.mark.parametrize("name", ["calibrate", "score", "search", "evaluate", "export", "train", "time_kernels"])
def test_a_public_function_takes_the_options_of_its_step_with_the_same_defaults(name: str) -> None:
    options = {
        "calibrate": CalibrateOptions, "score": ScoreOptions, "search": SearchOptions, "evaluate": EvaluateOptions,
        "export": ExportOptions, "train": TrainOptions, "time_kernels": TimeKernelsOptions,
    }[name]  # fmt: skip
    taken = signature(getattr(wb, name)).parameters
    for item in fields(options):
        if name == "train" and item.name in ("kind", "out"):
            continue  # what is written is the step's, not the function's
        default = taken[item.name].default
        expected = inspect.Parameter.empty if item.default is MISSING else item.default
        assert default == expected or (not default and not expected), (name, item.name)


def test_reasons_of_greyed_actions_are_the_errors_of_the_same_steps() -> None:
    bare = replace(SESSION, calibration=None)
    weights = replace(SESSION, model=replace(SESSION.model, cannot_run="it has weights only"))
    empty = replace(SESSION, plan=wb.Plan(name="empty"))
    for step, session, error in (
        (QUALITY, bare, MissingResultError), (EVALUATE, weights, CannotRunError), (AUDIT, empty, PlanError),
        (REFINE, replace(SESSION, sensitivities={}), MissingResultError),
        (SEARCH, replace(SESSION, sensitivities={}), MissingResultError),
    ):  # fmt: skip
        reason = step.why_not(session)
        assert reason is not None and step.why_not(SESSION) is None, step.name
        with pytest.raises(error) as caught:
            step(session, step.options())
        assert str(caught.value) == reason
    assert "open a model" in (EVALUATE.why_not(None) or "") and OPEN.why_not(None) is None


def test_a_request_that_waited_sees_new_results_and_keeps_its_own_edits() -> None:
    request = EVALUATE.request(SESSION, EvaluateOptions())
    own = Range(low=-1.0, high=1.0, method="manual", clipped=0.0)
    edited = replace(
        SESSION, plan=SESSION.plan.assign([LAYER], weights="int8-channel"), evaluations=(),
        active_ranges={**SESSION.active_ranges, (LAYER, "input"): own},
    )  # fmt: skip
    updated = request.about(edited).session
    assert updated is not None and updated.plan is SESSION.plan and updated.evaluations == ()
    other = replace(edited, model=replace(edited.model, fingerprint="sha256:other"))
    assert request.about(other) is request and request.about(None) is request and not request.fits(other)


def test_a_plugin_publishes_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def points(group: str) -> list[EntryPoint]:
        return [EntryPoint("count", f"{__name__}:COUNT", group)]

    monkeypatch.setattr(registry, "entry_points", points)
    steps: Registry[Step[Any, Any]] = Registry(
        STEPS, "workbench.steps", kind="step", error=WorkbenchError, member_type=Step
    )
    assert len(steps) == len(STEPS) + 1
    request = steps.get("count").request(SESSION, CountOptions(of="n"))
    assert request.title == "Count n" and "CountOptions(of='n')" in request.python()
    notes: list[str] = []
    assert steps.get("count")(SESSION, CountOptions(), notes=notes) == len(SESSION.model.layers) and notes == ["layers"]


def test_no_signature_says_any() -> None:
    root = Path(wb.__file__).parent
    for file in (*(root / "steps").rglob("*.py"), *(root / "engine").glob("jobs.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                rest = filter(None, (node.args.vararg, node.args.kwarg))
                arguments = (*node.args.args, *node.args.kwonlyargs, *rest)
                hints = [node.returns, *(argument.annotation for argument in arguments)]
                names = {name.id for hint in hints if hint for name in ast.walk(hint) if isinstance(name, ast.Name)}
                assert "Any" not in names, f"{file.name}:{node.lineno} {node.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountOptions:
    """What is counted."""

    of: str = "layers"


def _count(context: Context, options: CountOptions) -> int:
    context.notes.append(options.of)
    return len(context.session.model.layers)


def _heading(options: CountOptions, session: wb.Session | None) -> str:
    return f"Count {options.of}"


COUNT = Step(
    name="count", title="Count", summary="Counts the layers.", options=CountOptions, run=_count, heading=_heading
)

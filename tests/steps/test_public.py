"""The whole job on a tiny Llama: every step's result, its defaults, and what it says when something is missing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import workbench as wb
from tests.numerics.statistics.same import same
from workbench.deployment.exporters import EXPORTERS
from workbench.errors import (
    BudgetError,
    CancelledError,
    CannotRunError,
    DataError,
    ExportError,
    FingerprintMismatchError,
    MissingResultError,
    PlanError,
    SchemeError,
    UnmatchedRuleError,
)
from workbench.models.model import Model
from workbench.models.sources import reopen
from workbench.models.summary import quantizable
from workbench.numerics.formats import parse_scheme
from workbench.numerics.ranges import REGISTRY, Range, range_method
from workbench.planning.plan import KEEP, Plan
from workbench.planning.totals import plan_totals
from workbench.session.calibrated_ranges import REFERENCE_SCHEME
from workbench.session.session import TAPS, Session
from workbench.steps.score import complete_table
from workbench.steps.timing.kernels import time_kernels, time_shapes

SCHEMES = ("int3-g32-asym", "int8-channel")
Q = "model.layers.0.self_attn.q_proj"


@pytest.fixture(scope="module")
def model(llama: Path) -> Model:
    return wb.open(llama)


@pytest.fixture(scope="module")
def calibrated(model: Model, tokens: Path) -> Session:
    return wb.calibrate(model, tokens, batch_size=4)


@pytest.fixture(scope="module")
def scored(model: Model, calibrated: Session) -> Session:
    return wb.score(calibrated, model=model, schemes=SCHEMES)


class Recorder:
    """A progress that remembers, and cancels at a given report."""

    def __init__(self, cancel_at: int | None = None) -> None:
        self.fractions: list[float] = []
        self.partials: list[Any] = []
        self._cancel_at = cancel_at

    def __call__(self, fraction: float, text: str, partial: Any = None) -> None:
        assert text
        self.fractions.append(fraction)
        if partial is not None:
            self.partials.append(partial)
        if len(self.fractions) == self._cancel_at:
            raise CancelledError("stop")


def test_start_has_facts_weights_and_an_empty_plan(model: Model) -> None:
    session = wb.start(model)
    assert session.model.fingerprint == model.summary.fingerprint == session.plan.fingerprint
    assert {key[1] for key in session.statistics} == {"weight"}
    assert session.plan.rules == ()
    weight = model.weight(Q).numpy()
    result = session.statistics[Q, "weight"]
    assert result.count == weight.size
    assert result.minimum == pytest.approx(weight.min()) and result.maximum == pytest.approx(weight.max())
    assert session.environment.torch == torch.__version__
    assert "/" not in repr(session.environment)


def test_calibration_covers_every_layer_tap_and_method(model: Model, calibrated: Session, tokens: Path) -> None:
    linear = [layer.name for layer in quantizable(model.summary.layers)]
    for name in linear:
        for tap in TAPS:
            assert (name, tap) in calibrated.statistics
            assert ((name, tap, "loss") in calibrated.ranges) == (tap == "input")  # it takes gradients at inputs
            for method in (each for each in REGISTRY.names() if each != "loss" or tap == "input"):
                result = calibrated.ranges[name, tap, method]
                assert result == range_method(method).range(
                    calibrated.statistics[name, tap], parse_scheme(REFERENCE_SCHEME)
                )
        assert calibrated.active_ranges[name, "input"] == calibrated.ranges[name, "input", "loss"]
        assert name in calibrated.curvature
    record = calibrated.calibration
    assert record is not None and record.path == str(tokens) and record.split == "calibration"
    assert calibrated.evaluation is not None and calibrated.evaluation.split == "evaluation"
    assert record.samples + calibrated.evaluation.samples == 24
    assert record.content_hash != calibrated.evaluation.content_hash


def test_calibration_is_the_same_twice_and_independent_of_the_session_given(model: Model, tokens: Path) -> None:
    first = wb.calibrate(model, tokens, batch_size=4, samples=4)
    second = wb.calibrate(model, tokens, batch_size=4, samples=4, session=first)
    assert first.calibration == second.calibration and first.ranges == second.ranges
    for key, result in first.statistics.items():
        assert same(result, second.statistics[key])


def test_a_range_set_by_hand_and_the_plans_method_stay_in_force(
    model: Model, calibrated: Session, tokens: Path
) -> None:
    own = Range(low=-1.0, high=1.0, method="manual", clipped=0.1)
    other = "model.layers.1.mlp.up_proj"
    session = replace(
        calibrated,
        active_ranges={**calibrated.active_ranges, (Q, "input"): own},
        plan=calibrated.plan.assign([other], range_method="mse"),
    )
    again = wb.calibrate(model, tokens, batch_size=4, session=session)
    assert again.active_ranges[Q, "input"] == own
    assert again.active_ranges[other, "input"].method == "mse"
    assert again.plan == session.plan


def test_calibration_says_what_is_missing(model: Model, tmp_path: Path, bare: Path) -> None:
    with pytest.raises(MissingResultError, match="needs data"):
        wb.calibrate(model)
    with pytest.raises(DataError, match="does not exist"):
        wb.calibrate(model, tmp_path / "nothing.txt")
    weights_only = wb.open(bare)
    with pytest.raises(CannotRunError):
        wb.calibrate(weights_only, tmp_path / "nothing.txt")
    session = wb.calibrate(weights_only)
    assert {key[1] for key in session.statistics} == {"weight"}
    assert {key[1] for key in session.ranges} == {"weight"}
    assert session.calibration is None


def test_calibrating_a_session_of_another_model_is_refused(model: Model, calibrated: Session, tokens: Path) -> None:
    other = replace(calibrated, model=replace(calibrated.model, fingerprint="sha256:other"))
    with pytest.raises(FingerprintMismatchError, match="sha256:other"):
        wb.calibrate(model, tokens, session=other)


@pytest.mark.parametrize("metric", ["predicted_kl", "measured_kl", "output_error", "weight_error"])
def test_every_metric_scores_every_cell(model: Model, calibrated: Session, metric: str) -> None:
    progress = Recorder()
    session = wb.score(calibrated, metric, model=model, schemes=SCHEMES, batch_size=4, progress=progress)
    table = session.sensitivities[metric]
    assert table.metric == metric and table.schemes == SCHEMES
    assert np.isfinite(table.score).all() and (table.score >= 0).all()
    names = [layer.name for layer in quantizable(model.summary.layers)]
    assert set(names) <= set(table.layers)
    coarse, fine = table.column["int3-g32-asym"], table.column["int8-channel"]
    assert all(table.score[table.row[name], coarse] > table.score[table.row[name], fine] for name in names)
    assert progress.fractions == sorted(progress.fractions) and progress.fractions[-1] == 1.0
    assert all(type(partial) is type(table) for partial in progress.partials) and progress.partials


def test_a_table_is_extended_and_not_computed_again(model: Model, scored: Session) -> None:
    before = scored.sensitivities["predicted_kl"]
    after = wb.score(scored, model=model, schemes=["int5-g32-asym"]).sensitivities["predicted_kl"]
    assert after.schemes == (*SCHEMES, "int5-g32-asym")
    np.testing.assert_array_equal(after.score[:, :2], before.score)
    rescored = wb.score(scored, model=model, schemes=["int5-g32-asym"], seed=1).sensitivities["predicted_kl"]
    assert rescored.schemes == ("int5-g32-asym",)


def test_scoring_with_the_default_schemes_without_data_on_weights_only(bare: Path) -> None:
    weights_only = wb.open(bare)
    session = wb.score(wb.start(weights_only), "weight_error", model=weights_only)
    assert len(session.sensitivities["weight_error"].schemes) >= 10
    for metric in ("predicted_kl", "measured_kl", "output_error"):
        with pytest.raises(CannotRunError, match="weight_error"):
            wb.score(session, metric, model=weights_only)
    with pytest.raises(CannotRunError):
        wb.evaluate(session)


def test_scoring_says_what_is_missing_or_wrong(model: Model, calibrated: Session) -> None:
    with pytest.raises(MissingResultError, match="calibrate first"):
        wb.score(wb.start(model), model=model)
    with pytest.raises(PlanError, match="predicted_kl"):
        wb.score(calibrated, "kl", model=model)
    with pytest.raises(SchemeError):
        wb.score(calibrated, model=model, schemes=["int4-gg"])


def test_changed_or_missing_data_is_noticed(model: Model, tokens: Path, tmp_path: Path) -> None:
    copy = tmp_path / "tokens.npy"
    shutil.copy(tokens, copy)
    session = wb.calibrate(model, copy, batch_size=4, samples=4)
    changed = np.load(copy)
    changed[:, 0] = (changed[:, 0] + 1) % 96
    np.save(copy, changed)
    with pytest.raises(DataError, match="has changed"):
        wb.score(session, model=model, schemes=SCHEMES)
    with pytest.raises(DataError, match="has changed"):
        wb.evaluate(session, model=model)
    copy.unlink()
    with pytest.raises(DataError, match="cannot be opened again"):
        wb.score(session, model=model, schemes=SCHEMES)


def test_search_stays_within_bits_and_bytes(scored: Session) -> None:
    plan = wb.search(scored, bits_per_weight=5.0)
    sums = plan_totals(scored.model, plan, scored.sensitivities["predicted_kl"])
    assert sums.bits_per_weight <= 5.0
    assert plan.fingerprint == scored.model.fingerprint
    size = sums.nbytes + 1000
    assert plan_totals(scored.model, wb.search(scored, size=size)).nbytes <= size
    with pytest.raises(BudgetError):
        wb.search(scored, bits_per_weight=1.0)
    with pytest.raises(MissingResultError):
        wb.search(scored, bits_per_weight=5.0, metric="measured_kl")


def test_search_respects_locks(scored: Session) -> None:
    locked = replace(scored, plan=scored.plan.assign([Q], weights=KEEP), locked=frozenset({Q}))
    assert wb.search(locked, bits_per_weight=9.0).of(Q).weights == KEEP


def test_a_uniform_plan_completes_the_table(model: Model, scored: Session) -> None:
    plan = Plan.uniform(quantizable(scored.model.layers), "int4-g32-asym")
    session = complete_table(scored, plan, model=model)
    table = session.sensitivities["predicted_kl"]
    assert "int4-g32-asym" in table.schemes
    assert plan_totals(session.model, plan, table).predicted is not None
    assert complete_table(session, plan) is session
    empty = replace(scored, sensitivities={})
    assert complete_table(empty, plan) is empty


def test_evaluation_compares_with_the_baseline(model: Model, scored: Session) -> None:
    plan = Plan.uniform(quantizable(scored.model.layers), "int3-g32-asym")
    result = wb.evaluate(scored, plan, model=model, batch_size=4)
    sums = plan_totals(scored.model, plan, scored.sensitivities["predicted_kl"])
    assert (result.nbytes, result.bits_per_weight, result.predicted_kl) == (
        sums.nbytes, sums.bits_per_weight, sums.predicted,
    )  # fmt: skip
    assert scored.evaluation is not None
    assert result.data_hash == scored.evaluation.content_hash and result.plan_hash == plan.hash
    assert result.metrics["kl"].value > 0 and result.metrics["kl"].samples == scored.evaluation.samples
    assert result.metrics["kl"].value == pytest.approx(_kl_by_hand(model, scored, plan), rel=1e-4)
    evaluated = wb.evaluate(scored, model=model, batch_size=4)
    assert evaluated.metrics["kl"].value == pytest.approx(0.0, abs=1e-9)


def _kl_by_hand(model: Model, session: Session, plan: Plan) -> float:
    """KL per token, straight from the definition, in float64."""
    from workbench.models.data.datasets import open_dataset

    assert session.evaluation is not None
    data = open_dataset(session.evaluation.path, model, split="evaluation")
    weights = {
        layer.name: parse_scheme("int3-g32-asym").quantize(model.weight(layer.name).float(), clip_search=True)
        for layer in quantizable(session.model.layers)
    }
    with torch.no_grad():
        (batch,) = data.batches(1000)
        p = torch.log_softmax(model.run(batch).double(), -1)
        q = torch.log_softmax(model.with_weights(weights).run(batch).double(), -1)
    return float((p.exp() * (p - q)).sum(-1).mean())


def test_evaluation_data_never_overlaps_calibration(
    model: Model, scored: Session, tokens: Path, tmp_path: Path
) -> None:
    same = wb.evaluate(scored, model=model, data=tokens, batch_size=4)
    assert scored.evaluation is not None and same.data_hash == scored.evaluation.content_hash
    other = tmp_path / "other.npy"
    np.save(other, np.random.default_rng(1).integers(0, 96, (6, 16)))
    assert wb.evaluate(scored, model=model, data=other).metrics["kl"].samples == 6
    assert wb.evaluate(scored, model=model, samples=3).metrics["kl"].samples == 3
    with pytest.raises(MissingResultError, match="needs data"):
        wb.evaluate(wb.start(model), model=model)


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda m, s, p: wb.quantize(m, p), FingerprintMismatchError),
        (lambda m, s, p: wb.evaluate(s, p, model=m), FingerprintMismatchError),
        (lambda m, s, p: wb.export(s, "plan", "plan.json", plan=p), FingerprintMismatchError),
    ],
)
def test_a_plan_for_another_model_is_refused(
    model: Model, scored: Session, act: Callable[..., Any], error: type[Exception]
) -> None:
    foreign = Plan(fingerprint="sha256:foreign")
    with pytest.raises(error, match=r"sha256:foreign.*sha256:"):
        act(model, scored, foreign)


def test_a_rule_that_matches_nothing_is_named(model: Model, scored: Session) -> None:
    plan = Plan().assign(["model.layers.0.self_attn.q_prj"], weights="int8-channel")
    with pytest.raises(UnmatchedRuleError, match=r"q_prj.*q_proj"):
        wb.evaluate(scored, plan, model=model)


def test_static_inputs_use_the_calibrated_ranges(model: Model, calibrated: Session) -> None:
    plan = calibrated.plan.assign([Q], inputs="int8-tensor-asym")
    assert wb.evaluate(calibrated, plan, model=model).metrics["kl"].value > 0
    with pytest.raises(MissingResultError, match="calibrate first"):
        wb.quantize(model, plan)


def test_reopening_checks_the_fingerprint(llama: Path, tokens: Path, tmp_path: Path) -> None:
    copy = tmp_path / "model"
    shutil.copytree(llama, copy)
    session = wb.start(wb.open(copy))
    assert reopen(session.model).summary.fingerprint == session.model.fingerprint
    file = copy / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(FingerprintMismatchError, match=session.model.fingerprint):
        reopen(session.model)


def test_cancelling_any_step_lets_the_cancel_pass(model: Model, calibrated: Session, tokens: Path) -> None:
    for at in (1, 3, 6):
        with pytest.raises(CancelledError):
            wb.calibrate(model, tokens, batch_size=4, progress=Recorder(at))
        with pytest.raises(CancelledError):
            wb.score(calibrated, "measured_kl", model=model, schemes=SCHEMES, progress=Recorder(at))
    plan = Plan.uniform(quantizable(calibrated.model.layers), "int8-channel")
    with pytest.raises(CancelledError):
        wb.evaluate(calibrated, plan, model=model, progress=Recorder(2))


def test_progress_rises_from_0_to_1(model: Model, calibrated: Session, tokens: Path) -> None:
    for step in (
        lambda progress: wb.calibrate(model, tokens, batch_size=4, progress=progress),
        lambda progress: wb.evaluate(calibrated, model=model, progress=progress),
    ):
        progress = Recorder()
        step(progress)
        assert progress.fractions == sorted(progress.fractions)
        assert progress.fractions[0] >= 0.0 and progress.fractions[-1] == pytest.approx(1.0)


def test_a_calibrated_session_survives_its_file(scored: Session, tmp_path: Path) -> None:
    path = tmp_path / "s.qwb"
    scored.save(path)
    back = Session.load(path)
    assert back.ranges == scored.ranges and back.active_ranges == scored.active_ranges
    assert back.calibration == scored.calibration and back.evaluation == scored.evaluation
    np.testing.assert_array_equal(back.sensitivities["predicted_kl"].score, scored.sensitivities["predicted_kl"].score)


def test_the_plan_is_exported_without_opening_the_model(scored: Session, tmp_path: Path) -> None:
    missing = replace(scored, model=replace(scored.model, source=replace(scored.model.source, path="/nowhere")))
    plan = wb.search(scored, bits_per_weight=5.0)
    (written,) = wb.export(missing, "plan", tmp_path / "plan.json", plan=plan)
    assert Plan.load(written).hash == plan.hash


def test_kernels_are_timed_for_a_plan_and_for_a_bare_shape(scored: Session) -> None:
    plan = Plan.uniform(quantizable(scored.model.layers), "int8-channel")
    timings = time_kernels(scored, plan, repeats=3)
    assert timings and {item.scheme for item in timings} == {"int8-channel"}
    assert time_kernels(scored, repeats=3) == ()
    (bare, *_) = time_shapes((64, 96), ["int8-channel"], batch=2, repeats=3)
    assert (bare.shape, bare.batch, len(bare.samples)) == ((64, 96), 2, 3)
    assert bare.median > 0 and bare.baseline_median > 0


@pytest.mark.parametrize("kind", [exporter.name for exporter in EXPORTERS])
def test_every_exporter_writes_from_a_session(model: Model, scored: Session, tmp_path: Path, kind: str) -> None:
    schemes = {"gguf": "fp16", "tensor-types": "fp16", "gptq": "int8-channel-sfp16", "mlx": "int8-g32"}
    layers = [each for each in quantizable(scored.model.layers) if kind != "mlx" or each.matrix[1] % 32 == 0]
    session = replace(scored, plan=Plan.uniform(layers, schemes.get(kind, "int8-channel")))
    out = tmp_path / "out"
    progress = Recorder()
    written = wb.export(session, kind, out, model=model, progress=progress)
    assert written and all(path.exists() for path in written)
    assert progress.fractions == sorted(progress.fractions)
    with pytest.raises(ExportError):
        wb.export(session, "nothing", out, model=model)


def test_the_bundled_classifier_brings_its_own_data() -> None:
    classifier = wb.open("demo:digits-classifier")
    session = wb.calibrate(classifier, samples=32)
    assert session.calibration is not None and session.calibration.path == "demo:digits-classifier"
    session = wb.score(session, model=classifier, schemes=("int3-g32-asym", "int8-channel"))
    plan = wb.search(session, bits_per_weight=6.0)
    result = wb.evaluate(session, plan, model=classifier, samples=64)
    assert {"kl", "accuracy", "top1_agreement"} <= set(result.metrics)
    assert result.predicted_kl is not None and result.metrics["kl"].samples == 64

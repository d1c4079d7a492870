"""What judges a plan or its data: do losses add up, are the data enough, where does noise enter, what differs."""

from __future__ import annotations

from dataclasses import asdict

from workbench.console.report import Report, Row, Table, figure, percent
from workbench.console.step_command import Outcome
from workbench.insight.compare import SessionComparison, Side
from workbench.measurement.data_quality import CalibrationQuality
from workbench.sensitivity.audit import PlanAudit
from workbench.sensitivity.error_budget import BudgetPair
from workbench.steps.checks.audit import AuditOptions
from workbench.steps.checks.error_budget import ErrorBudgetOptions
from workbench.steps.checks.quality import QualityOptions
from workbench.steps.compare import CompareOptions


def audited(outcome: Outcome[AuditOptions, PlanAudit]) -> Report:
    """Return predicted, measured one by one and measured together; the layers that interact most first.

    An audit leaves inputs, keys and values as they are, even where the plan rounds them.
    """
    audit, inputs, cached = outcome.result.audit, outcome.result.rounded_inputs, outcome.result.cached
    row = {name: index for index, name in enumerate(audit.layers)}
    layers = [
        {
            "name": name, "predicted": float(audit.predicted[row[name]]), "alone": float(audit.alone[row[name]]),
            "joined": float(audit.joined[row[name]]), "interaction": float(audit.interaction[row[name]]),
        }
        for name in audit.most_interacting(outcome.flags.most)
    ]  # fmt: skip
    sums = {
        "predicted": audit.predicted_sum, "predicted_whole": audit.predicted_whole, "alone": audit.alone_sum,
        "whole": audit.whole,
    }  # fmt: skip
    lines = _audit_lines(outcome.result)
    columns = (
        "predicted=predicted, one by one | predicted_whole=predicted, together | alone=measured, one by one | "
        "whole=measured, together"
    )
    return Report(
        facts={
            "sentence": audit.sentence(), "samples": audit.samples, **sums, "correction": audit.correction,
            "left_out": inputs, "cache_left_out": cached, "notes": audit.notes,
        },
        parts=[
            *lines,
            *(f"note: {note}" for note in audit.notes),
            Table(rows=[sums], columns=columns),
            "losses in nats, the largest interaction first",
            Table(
                key="layers", rows=layers, columns="name=layer | predicted | alone | joined=added last | interaction"
            ),
        ],
    )  # fmt: skip


def _audit_lines(checked: PlanAudit) -> list[str]:
    """Return the verdict, the correction, and what of the plan the audit leaves as it is."""
    audit, inputs, cached = checked.audit, checked.rounded_inputs, checked.cached
    lines = [audit.sentence()]
    if audit.correction == audit.correction:
        lines.append(
            f"calibrated correction: predictions near this plan times {audit.correction:.3g} (fitted to this "
            "measurement)"
        )
    if inputs:
        lines.append(f"of weights alone: the inputs of {inputs} layers, which the plan rounds, were not")
    if cached:
        lines.append(f"the key-value cache of {cached} layers, which the plan rounds, was not either")
    return lines


def judged(outcome: Outcome[QualityOptions, CalibrationQuality]) -> Report:
    """Return the verdict, the coverage, the saturation curve and the tensors that the data represent worst."""
    quality = outcome.result
    cover, saturation = quality.coverage, quality.saturation
    moved = saturation.moved.max(axis=1).tolist() if saturation.moved.size else []
    steps = [
        {"samples": count, "most_moved": share}
        for count, share in zip(saturation.samples[1:], moved, strict=True)
    ]  # fmt: skip
    distances = [
        {"layer": layer, "tap": tap, "standard_deviations": distance}
        for (layer, tap), distance in list(quality.distances.items())[: outcome.flags.most]
    ]
    enough, samples = bool(saturation.enough), (quality.calibration.samples, quality.evaluation.samples)
    return Report(
        facts={
            "sentence": quality.sentence(), "enough": enough, "samples": samples[0], "evaluation_samples": samples[1],
            "coverage": asdict(cover),
            "unsettled": [f"{layer} {tap}" for layer, tap in saturation.unsettled],
        },
        parts=[
            f"verdict: {'enough' if enough else 'not enough'}: {quality.sentence()}",
            f"calibration {samples[0]} samples, evaluation {samples[1]}",
            f"coverage of the evaluation data: tokens {percent(cover.tokens)}, lengths {percent(cover.lengths)}, "
            f"classes {percent(cover.classes)}; of the vocabulary {percent(cover.vocabulary)}",
            "",
            "how far ranges still moved",
            Table(key="saturation", rows=steps, columns="samples | most_moved=most"),
            "farthest from the evaluation data",
            Table(
                key="distances", rows=distances,
                columns="layer | tap | standard_deviations=standard deviations",
            ),
        ],
    )  # fmt: skip


def budgeted(outcome: Outcome[ErrorBudgetOptions, BudgetPair]) -> Report:
    """Return signal to noise at every block's output, and the layers that send most noise to the output."""
    pair, most = outcome.result, outcome.flags.most
    predicted = None if pair.predicted is None else pair.predicted.decibels.tolist()
    blocks = [
        {"block": block, "measured": measured, "predicted": None if predicted is None else predicted[index]}
        for index, (block, measured) in enumerate(
            zip(pair.measured.blocks, pair.measured.decibels.tolist(), strict=True)
        )
    ]
    shares = () if pair.predicted is None else pair.predicted.worst(pair.predicted.blocks[-1], most)
    worst = [{"layer": name, "share": share} for name, share in shares]
    return Report(
        facts={"plan": pair.plan_name, "samples": pair.gains.samples, "worst": worst},
        parts=[
            f"signal to noise of {pair.plan_name} in dB ({pair.gains.samples} samples; - stands for no noise or no "
            "prediction)",
            Table(key="blocks", rows=blocks, columns="block=output of | measured | predicted"),
            *(
                ("most noise at the output, as predicted",
                 Table(rows=worst, columns="layer | share"))
                if worst else ()
            ),
        ],
        notes=tuple(dict.fromkeys(outcome.notes)),
    )  # fmt: skip


def compared(outcome: Outcome[CompareOptions, SessionComparison]) -> Report:
    """Return facts, layers (those that differ, or all) and metrics of two sessions side by side."""
    comparison = outcome.result
    pairs = [pair for pair in comparison.layers if outcome.flags.all or pair.differs]
    layers = [
        {"name": pair.name, "differs": pair.differs, "first": _side(pair.first), "second": _side(pair.second)}
        for pair in pairs
    ]
    shown = [
        {
            "name": pair.name, "first": _said(pair.first), "second": _said(pair.second),
            "loss": pair.first and pair.first.loss, "other": pair.second and pair.second.loss,
        }
        for pair in pairs
    ]  # fmt: skip
    metrics = [
        {
            "metric": pair.metric, "unit": pair.unit, "data": pair.data, "differs": pair.differs,
            "first": pair.first and pair.first.value, "second": pair.second and pair.second.value,
        }
        for pair in comparison.metrics
    ]  # fmt: skip
    facts = [{**asdict(fact), "differs": fact.differs} for fact in comparison.facts]
    return Report(
        facts={
            "same_model": comparison.same_model, "layers": layers, "layers_in_all": len(comparison.layers),
            "metrics": metrics,
        },
        parts=[
            Table(key="facts", rows=facts, columns="differs= | title= | first | second"),
            f"{len(shown)} of {len(comparison.layers)} layers are shown",
            *(
                (Table(rows=shown, columns="name=layer | first | second | loss | other=loss"),)
                if shown else ()
            ),
            *(
                (Table(rows=metrics, columns="differs= | metric | unit | data | first | second"),)
                if metrics else ()
            ),
        ],
    )  # fmt: skip


def _side(side: Side | None) -> Row | None:
    if side is None:
        return None
    return {**asdict(side.assignment), "bits": side.bits, "loss": side.loss}


def _said(side: Side | None) -> str:
    if side is None:
        return "absent"
    inputs = f" inputs {side.assignment.inputs}" if side.assignment.inputs else ""
    return f"{side.assignment.weights}{inputs} {side.assignment.algorithm} {figure(side.bits)} bits"

"""What judges a plan or its data: do losses add up, are the data enough, where does noise enter, what differs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from workbench.console.command import Outcome
from workbench.console.report import Report, Row, Table, figure, percent, row
from workbench.insight.compare import SessionComparison, Side
from workbench.measurement.data_quality import CalibrationQuality
from workbench.measurement.units import loss_unit
from workbench.sensitivity.audit import Audit, PlanAudit
from workbench.sensitivity.confidence import higher_orders, interval, resolution
from workbench.sensitivity.error_budget import BudgetPair


def audited(outcome: Outcome[Any, PlanAudit]) -> Report:
    """Return predicted, measured one by one and measured together; the layers that interact most first.

    An audit leaves inputs, keys and values as they are, even where the plan rounds them.
    """
    audit, kinds = outcome.result.audit, ("predicted", "alone", "joined", "interaction")
    index, unit = {name: number for number, name in enumerate(audit.layers)}, loss_unit(outcome.session.model.output)
    layers = [
        {"name": name, **{kind: float(getattr(audit, kind)[index[name]]) for kind in kinds}}
        for name in audit.most_interacting(outcome.flags.most)
    ]
    sums = row(audit, "predicted=predicted_sum predicted_whole alone=alone_sum whole")
    columns = (
        "predicted=predicted, one by one | predicted_whole=predicted, together | alone=measured, one by one | "
        "whole=measured, together"
    )
    return Report(
        facts=row(
            audit, "samples correction notes low high", sentence=audit.sentence(unit), **sums,
            predicted_interval=interval(audit.predicted_whole, audit.predicted_error, _doubt(audit)),
            uniform=[asdict(plan) for plan in audit.uniform], against_uniform=audit.against_uniform(unit),
            left_out=outcome.result.rounded_inputs, cache_left_out=outcome.result.cached,
        ),
        parts=[
            *_audit_lines(outcome.result, unit),
            *(f"note: {note}" for note in audit.notes),
            Table(rows=[sums], columns=columns),
            Table(
                key="layers", rows=layers, above=f"losses in {unit}, the largest interaction first",
                columns="name=layer | predicted | alone | joined=added last | interaction",
            ),
        ],
    )  # fmt: skip


def _doubt(audit: Audit) -> float:
    known = audit.predicted_doubt == audit.predicted_doubt
    return audit.predicted_doubt if known else higher_orders(audit.predicted_whole)


def _audit_lines(checked: PlanAudit, unit: str) -> list[str]:
    """Return the verdict, the correction, and what of the plan the audit leaves as it is."""
    audit, inputs, cached = checked.audit, checked.rounded_inputs, checked.cached
    sure = resolution(audit.predicted_whole, audit.predicted_error, audit.predicted_samples)
    lines = [audit.sentence(unit), *filter(None, [sure and f"the prediction: {sure}", audit.against_uniform(unit)])]
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


def judged(outcome: Outcome[Any, CalibrationQuality]) -> Report:
    """Return the verdict, the coverage, the saturation curve and the tensors that the data represent worst."""
    quality = outcome.result
    cover, saturation, enough = quality.coverage, quality.saturation, bool(quality.saturation.enough)
    moved = saturation.moved.max(axis=1).tolist() if saturation.moved.size else []
    steps = [
        {"samples": count, "most_moved": share} for count, share in zip(saturation.samples[1:], moved, strict=True)
    ]
    distances = [
        {"layer": layer, "tap": tap, "standard_deviations": distance}
        for (layer, tap), distance in list(quality.distances.items())[: outcome.flags.most]
    ]
    first, second = quality.calibration.samples, quality.evaluation.samples
    return Report(
        facts={
            "sentence": quality.sentence(), "enough": enough, "samples": first, "evaluation_samples": second,
            "coverage": asdict(cover), "unsettled": [f"{layer} {tap}" for layer, tap in saturation.unsettled],
        },
        parts=[
            f"verdict: {'enough' if enough else 'not enough'}: {quality.sentence()}",
            f"calibration {first} samples, evaluation {second}",
            f"coverage of the evaluation data: tokens {percent(cover.tokens)}, lengths {percent(cover.lengths)}, "
            f"classes {percent(cover.classes)}; of the vocabulary {percent(cover.vocabulary)}",
            Table(key="saturation", rows=steps, above="how far ranges still moved",
                  columns="samples | most_moved=most"),
            Table(key="distances", rows=distances, above="farthest from the evaluation data",
                  columns="layer | tap | standard_deviations=standard deviations"),
        ],
    )  # fmt: skip


def budgeted(outcome: Outcome[Any, BudgetPair]) -> Report:
    """Return signal to noise at every block's output, and the layers that send most noise to the output."""
    pair, predicted = outcome.result, outcome.result.predicted
    measured = pair.measured.decibels.tolist()
    expected = [None] * len(measured) if predicted is None else predicted.decibels.tolist()
    blocks = [
        {"block": block, "measured": noise, "predicted": guess}
        for block, noise, guess in zip(pair.measured.blocks, measured, expected, strict=True)
    ]
    shares = () if predicted is None else predicted.worst(predicted.blocks[-1], outcome.flags.most)
    worst = [{"layer": name, "share": share} for name, share in shares]
    return Report(
        facts={"plan": pair.plan_name, "samples": pair.gains.samples, "worst": worst},
        parts=[
            f"signal to noise of {pair.plan_name} in dB ({pair.gains.samples} samples; - stands for no noise or no "
            "prediction)",
            Table(key="blocks", rows=blocks, columns="block=output of | measured | predicted"),
            Table(rows=worst, columns="layer | share", above="most noise at the output, as predicted"),
        ],
        notes=tuple(dict.fromkeys(outcome.notes)),
    )


def compared(outcome: Outcome[Any, SessionComparison]) -> Report:
    """Return facts, layers (those that differ, or all) and metrics of two sessions side by side."""
    comparison = outcome.result
    pairs = [pair for pair in comparison.layers if outcome.flags.all or pair.differs]
    layers = [row(pair, "name differs", first=_side(pair.first), second=_side(pair.second)) for pair in pairs]
    shown = [
        row(pair, "name", first=_words(pair.first), second=_words(pair.second), loss=pair.first and pair.first.loss,
            other=pair.second and pair.second.loss)
        for pair in pairs
    ]  # fmt: skip
    metrics = [
        row(pair, "metric unit data differs", first=pair.first and pair.first.value,
            second=pair.second and pair.second.value, plan=pair.plans[0], other_plan=pair.plans[1])
        for pair in comparison.metrics
    ]  # fmt: skip
    facts, count = [row(fact, "title first second differs") for fact in comparison.facts], len(comparison.layers)
    parts: list[str | Table] = [
        Table(key="facts", rows=facts, columns="differs= | title= | first | second"),
        f"{len(shown)} of {count} layers are shown",
    ]
    if shown:
        parts.append(Table(rows=shown, columns="name=layer | first | second | loss | other=loss"))
    if metrics:
        parts.append(
            Table(
                rows=metrics, columns="differs= | metric | unit | data | first | second | plan | other_plan=other plan"
            )
        )
    return Report(facts=row(comparison, "same_model", layers=layers, layers_in_all=count, metrics=metrics), parts=parts)


def _side(side: Side | None) -> Row | None:
    return None if side is None else asdict(side.assignment) | row(side, "bits loss")


def _words(side: Side | None) -> str:
    if side is None:
        return "absent"
    inputs = f" inputs {side.assignment.inputs}" if side.assignment.inputs else ""
    return f"{side.assignment.weights}{inputs} {side.assignment.algorithm} {figure(side.bits)} bits"

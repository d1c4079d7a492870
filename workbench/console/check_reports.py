"""The objects that the judging commands print with ``--json``, and the readable text of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workbench.console.reports import figure, number
from workbench.console.terminal import table

if TYPE_CHECKING:
    from workbench.insight.compare import SessionComparison, Side
    from workbench.measurement.data_quality import CalibrationQuality
    from workbench.sensitivity.audit import Audit
    from workbench.sensitivity.error_budget import BudgetPair
    from workbench.session.session import Session

Result = dict[str, Any]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def audit(found: Audit, most: int, rounded_inputs: int = 0, cached: int = 0) -> Result:
    """Return predicted, measured one by one and measured together; the ``most`` interacting layers first.

    ``rounded_inputs`` and ``cached`` are how many layers' inputs, and keys or values, the plan rounds: an audit leaves
    them as they are.
    """
    row = {name: index for index, name in enumerate(found.layers)}
    names = found.most_interacting(len(found.layers))[:most]
    return {
        "sentence": found.sentence(),
        "samples": found.samples,
        "predicted": number(found.predicted_sum),
        "predicted_whole": number(found.predicted_whole),
        "alone": number(found.alone_sum),
        "whole": number(found.whole),
        "correction": number(found.correction),
        "left_out": rounded_inputs,
        "cache_left_out": cached,
        "notes": list(found.notes),
        "layers": [
            {
                "name": name, "predicted": number(float(found.predicted[row[name]])),
                "alone": number(float(found.alone[row[name]])), "joined": number(float(found.joined[row[name]])),
                "interaction": number(float(found.interaction[row[name]])),
            }
            for name in names
        ],
    }  # fmt: skip


def audit_text(result: Result) -> str:
    """Return the finding, the correction and the layers whose interaction is largest."""
    rows = [
        (each["name"], *(figure(each[key]) for key in ("predicted", "alone", "joined", "interaction")))
        for each in result["layers"]
    ]
    lines = [result["sentence"]]
    if result["correction"] is not None:
        lines.append(
            f"calibrated correction: predictions near this plan times {result['correction']:.3g} (fitted to this "
            "measurement)"
        )
    if result["left_out"]:
        lines.append(f"of weights alone: the inputs of {result['left_out']} layers, which the plan rounds, were not")
    if result["cache_left_out"]:
        lines.append(f"the key-value cache of {result['cache_left_out']} layers, which the plan rounds, was not either")
    lines += [f"note: {note}" for note in result["notes"]]
    sums = tuple(figure(result[key]) for key in ("predicted", "predicted_whole", "alone", "whole"))
    titles = ("predicted, one by one", "predicted, together", "measured, one by one", "measured, together")
    lines += ["", table([sums], titles)]
    head = ("layer", "predicted", "alone", "added last", "interaction")
    return "\n".join(lines) + "\n\nlosses in nats, the largest interaction first\n" + table(rows, head)


def quality(found: CalibrationQuality, most: int) -> Result:
    """Return the verdict, the coverage, the saturation curve and the tensors that the data stand for least."""
    cover, saturation = found.coverage, found.saturation
    moved = saturation.moved.max(axis=1) if saturation.moved.size else []
    return {
        "sentence": found.sentence(),
        "enough": bool(saturation.enough),
        "samples": found.calibration.samples,
        "evaluation_samples": found.evaluation.samples,
        "coverage": {
            "vocabulary": number(cover.vocabulary), "tokens": number(cover.tokens),
            "classes": number(cover.classes), "lengths": number(cover.lengths),
        },
        "saturation": [
            {"samples": count, "most_moved": number(float(most_moved))}
            for count, most_moved in zip(saturation.samples[1:], moved, strict=True)
        ],
        "unsettled": [f"{layer} {tap}" for layer, tap in saturation.unsettled],
        "distances": [
            {"layer": layer, "tap": tap, "standard_deviations": number(distance)}
            for (layer, tap), distance in list(found.distances.items())[:most]
        ],
    }  # fmt: skip


def quality_text(result: Result) -> str:
    """Return the verdict in words and the figures behind it."""
    cover = result["coverage"]
    lines = [
        f"verdict: {'enough' if result['enough'] else 'not enough'}: {result['sentence']}",
        f"calibration {result['samples']} samples, evaluation {result['evaluation_samples']}",
        f"coverage of the evaluation data: tokens {_share(cover['tokens'])}, lengths {_share(cover['lengths'])}, "
        f"classes {_share(cover['classes'])}; of the vocabulary {_share(cover['vocabulary'])}",
        "",
        "how far ranges still moved",
        table([(str(x["samples"]), _share(x["most_moved"])) for x in result["saturation"]], ("samples", "most")),
        "",
        "farthest from the evaluation data",
        table(
            [(x["layer"], x["tap"], figure(x["standard_deviations"])) for x in result["distances"]],
            ("layer", "tap", "standard deviations"),
        ),
    ]
    return "\n".join(lines)


def refine(session: Session, cells: list[tuple[str, str]], bits: float) -> Result:
    """Return the measured cells beside what was predicted for them, in the order in which they were measured."""
    predicted, measured = session.sensitivities["predicted_kl"], session.sensitivities["measured_kl"]
    return {
        "bits_per_weight": bits,
        "measured": sum(not math.isnan(measured.of(*cell)) for cell in cells),
        "cells": [
            {
                "layer": layer, "scheme": scheme, "predicted": number(predicted.of(layer, scheme)),
                "measured": number(measured.of(layer, scheme)),
            }
            for layer, scheme in cells
        ],
    }  # fmt: skip


def refine_text(result: Result) -> str:
    """Return the cells as a table."""
    rows = [(x["layer"], x["scheme"], figure(x["predicted"]), figure(x["measured"])) for x in result["cells"]]
    head = f"{result['measured']} cells decide closely at {result['bits_per_weight']:g} bits per weight; in nats"
    return f"{head}\n\n" + table(rows, ("layer", "scheme", "predicted", "measured"))


def error_budget(pair: BudgetPair, most: int, notes: Sequence[str] = ()) -> Result:
    """Return signal to noise at every block's output, the layers that send most noise to the output, and ``notes``."""
    predicted = None if pair.predicted is None else pair.predicted.decibels
    worst = () if pair.predicted is None else pair.predicted.worst(pair.predicted.blocks[-1], most)
    return {
        "plan": pair.plan_name,
        "samples": pair.gains.samples,
        "blocks": [
            {
                "block": block, "measured": number(float(pair.measured.decibels[index])),
                "predicted": None if predicted is None else number(float(predicted[index])),
            }
            for index, block in enumerate(pair.measured.blocks)
        ],
        "worst": [{"layer": name, "share": share} for name, share in worst],
        "notes": list(dict.fromkeys(notes)),
    }  # fmt: skip


def error_budget_text(result: Result) -> str:
    """Return the budget along the depth, in decibels."""
    rows = [(x["block"], figure(x["measured"]), figure(x["predicted"])) for x in result["blocks"]]
    text = f"signal to noise of {result['plan']} in dB ({result['samples']} samples; - stands for no noise or no "
    text += "prediction)\n\n" + table(rows, ("output of", "measured", "predicted"))
    parts = [text]
    if result["worst"]:
        worst = [(x["layer"], _share(x["share"])) for x in result["worst"]]
        parts.append("most noise at the output, as predicted\n" + table(worst, ("layer", "share")))
    if result["notes"]:
        parts.append("\n".join(f"note: {note}" for note in result["notes"]))
    return "\n\n".join(parts)


def compare(found: SessionComparison, *, everything: bool) -> Result:
    """Return facts, layers (those that differ, or all) and metrics of two sessions side by side."""
    return {
        "same_model": found.same_model,
        "facts": [
            {"title": x.title, "first": x.first, "second": x.second, "differs": x.differs} for x in found.facts
        ],
        "layers": [
            {"name": x.name, "differs": x.differs, "first": _side(x.first), "second": _side(x.second)}
            for x in found.layers
            if everything or x.differs
        ],
        "layers_in_all": len(found.layers),
        "metrics": [
            {
                "metric": x.metric, "unit": x.unit, "data": x.data, "differs": x.differs,
                "first": None if x.first is None else number(x.first.value),
                "second": None if x.second is None else number(x.second.value),
            }
            for x in found.metrics
        ],
    }  # fmt: skip


def _side(side: Side | None) -> Result | None:
    if side is None:
        return None
    given = side.assignment
    return {
        "weights": given.weights, "inputs": given.inputs, "cache": given.cache, "algorithm": given.algorithm,
        "bits": side.bits,
        "loss": number(side.loss),
    }  # fmt: skip


def compare_text(result: Result) -> str:
    """Return what differs, side by side; ``*`` marks facts and metrics that differ."""
    sides = ("first", "second")
    facts = [("*" if x["differs"] else "", x["title"], x["first"], x["second"]) for x in result["facts"]]
    parts = [table(facts, ("", "", "first", "second"))]
    shown = [
        (x["name"], *(_said(x[key]) for key in sides), *(figure(x[key] and x[key]["loss"]) for key in sides))
        for x in result["layers"]
    ]
    parts.append(f"{len(shown)} of {result['layers_in_all']} layers are shown")
    if shown:
        parts.append(table(shown, ("layer", "first", "second", "loss", "loss")))
    metrics = [
        ("*" if x["differs"] else "", x["metric"], x["unit"], x["data"], figure(x["first"]), figure(x["second"]))
        for x in result["metrics"]
    ]
    if metrics:
        parts.append(table(metrics, ("", "metric", "unit", "data", "first", "second")))
    return "\n\n".join(parts)


def _said(side: Result | None) -> str:
    if side is None:
        return "absent"
    inputs = f" inputs {side['inputs']}" if side["inputs"] else ""
    return f"{side['weights']}{inputs} {side['algorithm']} {side['bits']:.3g} bits"

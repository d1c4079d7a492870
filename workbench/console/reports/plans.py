"""A plan's totals and what its predicted loss counts, why layers have their schemes, every efficient plan."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.console.command import Outcome
from workbench.console.report import Report, Table, figure, row
from workbench.memory import size_text
from workbench.models.summary import ModelSummary
from workbench.planning.plan import KEEP, Assignment, Plan, resolve
from workbench.planning.search.search import Front
from workbench.planning.totals import Totals, cache_bits, cached_layers, quantized_inputs, totals
from workbench.sensitivity.confidence import interval, resolution
from workbench.sensitivity.metrics import TABLE_METRICS
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session
from workbench.steps.explain import Explained
from workbench.steps.search_rules import correction_of
from workbench.steps.session_data import totals_of
from workbench.steps.targets import TargetPlan

Assignments = Mapping[str, Assignment]


def planned(
    session: Session, plan: Plan, metric: str | None = None, *, corrected: bool = False, remarks: Sequence[str] = ()
) -> Report:  # fmt: skip
    """Return a plan's totals and every layer's scheme; the loss ``corrected`` by the session's audit if asked for.

    ``remarks`` are sentences on how the plan was found and what it takes elsewhere.
    """
    layers, assignments = session.model.layers, resolve(plan, session.model.layers)
    scores = session.require_table(metric) if session.sensitivities.keys() & set(TABLE_METRICS) else None
    sums = totals_of(session, plan, scores.metric if scores else "")
    counts = _transformed(plan) or _counted(session, assignments, scores)
    correction = _corrected(session, assignments, scores, sums) if corrected else None
    activations = {
        "inputs": {name: chosen.inputs for name, chosen in assignments.items() if chosen.inputs is not None},
        "cache": cached_layers(layers, assignments),
    }
    token, plain = (bits / 8 for bits in cache_bits(layers, assignments))
    bounds = interval(sums.predicted, sums.error, sums.doubt)
    lines = [
        f"{sums.bits_per_weight:.3f} bits per weight, {size_text(sums.nbytes)}, "
        + ("no prediction" if sums.predicted is None else f"predicted {sums.predicted:.4g}")
        + ("" if bounds is None else f" ({bounds[0]:.3g} to {bounds[1]:.3g})")
    ]
    of_loss = scores.remark(sums.second_order) if scores else ""
    lines += filter(None, [resolution(sums.predicted, sums.error, sums.samples), of_loss, *remarks])
    if counts not in (None, "weights"):
        lines.append(f"the prediction counts {counts}")
    if correction:
        lines.append(
            f"corrected {correction['loss']:.4g}: the weights' prediction times {correction['factor']:.3g}, fitted to "
            f"the audit of “{correction['audit_of']}”"
        )
    if activations["cache"]:
        lines.append(f"key-value cache: {token:,.0f} bytes a token, as computed {plain:,.0f}")
    return Report(
        facts=row(
            sums, "bits_per_weight bytes=nbytes predicted", predicted_interval=bounds, second_order=sums.second_order,
            predicted_counts=counts,
            corrected=correction,
            schemes={name: chosen.weights for name, chosen in assignments.items()}, **activations,
            cache_bytes_per_token={"plan": token, "as computed": plain},
        ),
        parts=[*lines, _layers(assignments, activations)],
    )  # fmt: skip


def _layers(assignments: Assignments, activations: Mapping[str, Mapping[str, str]]) -> Table:
    """Return each layer's schemes: of its weight, and of inputs and cache where any layer has one."""
    rows = [
        {"layer": name, "scheme": chosen.weights, **{what: known.get(name) for what, known in activations.items()}}
        for name, chosen in assignments.items()
    ]
    columns = ["layer", "scheme", *(what for what, known in activations.items() if known)]
    return Table(rows=rows, columns=" | ".join(columns))


def _transformed(plan: Plan) -> str:
    names = ", ".join(plan.transforms)
    return f"nothing: losses are those of the model as it is, and the plan changes it first ({names})" if names else ""


def _corrected(
    session: Session, assignments: Assignments, scores: Sensitivity | None, sums: Totals
) -> dict[str, Any] | None:
    """Return the predicted loss with that of the weights multiplied by the audit's correction, and where it is from."""
    factor = correction_of(session, scores.metric if scores else "no table")
    weights = totals(session.model, assignments, scores).predicted
    if sums.predicted is None or weights is None or session.audit is None:
        return None
    loss = sums.predicted + (factor - 1) * weights
    return {"loss": loss, "factor": factor, "audit_of": session.audit.plan_name}


def _counted(session: Session, assignments: Assignments, scores: Sensitivity | None) -> str | None:
    """Return what the predicted loss counts, None where there is none."""
    if scores is None:
        return None
    model = session.model
    for name, chosen in assignments.items():
        unscored = chosen.weights != KEEP and math.isnan(scores.of(name, chosen.weights))
        if unscored and model.by_name[name].tied_to is None:
            return (
                f"nothing: {name} in {chosen.weights} has no score; score that scheme first (sensitivity --metric "
                f"{scores.metric} --schemes {chosen.weights}), or keep the layer if no data reach it"
            )
    counted, without = ["weights"], []
    inputs, cache = session.inputs_table(scores.metric), session.cache_table(scores.metric)
    for what, cost, where, losses, places in (
        ("inputs", "rounded inputs cost", "at the input", inputs, quantized_inputs(model, assignments)),
        ("cache", "rounded key-value cache costs", "in the cache", cache, cached_layers(model.layers, assignments)),
    ):
        command = f"sensitivity --metric predicted_kl_{what}"
        if places and losses is None:
            without.append(f"what the {cost} was not scored ({command})")
            continue
        for name, scheme in places.items():
            if losses is not None and math.isnan(losses.of(name, scheme)):
                return f"nothing: {scheme} {where} of {name} was not scored ({command} --schemes {scheme})"
        counted += [what] if places else []
    parts = " and ".join(counted)
    return f"{parts} only: {'; '.join(without)}" if without else parts


def left_to_the_runtime(model: ModelSummary, plan: Plan) -> tuple[str, ...]:
    """Return what of a plan no exported weight can hold: the runtime has to round the model's keys and values."""
    cached = cached_layers(model.layers, resolve(plan, model.layers))
    if not cached:
        return ()
    schemes = ", ".join(dict.fromkeys(cached.values()))
    return (
        f"the key-value cache of {len(cached)} layers in {schemes} is written as a part of the plan only: the runtime "
        "has to store its cache in that format",
    )


def explained(outcome: Outcome[Any, Explained]) -> Report:
    """Return a plan's figures, what the next bytes buy, and a sentence for each layer."""
    answer = outcome.result
    sums, unit, purchase = answer.totals, answer.unit, answer.purchase
    heading = (
        f"“{answer.plan.name}”: {sums.bits_per_weight:.3f} bits per weight, {size_text(sums.nbytes)}, predicted "
        f"loss {figure(sums.predicted)} {unit}"
    )
    price = "no larger scheme avoids any loss"
    if purchase is not None:
        which = purchase.layers[0] if len(purchase.layers) == 1 else f"{len(purchase.layers)} layers"
        price = (
            f"at this size a byte avoids {figure(answer.price)} {unit}; the next {purchase.nbytes:,.0f} bytes would "
            f"take {which} from {purchase.before} to {purchase.after} and avoid {figure(purchase.loss)}"
        )
    bought = purchase and row(purchase, "layers before after bytes=nbytes loss")
    layers = [
        row(layer, "layer scheme bytes_saved=saved loss_added=added fixed sentence",
            shared_with=[name for name in layer.layers if name != layer.layer])
        for layer in answer.layers
    ]  # fmt: skip
    return Report(
        facts=row(
            sums, "bytes=nbytes bits_per_weight predicted", plan=answer.plan.name, unit=unit, price=answer.price,
            next=bought, layers=layers,
        ),
        parts=[heading, price, "", *(f"{layer.layer}: {layer.sentence}" for layer in answer.layers)],
    )  # fmt: skip


def listed(outcome: Outcome[Any, Front]) -> Report:
    """Return plans evenly along the front."""
    front, points = outcome.result, outcome.flags.points
    table = outcome.session.require_table(outcome.options.metric)
    places = np.unique(np.linspace(0, len(front) - 1, min(points, len(front))).round().astype(int))
    rows = [
        {
            "bits_per_weight": float(front.bits_per_weight[index]), "bytes": int(front.nbytes[index]),
            "loss": float(front.loss[index]), "price": front.price(int(front.nbytes[index])),
        }
        for index in places.tolist()
    ]  # fmt: skip
    columns = f"bits_per_weight=bits per weight | bytes | loss=loss, {table.unit} | price=loss the next byte avoids"
    return Report(
        facts={"metric": table.metric, "unit": table.unit, "plans_in_all": len(front)},
        parts=[
            f"{len(rows)} of {len(front)} plans on the convex front of {table.metric}, smallest first",
            Table(key="plans", rows=rows, columns=columns),
        ],
    )


def side_by_side(outcome: Outcome[Any, tuple[TargetPlan, ...]]) -> Report:
    """Return the best plan of every target, and why some have none."""
    table = outcome.session.require_table(outcome.options.metric)
    found = [each for each in outcome.result if each.plan is not None]
    best = "no target has a plan within the budget"
    if found:
        size = size_text(found[0].nbytes)
        best = f"best: {found[0].title}, predicted {found[0].loss:.4g} {table.unit or 'of the loss'} in {size}"
    columns = f"target | bits_per_weight=bits per weight | bytes | loss=loss, {table.unit}"
    remarks = {each.target: each.reason or each.remark for each in outcome.result}
    rows = [row(each, "target bits_per_weight bytes=nbytes loss") for each in found]
    return Report(
        facts={"metric": table.metric, "unit": table.unit, "best": found[0].target if found else None},
        parts=[best, Table(key="targets", rows=rows, columns=columns)],
        notes=[f"{name}: {remark}" for name, remark in remarks.items() if remark], exit_code=int(not found),
    )  # fmt: skip

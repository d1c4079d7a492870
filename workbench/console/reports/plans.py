"""A plan's totals and what its predicted loss counts, why layers have their schemes, every efficient plan."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from workbench.console.report import Report, Row, Table, figure, readable_bytes
from workbench.console.step_command import Outcome
from workbench.models.summary import ModelSummary
from workbench.planning.explain import Explanation, Purchase
from workbench.planning.plan import KEEP, Assignment, Plan, resolve
from workbench.planning.search.search import Front
from workbench.planning.totals import Totals, cache_bits, cached_layers, plan_totals, quantized_inputs, totals
from workbench.sensitivity.metrics import TABLE_METRICS
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session
from workbench.steps.explain import Explained, ExplainOptions
from workbench.steps.front import FrontOptions
from workbench.steps.search_rules import correction_of


def planned(session: Session, plan: Plan, metric: str | None = None, *, corrected: bool = False) -> Report:
    """Return a plan's totals and every layer's scheme; the loss ``corrected`` by the session's audit if asked for."""
    assignments = resolve(plan, session.model.layers)
    scores = session.require_table(metric) if session.sensitivities.keys() & set(TABLE_METRICS) else None
    inputs = session.inputs_table(scores.metric) if scores else None
    cache = session.cache_table(scores.metric) if scores else None
    sums = plan_totals(session.model, plan, scores, inputs, cache)
    counts = _transformed(plan) or _counted(session.model, assignments, scores, inputs, cache)
    correction = _corrected(session, assignments, scores, sums) if corrected else None
    schemes = {name: chosen.weights for name, chosen in assignments.items()}
    columns = {
        "inputs": {name: chosen.inputs for name, chosen in assignments.items() if chosen.inputs is not None},
        "cache": cached_layers(session.model.layers, assignments),
    }
    token, plain = (bits / 8 for bits in cache_bits(session.model.layers, assignments))
    lines = [
        f"{sums.bits_per_weight:.3f} bits per weight, {readable_bytes(sums.nbytes)}, "
        + ("no prediction" if sums.predicted is None else f"predicted {sums.predicted:.4g}")
    ]
    if counts not in (None, "weights"):
        lines.append(f"the prediction counts {counts}")
    if correction:
        lines.append(
            f"corrected {correction['loss']:.4g}: the weights' prediction times {correction['factor']:.3g}, fitted to "
            f"the audit of “{correction['audit_of']}”"
        )
    if columns["cache"]:
        lines.append(f"key-value cache: {token:,.0f} bytes a token, as computed {plain:,.0f}")
    rows = [
        {"layer": name, "scheme": scheme, **{key: known.get(name) for key, known in columns.items()}}
        for name, scheme in schemes.items()
    ]
    shown = " | ".join(["layer", "scheme", *(key for key, known in columns.items() if known)])
    return Report(
        facts={
            "bits_per_weight": sums.bits_per_weight, "bytes": sums.nbytes, "predicted": sums.predicted,
            "predicted_counts": counts, "corrected": correction,
            "schemes": schemes, **columns, "cache_bytes_per_token": {"plan": token, "as computed": plain},
        },
        parts=[*lines, Table(rows=rows, columns=shown)],
    )  # fmt: skip


def _transformed(plan: Plan) -> str:
    names = ", ".join(plan.transforms)
    return f"nothing: losses are those of the model as it is, and the plan changes it first ({names})" if names else ""


def _corrected(
    session: Session, assignments: Mapping[str, Assignment], scores: Sensitivity | None, sums: Totals
) -> Row | None:
    """Return the predicted loss with that of the weights multiplied by the audit's correction, and where it is from."""
    factor = correction_of(session, scores.metric if scores else "no table")
    weights = totals(session.model, assignments, scores).predicted
    if sums.predicted is None or weights is None or session.audit is None:
        return None
    loss = sums.predicted + (factor - 1) * weights
    return {"loss": loss, "factor": factor, "audit_of": session.audit.plan_name}


def _counted(
    model: ModelSummary, assignments: Mapping[str, Assignment], scores: Sensitivity | None,
    inputs: Sensitivity | None, cache: Sensitivity | None,
) -> str | None:  # fmt: skip
    """Return what the predicted loss counts, None where there is none."""
    if scores is None:
        return None
    for name, chosen in assignments.items():
        unscored = chosen.weights != KEEP and math.isnan(scores.of(name, chosen.weights))
        if unscored and model.by_name[name].tied_to is None:
            return (
                f"nothing: {name} in {chosen.weights} has no score; score that scheme first (sensitivity --metric "
                f"{scores.metric} --schemes {chosen.weights}), or keep the layer if no data reach it"
            )
    counted, without = ["weights"], []
    for what, cost, losses, places in (
        ("inputs", "rounded inputs cost", inputs, quantized_inputs(model, assignments)),
        ("cache", "rounded key-value cache costs", cache, cached_layers(model.layers, assignments)),
    ):
        if places and losses is None:
            without.append(f"what the {cost} was not scored (sensitivity --metric predicted_kl_{what})")
        elif losses is not None:
            for name, scheme in places.items():
                if math.isnan(losses.of(name, scheme)):
                    where = "at the input" if what == "inputs" else "in the cache"
                    return (
                        f"nothing: {scheme} {where} of {name} was not scored (sensitivity --metric predicted_kl_{what} "
                        f"--schemes {scheme})"
                    )
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


def explained(outcome: Outcome[ExplainOptions, Explained]) -> Report:
    """Return a plan's figures, what the next bytes buy, and a sentence for each layer."""
    answer = outcome.result
    sums, unit, purchase = answer.totals, answer.unit, answer.purchase
    heading = (
        f"“{answer.plan.name}”: {sums.bits_per_weight:.3f} bits per weight, {readable_bytes(sums.nbytes)}, predicted "
        f"loss {figure(sums.predicted)} {unit}"
    )
    price = "nothing that costs bytes avoids any loss"
    if purchase is not None:
        layers = purchase.layers[0] if len(purchase.layers) == 1 else f"{len(purchase.layers)} layers"
        price = (
            f"at this size a byte avoids {figure(answer.price)} {unit}; the next {purchase.nbytes:,.0f} bytes would "
            f"take {layers} from {purchase.before} to {purchase.after} and avoid {figure(purchase.loss)}"
        )
    return Report(
        facts={
            "plan": answer.plan.name, "bytes": sums.nbytes, "bits_per_weight": sums.bits_per_weight,
            "predicted": sums.predicted, "unit": unit, "price": answer.price, "next": purchase and _bought(purchase),
            "layers": [_explanation(layer) for layer in answer.layers],
        },
        parts=[heading, price, "", *(f"{layer.layer}: {layer.sentence}" for layer in answer.layers)],
    )  # fmt: skip


def _bought(purchase: Purchase) -> Row:
    return {
        "layers": purchase.layers, "before": purchase.before, "after": purchase.after, "bytes": purchase.nbytes,
        "loss": purchase.loss,
    }  # fmt: skip


def _explanation(layer: Explanation) -> Row:
    return {
        "layer": layer.layer, "shared_with": [name for name in layer.layers if name != layer.layer],
        "scheme": layer.scheme, "bytes_saved": layer.saved, "loss_added": layer.added, "fixed": layer.fixed,
        "sentence": layer.sentence,
    }  # fmt: skip


def listed(outcome: Outcome[FrontOptions, Front]) -> Report:
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

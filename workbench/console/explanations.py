"""What ``workbench explain`` and ``workbench front`` print: why layers have their schemes, and every efficient plan."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from workbench.console.reports import figure, number
from workbench.console.terminal import readable_bytes, table

Result = dict[str, Any]


def explain(options: argparse.Namespace) -> Result:
    """Explain the layers of a plan: bytes saved, loss added, the price of a byte, what the next bytes buy."""
    from workbench.planning.plan import Plan
    from workbench.session.session import Session
    from workbench.steps.explanations import explain_plan

    session = Session.load(options.session)
    plan = Plan.load(options.plan) if options.plan else session.plan
    found = explain_plan(
        session, plan, layer=options.layer, metric=options.metric, schemes=options.schemes, target=options.target
    )
    bought = found.purchase
    return {
        "plan": plan.name, "bytes": found.totals.nbytes, "bits_per_weight": found.totals.bits_per_weight,
        "predicted": number(found.totals.predicted), "unit": found.unit, "price": number(found.price),
        "next": None if bought is None else {
            "layers": list(bought.layers), "before": bought.before, "after": bought.after, "bytes": bought.nbytes,
            "loss": number(bought.loss),
        },
        "layers": [
            {
                "layer": one.layer, "shared_with": [name for name in one.layers if name != one.layer],
                "scheme": one.scheme, "bytes_saved": one.saved, "loss_added": number(one.added), "fixed": one.fixed,
                "sentence": one.sentence,
            }
            for one in found.layers
        ],
    }  # fmt: skip


def explain_text(result: Result) -> str:
    """Return the plan's figures, what the next bytes buy, and a sentence for each layer."""
    head = (
        f"“{result['plan']}”: {result['bits_per_weight']:.3f} bits per weight, {readable_bytes(result['bytes'])}, "
        f"predicted loss {figure(result['predicted'])} {result['unit']}"
    )
    bought = result["next"]
    if bought is None:
        price = "nothing that costs bytes avoids any loss"
    else:
        whom = bought["layers"][0] if len(bought["layers"]) == 1 else f"{len(bought['layers'])} layers"
        price = (
            f"at this size a byte avoids {figure(result['price'])} {result['unit']}; the next {bought['bytes']:,.0f} "
            f"bytes would take {whom} from {bought['before']} to {bought['after']} and avoid {figure(bought['loss'])}"
        )
    return "\n".join([head, price, "", *(f"{one['layer']}: {one['sentence']}" for one in result["layers"])])


def front(options: argparse.Namespace) -> Result:
    """List plans of the front, evenly along it."""
    from workbench.session.session import Session
    from workbench.steps.explanations import efficient_plans

    session = Session.load(options.session)
    found = efficient_plans(session, metric=options.metric, schemes=options.schemes, target=options.target)
    places = np.unique(np.linspace(0, len(found) - 1, min(options.points, len(found))).round().astype(int))
    return {
        "metric": session.require_table(options.metric).metric, "unit": session.require_table(options.metric).unit,
        "plans_in_all": len(found),
        "plans": [
            {
                "bits_per_weight": float(found.bits_per_weight[index]), "bytes": int(found.nbytes[index]),
                "loss": number(float(found.loss[index])), "price": number(found.price(int(found.nbytes[index]))),
            }
            for index in places.tolist()
        ],
    }  # fmt: skip


def front_text(result: Result) -> str:
    """Return one row for each plan."""
    rows = [
        (f"{one['bits_per_weight']:.4f}", f"{one['bytes']:,}", figure(one["loss"]), figure(one["price"]))
        for one in result["plans"]
    ]
    head = f"{len(rows)} of {result['plans_in_all']} plans on the convex front of {result['metric']}, smallest first"
    titles = ("bits per weight", "bytes", f"loss, {result['unit']}", "loss that the next byte avoids")
    return f"{head}\n\n" + table(rows, titles)

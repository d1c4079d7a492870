"""What ``workbench plan`` prints: the plan's totals, what its predicted loss counts, every layer's schemes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.console.reports import number
from workbench.console.terminal import readable_bytes, table
from workbench.models.summary import ModelSummary
from workbench.planning.kv_cache import cache_bits, cached_layers
from workbench.planning.plan import KEEP, Assignment, Plan, resolve
from workbench.planning.totals import Totals, plan_totals, quantized_inputs, totals
from workbench.sensitivity.metrics import TABLE_METRICS
from workbench.sensitivity.table import Sensitivity

if TYPE_CHECKING:
    from workbench.session.session import Session

Result = dict[str, Any]


def plan(session: Session, found: Plan, metric: str | None = None, *, corrected: bool = False) -> Result:
    """Return a plan's totals and every layer's scheme; the loss ``corrected`` by the session's audit if asked for."""
    assignments = resolve(found, session.model.layers)
    scores = session.require_table(metric) if session.sensitivities.keys() & set(TABLE_METRICS) else None
    activations, cache = (
        (session.inputs_table(scores.metric), session.cache_table(scores.metric)) if scores else (None, None)
    )
    sums = plan_totals(session.model, found, scores, activations, cache)
    token, plain = cache_bits(session.model.layers, assignments)
    return {
        "bits_per_weight": sums.bits_per_weight,
        "bytes": sums.nbytes,
        "predicted": number(sums.predicted),
        "predicted_counts": _transformed(found) or _counted(session.model, assignments, scores, activations, cache),
        "corrected": _corrected(session, assignments, scores, sums) if corrected else None,
        "schemes": {name: assignment.weights for name, assignment in assignments.items()},
        "inputs": {name: given.inputs for name, given in assignments.items() if given.inputs is not None},
        "cache": cached_layers(session.model.layers, assignments),
        "cache_bytes_per_token": {"plan": token / 8, "as computed": plain / 8},
    }


def _transformed(found: Plan) -> str:
    names = ", ".join(found.transforms)
    return f"nothing: losses are those of the model as it is, and the plan changes it first ({names})" if names else ""


def _corrected(
    session: Session, assignments: Mapping[str, Assignment], scores: Sensitivity | None, sums: Totals
) -> Result | None:
    """Return the predicted loss with that of the weights multiplied by the audit's correction, and where it is from."""
    from workbench.steps.planner import correction_of

    factor = correction_of(session, scores.metric if scores else "no table")
    weights = totals(session.model, assignments, scores).predicted
    if sums.predicted is None or weights is None or session.audit is None:
        return None
    loss = sums.predicted + (factor - 1) * weights
    return {"loss": loss, "factor": factor, "audit_of": session.audit.plan_name}


def _counted(
    model: ModelSummary, assignments: Mapping[str, Assignment], scores: Sensitivity | None,
    activations: Sensitivity | None, cache: Sensitivity | None,
) -> str | None:  # fmt: skip
    """Say what the predicted loss counts, None where there is none."""
    if scores is None:
        return None
    open_cells = [
        name for name, given in assignments.items()
        if given.weights != KEEP and model.by_name[name].tied_to is None and math.isnan(scores.of(name, given.weights))
    ]  # fmt: skip
    if open_cells:
        scheme = assignments[open_cells[0]].weights
        return (
            f"nothing: {open_cells[0]} in {scheme} has no score; score that scheme first (sensitivity --metric "
            f"{scores.metric} --schemes {scheme}), or keep the layer if no data reach it"
        )
    counted, without = ["weights"], []
    for what, of_whom, losses, places in (
        ("inputs", "rounded inputs cost", activations, quantized_inputs(model, assignments)),
        ("cache", "rounded key-value cache costs", cache, cached_layers(model.layers, assignments)),
    ):
        if places and losses is None:
            without.append(f"what the {of_whom} was not scored (sensitivity --metric predicted_kl_{what})")
        elif losses is not None:
            for name, scheme in places.items():
                if math.isnan(losses.of(name, scheme)):
                    where = "at the input" if what == "inputs" else "in the cache"
                    return (
                        f"nothing: {scheme} {where} of {name} was not scored (sensitivity --metric predicted_kl_{what} "
                        f"--schemes {scheme})"
                    )
            counted += [what] if places else []
    said = " and ".join(counted)
    return f"{said} only: {'; '.join(without)}" if without else said


def plan_text(result: Result) -> str:
    """Return the totals and the layers of each scheme."""
    predicted = "no prediction" if result["predicted"] is None else f"predicted {result['predicted']:.4g}"
    head = f"{result['bits_per_weight']:.3f} bits per weight, {readable_bytes(result['bytes'])}, {predicted}"
    if result["predicted_counts"] not in (None, "weights"):
        head += f"\nthe prediction counts {result['predicted_counts']}"
    if result["corrected"]:
        head += (
            f"\ncorrected {result['corrected']['loss']:.4g}: the weights' prediction times "
            f"{result['corrected']['factor']:.3g}, fitted to the audit of “{result['corrected']['audit_of']}”"
        )
    if result["cache"]:
        token = result["cache_bytes_per_token"]
        head += f"\nkey-value cache: {token['plan']:,.0f} bytes a token, as computed {token['as computed']:,.0f}"
    columns = [name for name in ("inputs", "cache") if result[name]]
    rows = [
        (name, scheme, *(result[column].get(name, "-") for column in columns))
        for name, scheme in result["schemes"].items()
    ]
    return f"{head}\n\n" + table(rows, ("layer", "scheme", *columns))


def left_to_the_runtime(model: ModelSummary, found: Plan) -> tuple[str, ...]:
    """Say what of a plan no exported weight can hold: whoever runs the model has to round its keys and values."""
    cached = cached_layers(model.layers, resolve(found, model.layers))
    if not cached:
        return ()
    schemes = ", ".join(dict.fromkeys(cached.values()))
    return (
        f"the key-value cache of {len(cached)} layers in {schemes} is written as a part of the plan only: who runs the "
        "model has to store its cache so",
    )
